"""Builders of records for tests that look at only a few of their members."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memeval.records import Label, Status, Verdict
from memeval.results import RECORDS_FILE, Record, json_line


def record(**members: Any) -> Record:
    """A record with these members; the others are those of a right answer."""
    defaults: dict[str, Any] = {
        "question_id": "q",
        "case_id": "case",
        "category": 1,
        "category_name": "multi_hop",
        "repeat": 0,
        "seed": 0,
        "question": "When?",
        "gold": ("7 May",),
        "answerable": True,
        "status": Status.OK,
        "hypothesis": "7 May",
        "verdict": verdict(),
    }
    return Record(**{**defaults, **members})


def verdict(label: Label = Label.CORRECT, **members: Any) -> Verdict:
    """A verdict of the keyword judge, without a score if the label is unscored."""
    score = None if label is Label.UNSCORED else float(label is Label.CORRECT)
    defaults: dict[str, Any] = {"judge": "keyword", "label": label, "score": score}
    return Verdict(**{**defaults, **members})


def write_records(folder: Path, records: Iterable[Record]) -> Path:
    """Writes `records.jsonl` of a run folder and returns its path."""
    path = folder / RECORDS_FILE
    path.write_text("".join(json_line(row.to_json()) for row in records), encoding="utf-8")
    return path
