"""Small files in LongMemEval's schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memeval.datasets.locate import build
from memeval.datasets.longmemeval.adapter import LongMemEval

TEA = [
    {"role": "user", "content": "I sold the teapot.", "has_answer": True},
    {"role": "assistant", "content": "For how much?"},
    {"role": "user", "content": "For nine pounds.", "has_answer": False},
]
SEA = [
    {"role": "user", "content": "Is the sea warm?"},
    {"role": "assistant", "content": "It is not."},
]


def item(**changed: Any) -> dict[str, Any]:
    """An item with two sessions, the later one first; the value `...` leaves a field out."""
    fields = {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "What did I sell?",
        "answer": "the teapot",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["answer_ab", "sea"],
        "haystack_dates": ["2023/05/30 (Tue) 18:05", "2023/05/30 (Tue) 09:00"],
        "haystack_sessions": [TEA, SEA],
        "answer_session_ids": ["answer_ab"],
    }
    return {name: value for name, value in {**fields, **changed}.items() if value is not ...}


def write(folder: Path, *items: Any) -> Path:
    path = folder / "longmemeval.json"
    path.write_text(json.dumps(list(items)), encoding="utf-8")
    return path


def opened(path: Path, **settings: Any) -> LongMemEval:
    """The adapter of a data set without a registered hash."""
    dataset = build("longmemeval_m", path.parent, path=str(path), **settings)
    assert isinstance(dataset, LongMemEval)
    return dataset
