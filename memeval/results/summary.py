"""What a finished cell leaves in its run folder, as the report and MLflow read it.

A run folder `outputs/runs/<run key>/` holds `config.yaml` (resolved), `records.jsonl` (one row per
question and repeat), `hypotheses.jsonl` (a file of answers per repeat), `run.json` (a
`RunSummary`), and what the publisher adds: `report.md`, `plots/`, `tracked.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from memeval.results.fields import as_plain, read_as
from memeval.results.files import SEAL, as_json, file_digest, is_sealed, sealed, write_atomically
from memeval.results.judge import JudgeIdentity
from memeval.text.redaction import redacted_in, without_known_in

FINISHED, STOPPED = "finished", "stopped"
FOUND_NOTHING = "nothing_found"
"""Tag of a run in which no question got anything from the memory."""
"""The status of a run: a stopped one ended because its budget was spent, and can be continued."""
HYPOTHESES_FILE = "hypotheses.jsonl"
"""The answers of the first repeat as LongMemEval's tools write and read them; `evaluate` reads it.
"""
_OURS = ("command", "params", "tags", "notes", "judge")
"""Members in which nothing that looks like a secret is kept."""
RunKey = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,100}\Z")]
"""It names a folder: an edited one must not lead elsewhere."""
RUN_FILE, RECORDS_FILE, CONFIG_FILE, TRACKED_FILE = (
    "run.json",
    "records.jsonl",
    "config.yaml",
    "tracked.json",
)


@dataclass(frozen=True)
class CategoryResult:
    """One row of the table of categories. `None` means not measured, never 0."""

    category: str
    """The id as the data set stores it."""
    name: str
    n: int
    """Questions asked in the category (per repeat)."""
    scored: int
    """Judged answers over all repeats."""
    asked: int
    """Questions times repeats: what `scored` is out of."""
    headline: bool
    """Whether the category enters `accuracy`."""
    accuracy: float | None
    accuracy_std: float | None
    """Sample standard deviation over repeats; None for one repeat."""
    ci95_low: float | None
    ci95_high: float | None
    """95 % interval clustered by case; None if fewer than two cases have questions of the
    category.
    """
    token_f1: float | None


@dataclass(frozen=True)
class RepeatResult:
    """One repeat of a cell."""

    repeat: int
    seed: int
    metrics: Mapping[str, float | None]


@dataclass(frozen=True)
class RunSummary:
    """A cell's results over its repeats."""

    run_key: RunKey
    name: str
    """Short and readable: `bm25 turn k=10 never keyword short extractive`."""
    dataset: str
    """Also the name of the MLflow experiment."""
    sweep: str | None
    command: str
    """The one command that repeats the cell."""
    params: Mapping[str, str | int | float | bool | None]
    """Resolved config, flattened with dots."""
    tags: Mapping[str, str]
    """Run key, sweep, protocol, git commit and dirtiness, data sha256, prompt hashes, package
    versions …
    """
    metrics: Mapping[str, float | None]
    """By the names of docs/metrics.md; None if not defined (a standard deviation of one repeat,
    the cost of an unknown model).
    """
    categories: tuple[CategoryResult, ...]
    repeats: tuple[RepeatResult, ...]
    notes: tuple[str, ...]
    """What a reader must know, a sentence each: cut contexts, compression that never fired,
    failures, unpinned data.
    """
    valid: bool
    """False if coverage is below `min_coverage`; shown wherever the cell is shown."""
    started_at: str
    """ISO 8601 with offset."""
    finished_at: str
    facets: Mapping[str, tuple[CategoryResult, ...]] = field(default_factory=dict)
    """Rows like those of the categories for each further grouping of the questions, by facet."""
    facet_titles: Mapping[str, str] = field(default_factory=dict)
    """What tables call the facets; a facet without a title goes by its name."""
    protocol_metrics: tuple[str, ...] = ()
    """Names of the metrics that the data set's own protocol adds."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Records by status, over all repeats."""

    status: str = FINISHED
    """`stopped` where the budget was spent before all questions were done: the first note says so,
    and the figures are those of the questions that were answered, judged or not.
    """
    files: Mapping[str, str] = field(default_factory=dict)
    """sha256 of the run folder's other files by name, but for what the publisher adds."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """Digest of the rows that the run was made of, by their file below outputs/."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What the run key is made of beside the config: `version`, `inputs`, and each repeat's `keys`.
    """
    judge: JudgeIdentity | None = None
    """Who judged, see `memeval.results.judge`; None if nothing was judged, and in runs from before
    this was recorded.
    """

    @property
    def is_stopped(self) -> bool:
        """Whether the run ended before all questions were done."""
        return self.status == STOPPED

    @property
    def found_nothing(self) -> bool:
        """Whether no question got anything from the memory."""
        return self.tags.get(FOUND_NOTHING) == "true"

    def write(self, folder: Path) -> None:
        """Writes `run.json` atomically."""
        content = json.loads(json.dumps(_clean(as_plain(self))))
        write_atomically(folder / RUN_FILE, as_json(sealed(content), indent=1) + "\n")

    @classmethod
    def read(cls, folder: Path) -> RunSummary:
        """Reads `run.json` of a run folder.

        Raises `OSError` if it is missing, `ValueError` if it is damaged or was edited.
        """
        try:
            content = json.loads((folder / RUN_FILE).read_bytes())
        except RecursionError as error:
            raise ValueError(f"{folder / RUN_FILE} is damaged: nested too deep") from error

        if isinstance(content, dict) and SEAL not in content:
            raise ValueError(
                f"{folder / RUN_FILE} has no digest: memeval 0.1 wrote it, or it was edited; its "
                "own command makes it again"
            )

        if not isinstance(content, dict) or not is_sealed(content):
            raise ValueError(f"{folder / RUN_FILE} is damaged or was edited")

        del content[SEAL]
        try:
            summary = read_as(content, cls)
            for time in (summary.started_at, summary.finished_at):
                datetime.fromisoformat(time)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{folder / RUN_FILE} is damaged: {error}") from error

        return summary

    def misfits(self, folder: Path) -> list[str]:
        """What of the run folder differs from this summary, one line each; empty if all fits."""
        problems = []
        for name in dict.fromkeys((RECORDS_FILE, CONFIG_FILE, *self.files)):
            if name not in self.files:
                problems.append(f"{RUN_FILE} holds no digest of {name}")
                continue

            try:
                digest = file_digest(folder / name)
            except FileNotFoundError:
                problems.append(f"{name} is missing")
            except OSError as error:
                problems.append(f"{name} can't be read: {error.strerror or error}")
            else:
                if digest != self.files[name]:
                    problems.append(f"{name} is damaged or was edited")

        return problems


def fresh_cost_usd(figures: Mapping[str, float | None]) -> float | None:
    """US dollars that a fresh run costs, without memeval's own cache; None where unknown.

    Systems are compared by it: what was billed depends on which cell came first.
    """
    # Runs of `evaluate` have no cache, and only the one figure.
    return figures.get("cost_usd_uncached/total", figures.get("cost_usd/total"))


def _clean(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary as it may be kept: known secrets nowhere, and in what is ours nothing that looks
    like one.
    """
    clean: dict[str, Any] = without_known_in(summary)
    return {
        **clean,
        **{name: redacted_in(clean[name]) for name in _OURS},
    }


def hypotheses_file(repeat: int) -> str:
    """Name of a repeat's file of answers: `hypotheses.jsonl`, from the second repeat on
    `hypotheses_<repeat>.jsonl`.
    """
    stem, suffix = HYPOTHESES_FILE.split(".")
    return f"{stem}_{repeat}.{suffix}" if repeat else HYPOTHESES_FILE
