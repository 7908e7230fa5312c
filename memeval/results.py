"""What a finished cell leaves in its run folder, as the report and MLflow read it.

A run folder `outputs/runs/<run key>/` holds `config.yaml` (resolved), `records.jsonl` (one row per question and repeat),
`hypotheses.jsonl` (a file of answers per repeat), `run.json` (a `RunSummary`), and what the publisher adds: `report.md`, `plots/`,
`tracked.json`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HYPOTHESES_FILE = "hypotheses.jsonl"
"""The answers of the first repeat as LongMemEval's tools write and read them; `evaluate` reads it."""
RUN_FILE, RECORDS_FILE, CONFIG_FILE, TRACKED_FILE = "run.json", "records.jsonl", "config.yaml", "tracked.json"


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
    """95 % interval clustered by case; None where fewer than two cases have questions of the category."""
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

    run_key: str
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
    """Run key, sweep, protocol, git commit and dirtiness, data sha256, prompt hashes, package versions …"""
    metrics: Mapping[str, float | None]
    """By the names of docs/metrics.md; None where not defined (a standard deviation of one repeat, the cost of an unknown model)."""
    categories: tuple[CategoryResult, ...]
    repeats: tuple[RepeatResult, ...]
    notes: tuple[str, ...]
    """What a reader must know, a sentence each: cut contexts, compression that never fired, failures, unpinned data."""
    valid: bool
    """False where coverage is below `min_coverage`; shown wherever the cell is shown."""
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

    def write(self, folder: Path) -> None:
        """Writes `run.json` atomically."""
        write_atomically(folder / RUN_FILE, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, folder: Path) -> RunSummary:
        """Reads `run.json` of a run folder. Raises OSError or ValueError where it is missing or damaged."""
        fields: dict[str, Any] = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
        fields["categories"] = tuple(CategoryResult(**row) for row in fields["categories"])
        fields["facets"] = {facet: tuple(CategoryResult(**row) for row in rows) for facet, rows in fields.get("facets", {}).items()}
        fields["repeats"] = tuple(RepeatResult(**row) for row in fields["repeats"])
        for name in ("notes", "protocol_metrics"):
            fields[name] = tuple(fields.get(name, ()))
        return cls(**fields)


def hypotheses_file(repeat: int) -> str:
    """Name of a repeat's file of answers: `hypotheses.jsonl`, from the second repeat on `hypotheses_<repeat>.jsonl`."""
    stem, suffix = HYPOTHESES_FILE.split(".")
    return f"{stem}_{repeat}.{suffix}" if repeat else HYPOTHESES_FILE


_ELSEWHERE_ENDS_LINES = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
_HALVES = re.compile("[\ud800-\udfff]")


def json_line(row: Mapping[str, Any], separators: tuple[str, str] | None = None) -> str:
    """A row as one line of JSON that any reader takes for one line and can decode.

    Some split lines at U+0085, U+2028 and U+2029, too: they are escaped. Halves of characters, which UTF-8 can't hold, become U+FFFD.
    """
    line = json.dumps(row, ensure_ascii=False, separators=separators)
    if not line.isascii():
        line = _HALVES.sub("\ufffd", line.translate(_ELSEWHERE_ENDS_LINES))
    return line + "\n"


def write_atomically(path: Path, text: str) -> None:
    """Writes a whole file or leaves the old one: temporary name, flush to disk, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
