"""Content of a finished run's folder, as the report and MLflow read it.

A run folder `outputs/runs/<run key>/` holds `config.yaml` (resolved), `records.jsonl` (one row per
question and repeat), `hypotheses.jsonl` (a file of answers per repeat), `run.json` (a
`RunSummary`), and the publisher's files: `report.md`, `plots/`, `tracked.json`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePath
from typing import Annotated, Any, NamedTuple, Self

from msgspec import Meta

from memeval.records import Status
from memeval.results.fields import as_plain, read_as
from memeval.results.files import as_json, file_digest, sealed, unsealed, write_atomically
from memeval.results.judge import JudgeIdentity
from memeval.results.note import Note, NoteKind, with_kinds
from memeval.text.redaction import redacted_in, without_known_in

FINISHED, STOPPED = "finished", "stopped"
"""The status of a run: a stopped one ended because its budget was spent, and can be continued."""
PACKAGE_TAG = "package"
"""Tag of a run that came in a package: the id of the package."""
PACKAGE_RUN = "package_run"
"""Tag of such a run: its key on the machine where it was run."""
IMPORTED_RUNS = "imported"
"""Folder below outputs/ with one folder for each unpacked package."""
OWN_TAG = "tags."
"""Prefix of the user's own tags."""
FOUND_NOTHING = "nothing_found"
"""Tag of a run in which no question got anything from the memory."""
FEWEST_SESSIONS = "fewest_sessions"
"""Tag of a run whose chunks are sessions: the number of sessions of the smallest conversation."""
HYPOTHESES_FILE = "hypotheses.jsonl"
"""Answers of the first repeat in the format of LongMemEval's tools; `evaluate` reads them."""
LARGEST_TRACKED = 65_536
"""Maximum bytes read of a `tracked.json`, which contains one id per store."""
_REDACTED_MEMBERS = ("command", "params", "tags", "notes", "judge")
"""Members from which anything that looks like a secret is removed."""
RunKey = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,100}\Z")]
"""The key names a folder: an edited one must not lead elsewhere."""
RUN_FILE, RECORDS_FILE, CONFIG_FILE, TRACKED_FILE = (
    "run.json",
    "records.jsonl",
    "config.yaml",
    "tracked.json",
)


