"""Length and duration of replies in earlier runs of this home."""

from collections import defaultdict
from pathlib import Path

from msgspec import Struct, field

from memeval.pipeline.open.cell import Cell
from memeval.records import Role
from memeval.results import RUN_FILE, RunSummary
from memeval.statistics.means import mean

MAX_RUNS = 50
"""Number of runs that are read, the newest first."""
ASSUMED_S = 1.0
"""Assumed seconds of a call if no earlier run shows it."""
_OWN_MODEL = {Role.JUDGE: "llm.judge.model", Role.INGEST: "llm.ingest.model"}
_FORM = {Role.ANSWER: "prompt", Role.JUDGE: "judge", Role.INGEST: "system"}
"""The setting that determines the form of a role's replies."""

Kind = tuple[Role, str, str]
"""Role, model and form of replies."""


class PastMeans(Struct):
    """Means over earlier runs, by kind of reply."""

    _tokens: dict[Kind, float] = field(default_factory=lambda: defaultdict(float))
    _calls: dict[Kind, float] = field(default_factory=lambda: defaultdict(float))
    _seconds: dict[Kind, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, summary: RunSummary) -> None:
        params = summary.params
        for role, setting in _FORM.items():
            model = params.get(_OWN_MODEL.get(role, "llm.model")) or params.get("llm.model")
            calls = summary.metrics.get(f"calls/{role}")
            tokens = summary.metrics.get(f"tokens/{role}/completion")
            if not model or not calls or tokens is None:
                continue

            kind = (role, str(model), str(params.get(setting)))
            self._calls[kind] += calls
            self._tokens[kind] += tokens
            latency = summary.metrics.get(f"latency_ms/{role}/p50")
            # The time of an ingest is that of a whole case, and not of one call.
            if latency and role is not Role.INGEST:
                self._seconds[kind].append(latency / 1e3)

    def completion_tokens(self, kind: Kind | None) -> float | None:
        """Mean tokens of a reply; None if no run shows it."""
        if kind is None or not self._calls.get(kind):
            return None

        return self._tokens[kind] / self._calls[kind]

    def seconds(self, kind: Kind | None) -> float | None:
        """Mean time of a call; None if no run shows it."""
        return None if kind is None else mean(self._seconds.get(kind, ()))


def kind_of(role: Role, model: str, cell: Cell) -> Kind | None:
    """The kind of reply that a cell gets from a model in a role."""
    config = cell.config
    forms = {
        Role.ANSWER: config.prompt.name,
        Role.JUDGE: config.judge.name,
        Role.INGEST: str(config.system["name"]),
    }
    return (role, model, forms[role]) if role in forms else None


def read_past(runs: Path) -> PastMeans:
    """The past of a home, whose run folders are below `runs`."""
    past = PastMeans()
    files = sorted(runs.glob(f"*/{RUN_FILE}"), key=_finished_at, reverse=True)
    for file in files[:MAX_RUNS]:
        try:
            past.add(RunSummary.read(file.parent))
        except (OSError, ValueError, TypeError, KeyError):
            continue

    return past


def _finished_at(file: Path) -> float:
    """When a file was last written; 0 if it has been deleted, or is a broken link."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
