"""The ground-truth audit of LoCoMo (github.com/dial481/locomo-audit): which of its questions have a
wrong gold or cite the wrong turns.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memeval.datasets.io.fields import read_records

WRONG_CITATION = "WRONG_CITATION"
QUESTION_ID = re.compile(r"locomo_([0-9]{1,6})_qa([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Correction:
    """Finding of the audit on one question."""

    corrupts_score: bool
    """False if only the evidence is wrong."""
    answer: str
    evidence: tuple[str, ...]


def read_corrections(
    content: bytes, path: Path, questions: Sequence[Sequence[Any]]
) -> Mapping[int, Mapping[int, Correction]]:
    """Corrections by position of the conversation and of the question in it.

    `questions` are the data file's own lists: each correction must quote the question at its
    position.
    """
    corrections: dict[int, dict[int, Correction]] = defaultdict(dict)
    for item in read_records(content, path, "correction"):
        match = QUESTION_ID.fullmatch(item.text("question_id"))
        if not match:
            raise item.wrong("question_id", "is not of the form locomo_<conversation>_qa<index>")

        case, position = int(match[1]), int(match[2])
        if (
            case >= len(questions)
            or position >= len(questions[case])
            or questions[case][position]["question"] != item.text("question")
        ):
            raise item.wrong("question", f"is not the question at {match[0]} of the data file")

        corrections[case][position] = Correction(
            corrupts_score=item.text("error_type") != WRONG_CITATION,
            answer=item.answer("correct_answer"),
            evidence=tuple(item.texts("correct_evidence")),
        )

    return corrections