class Share(NamedTuple):
    """A share in [0, 1] with its 95 % interval; None if it was not measured."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def percent(self) -> Self:
        """The same in per cent."""
        return type(self)(*(None if part is None else 100 * part for part in self))


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
    """Questions times repeats: the total that `scored` refers to."""
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

    @property
    def share(self) -> Share:
        """The accuracy with its interval."""
        return Share(self.accuracy, self.ci95_low, self.ci95_high)


@dataclass(frozen=True)
class RepeatResult:
    """One repeat of a run."""

    repeat: int
    seed: int
    metrics: Mapping[str, float | None]


@dataclass(frozen=True)
class RunSummary:
    """A run's results over its repeats."""

    run_key: RunKey
    name: str
    """Short and readable: `bm25 turn k=10 never keyword short extractive`."""
    dataset: str
    """Also the name of the MLflow experiment."""
    sweep: str | None
    command: str
    """The command that repeats the run."""
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
    notes: tuple[Note, ...]
    """Notes for the reader: cut contexts, compression that never fired, failures, unpinned data."""
    valid: bool
    """False if coverage is below `min_coverage`; shown wherever the run is shown."""
    started_at: str
    """ISO 8601 with offset."""
    finished_at: str
    facets: Mapping[str, tuple[CategoryResult, ...]] = field(default_factory=dict)
    """Rows like `categories` for each other grouping of the questions, by facet."""
    facet_titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of the facets in tables; a facet without a title is shown by its name."""
    protocol_metrics: tuple[str, ...] = ()
    """Names of the metrics that the data set's own protocol adds."""
    statuses: Mapping[Status, int] = field(default_factory=dict)
    """Records by status, over all repeats."""

    status: str = FINISHED
    """`stopped` if the budget was spent before all questions were done: a note says so, and
    the figures are those of the questions that were answered, judged or not.
    """
    files: Mapping[str, str] = field(default_factory=dict)
    """sha256 of the run folder's other files by name, except those that the publisher adds."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """Digest of the rows that the run was computed from, by their file below outputs/."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the run key other than the config: `version`, `inputs`, and each repeat's `keys`."""
    judge: JudgeIdentity | None = None
    """The judge, see `memeval.results.judge`; None if nothing was judged, and in older runs, which
    do not record it.
    """

    def share(self, name: str = "accuracy") -> Share:
        """A figure that is a share, with its interval."""
        get = self.metrics.get
        return Share(get(name), get(f"{name}_ci95_low"), get(f"{name}_ci95_high"))

    @property
    def ended(self) -> datetime:
        """End of the run, in the time zone of this machine."""
        return datetime.fromisoformat(self.finished_at).astimezone()

    def notes_of(self, kind: NoteKind) -> list[Note]:
        return [note for note in self.notes if note.kind is kind]

    @property
    def is_stopped(self) -> bool:
        """Whether the run ended before all questions were done."""
        return self.status == STOPPED

    @property
    def headline(self) -> frozenset[str]:
        """The categories that count in the accuracy."""
        return frozenset(row.category for row in self.categories if row.headline)

    @property
    def found_nothing(self) -> bool:
        """Whether no question got anything from the memory."""
        return self.tags.get(FOUND_NOTHING) == "true"

    @property
    def only_retrieves(self) -> bool:
        """Whether the run only retrieves, and answers nothing (`stages=retrieve`)."""
        return self.tags.get("stages") == "retrieve"

    @property
    def reads_by_tools(self) -> bool:
        """Whether the answering model uses the memory through tools (`reader=tools`)."""
        return self.params.get("reader") == "tools"

    @property
    def asked(self) -> float | None:
        """Number of questions of the main figure: retrieval covers all questions, accuracy those of
        the headline.
        """
        return self.metrics.get("n_records" if self.only_retrieves else "n_questions")

    @property
    def prompt_name(self) -> str:
        """Name of the answers' prompt, or of its file if it is the user's own; empty if unknown."""
        file = PurePath(str(self.params.get("prompt.file") or ""))
        return file.name or str(self.params.get("prompt") or "")

    @property
    def data_sha256(self) -> str:
        """Digest of the data file; empty if unknown."""
        return self.tags.get("data_sha256", "")

    @property
    def has_deterministic_reader(self) -> bool:
        """Whether the reader gives the same answer each time."""
        return self.tags.get("deterministic") == "true"

    @property
    def has_recorded_verdicts(self) -> bool:
        """Whether the verdicts came from the file of answers."""
        return self.tags.get("recorded") == "true"

    def write(self, folder: Path) -> None:
        """Writes `run.json` atomically."""
        write_atomically(folder / RUN_FILE, self.to_text())

    def to_text(self) -> str:
        """The content of `run.json`, without secrets."""
        content = json.loads(json.dumps(_clean(as_plain(self))))
        return as_json(sealed(content), indent=1) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads `run.json` of a run folder.

        Raises `OSError` if it is missing, `ValueError` if it is damaged or was edited.
        """
        path = folder / RUN_FILE
        try:
            content = unsealed(json.loads(path.read_bytes()))
            summary = read_as(with_kinds(content), cls)
            for time in (summary.started_at, summary.finished_at):
                datetime.fromisoformat(time)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error

        return summary

    def find_damage(self, folder: Path) -> list[str]:
        """Parts of the run folder that differ from this summary, one line each; empty if none."""
        problems = []
        for name in dict.fromkeys((RECORDS_FILE, CONFIG_FILE, *self.files)):
            if name not in self.files:
                problems.append(f"{RUN_FILE} has no digest of {name}")
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
    """US dollars that a fresh run costs, without memeval's own cache; None if unknown.

    Systems are compared by this cost: the billed one depends on which run came first.
    """
    # Runs of `evaluate` have no cache, and only the second figure.
    return figures.get("cost_usd_uncached/total", figures.get("cost_usd/total"))


def is_imported(summary: RunSummary) -> bool:
    """Whether another program gave the answers, so that their cost is unknown."""
    return summary.tags.get("imported") == "true"


def run_cost_usd(summary: RunSummary) -> float | None:
    """US dollars that a fresh run of its system costs; None if unknown, as for imported answers,
    whose run paid only for the judge.
    """
    if is_imported(summary):
        return None

    return fresh_cost_usd(summary.metrics)


def _clean(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary as it may be stored: without known secrets, and without anything secret-looking in
    memeval's own texts.
    """
    clean: dict[str, Any] = without_known_in(summary)
    return clean | {name: redacted_in(clean[name]) for name in _REDACTED_MEMBERS}


def read_tracked(folder: Path) -> dict[str, str]:
    """The MLflow run of a run folder in each store that it was logged to.

    A damaged file counts as missing.
    """
    try:
        with (folder / TRACKED_FILE).open("rb") as file:
            known = json.loads(file.read(LARGEST_TRACKED))

        return {store: run_id for store, run_id in known.items() if isinstance(run_id, str)}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def hypotheses_file(repeat: int) -> str:
    """A repeat's file of answers: `hypotheses.jsonl`, or `hypotheses_<repeat>.jsonl` from 1 on."""
    stem, suffix = HYPOTHESES_FILE.split(".")
    return f"{stem}_{repeat}.{suffix}" if repeat else HYPOTHESES_FILE


def as_yaml(value: str | int | float | bool | None) -> str:
    """A setting's value as YAML writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"

    return str(value)
