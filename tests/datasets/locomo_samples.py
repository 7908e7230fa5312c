"""Small records in LoCoMo's schema."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from memeval.datasets.contract import Dataset
from memeval.datasets.locate import build

SAMPLE: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a kayak."},
            {
                "speaker": "Bob",
                "dia_id": "D1:2",
                "text": "Nice!",
                "blip_caption": "a red kayak",
                "query": "kayak",
            },
        ],
        "session_10_date_time": "12:05 am on 1 June, 2023",
        "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "I sold it."}],
        "session_2_date_time": "12:30 pm on 9 May, 2023",
        "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "How is the kayak?"}],
        "session_20_date_time": "12:30 pm on 9 July, 2023",
    },
    "qa": [
        {"question": "What did Ann buy?", "answer": "a kayak", "evidence": ["D1:1"], "category": 4},
        {
            "question": "When was it sold?",
            "answer": 2023,
            "evidence": ["D10:01; D2:1", "D1:1", "D1:1"],
            "category": 2,
        },
        {
            "question": "What did Bob buy?",
            "adversarial_answer": "a kayak",
            "evidence": ["D1:1"],
            "category": 5,
        },
        {
            "question": "Did Bob buy it?",
            "adversarial_answer": "Yes",
            "answer": "No",
            "evidence": ["D", "D:1:2", "D7:7"],
            "category": 5,
        },
        {
            "question": "Would Ann like a canoe?",
            "answer": "Yes; it floats",
            "evidence": [],
            "category": 3,
        },
        {
            "question": "What did Ann buy?",
            "answer": "a kayak, a paddle",
            "evidence": ["D1:1"],
            "category": 1,
        },
    ],
}


def sample(**changes: Any) -> dict[str, Any]:
    """A copy of the sample with other top-level fields."""
    return deepcopy(SAMPLE) | changes


def write(folder: Path, content: Any) -> Path:
    """Writes records (or raw text or bytes) as a data file."""
    path = folder / "locomo10.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(
            content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
        )
    return path


def locomo(path: Path, **settings: Any) -> Dataset:
    """A file with the settings of `dataset=locomo`."""
    return build("locomo", path.parent, path=str(path), **settings)
