"""Content of a run's rows, question by question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
"""A line of `records.jsonl`."""


@dataclass(frozen=True)
class Question:
    """A question with its score: the mean over the repeats that have one."""

    case: str
    category: str
    weight: float
    scores: tuple[float | None, ...]
    """One per repeat."""

    @property
    def value(self) -> float | None:
        """None if no repeat has a score."""
        known = [score for score in self.scores if score is not None]
        return sum(known) / len(known) if known else None


def score_of(row: Row) -> float | None:
    """1 for a right answer, 0 for a wrong or abstained one, the judge's score if it is graded;
    None if the answer was not scored.
    """
    verdict = row.get("verdict")
    if row.get("status") != "ok" or verdict is None or verdict["label"] == "unscored":
        return None
    if verdict.get("graded"):
        return None if verdict["score"] is None else float(verdict["score"])

    return 1.0 if verdict["label"] == "correct" else 0.0


def questions_of(rows: Iterable[Row]) -> dict[str, Question]:
    """The questions by id, in the order in which they were first asked."""
    scores: dict[str, list[float | None]] = {}
    first: dict[str, Row] = {}
    for row in rows:
        name = row["question_id"]
        scores.setdefault(name, []).append(score_of(row))
        first.setdefault(name, row)

    return {
        name: Question(
            case=str(first[name].get("case_id", "")),
            category=str(first[name].get("category", "")),
            weight=float(first[name].get("weight", 1.0)),
            scores=tuple(own),
        )
        for name, own in scores.items()
    }
