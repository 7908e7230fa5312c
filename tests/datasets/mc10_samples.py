"""Made-up rows in LoCoMo-MC10's schema, and the file in LoCoMo's schema that they come from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memeval.datasets.locate import build
from memeval.datasets.locomo_mc10.adapter import LocomoMc10

TALK = {
    1: [
        ("Ann", "I went to Oslo yesterday."),
        ("Bob", "How was it?"),
        ("Ann", "Cold, eight degrees."),
    ],
    2: [("Bob", "My cat is called Tofu."), ("Ann", "Mine has no name, it is grey.")],
}
DATES = {1: "2023-05-08T13:56:00", 2: "2023-05-25T13:14:00"}
ORIGINAL_DATES = {1: "1:56 pm on 8 May, 2023", 2: "1:14 pm on 25 May, 2023"}
CHOICES = ["Oslo", "Rome", "Bern", "Lima", "Cairo", "Seoul", "Quito", "Paris", "Turin", "Delhi"]


def row(question_id: str = "conv-1_q0", **changes: Any) -> dict[str, Any]:
    """A valid row except for the changes; a change to `None` leaves the field out."""
    fields = {
        "question_id": question_id,
        "question": "Where did Ann go?",
        "question_type": "open_domain",
        "answer": "Oslo",
        "correct_choice_index": 0,
        "choices": CHOICES,
        "num_choices": 10,
        "num_sessions": 2,
        "haystack_session_ids": ["session_1", "session_2"],
        "haystack_session_summaries": ["…", "…"],
        "haystack_session_datetimes": list(DATES.values()),
        "haystack_sessions": [
            [
                {
                    "role": "user" if who == "Ann" else "assistant",
                    "content": f"[{who.upper()}]: {text}",
                }
                for who, text in turns
            ]
            for turns in TALK.values()
        ],
    } | changes
    return {name: value for name, value in fields.items() if value is not None}


def original(sample_id: str = "conv-1") -> dict[str, Any]:
    """The conversation in LoCoMo's schema, with three questions."""
    talk: dict[str, Any] = {"speaker_a": "Ann", "speaker_b": "Bob"}
    for number, turns in TALK.items():
        talk[f"session_{number}_date_time"] = ORIGINAL_DATES[number]
        talk[f"session_{number}"] = [
            {"dia_id": f"D{number}:{place}", "speaker": who, "text": text}
            for place, (who, text) in enumerate(turns, start=1)
        ]
    questions = [
        {"question": "Where did Ann go?", "answer": "Oslo", "evidence": ["D1:1"], "category": 4},
        {
            "question": "When did Ann go to Oslo?",
            "answer": "7 May 2023",
            "evidence": ["D1:1"],
            "category": 2,
        },
        {
            "question": "What is Ann's cat called?",
            "evidence": ["D2:1", "D2:2"],
            "category": 5,
            "adversarial_answer": "Tofu",
        },
    ]
    return {"sample_id": sample_id, "conversation": talk, "qa": questions}


def write_rows(folder: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    """Writes a file of rows, or of raw lines, where the adapter looks for it."""
    path = folder / "locomo_mc10" / "locomo_mc10.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows),
        encoding="utf-8",
    )
    return path


def write_original(folder: Path, samples: Iterable[Mapping[str, Any]]) -> Path:
    """Writes LoCoMo's file where the adapter looks for it."""
    path = folder / "locomo" / "locomo10.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(samples)), encoding="utf-8")
    return path


def mc10(folder: Path, **settings: Any) -> LocomoMc10:
    """The adapter over a data folder."""
    adapter = build("locomo_mc10", folder, **settings)
    assert isinstance(adapter, LocomoMc10)
    return adapter
