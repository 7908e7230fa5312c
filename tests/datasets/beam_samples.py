"""Small chats and questions in BEAM's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memeval.datasets.beam.adapter import Beam, BeamSettings
from memeval.datasets.contract import DatasetInfo, FileInfo
from memeval.datasets.registry import DATASETS

BEAM = DATASETS["beam"]

Json = dict[str, Any]

UNREGISTERED = replace(BEAM, files=())
"""BEAM without pins, so that our own chats are neither right nor wrong files."""


def batch(*texts: str, first: int = 0, date: str | None = "March-15-2024") -> Json:
    """A batch of one turn, in which user and assistant alternate; ids start at `first`."""
    messages: list[Json] = [
        {"role": ("user", "assistant")[place % 2], "id": first + place, "content": text}
        for place, text in enumerate(texts)
    ]
    messages[0]["time_anchor"] = date
    return {"batch_number": 1, "turns": [messages], "time_anchor": None}


def question(**changes: Any) -> Json:
    """A question for any ability: it has the reference fields of all of them."""
    return {
        "question": "What did I say?",
        "answer": "Tea",
        "ideal_response": "Nothing is said of it.",
        "ideal_answer": "Both",
        "ideal_summary": "It was about tea.",
        "difficulty": "easy",
        "rubric": ["Tea"],
        "source_chat_ids": [0],
        **changes,
    }


def write_chat(
    root: Path,
    chat: Sequence[Any],
    questions: Mapping[str, Any] | None = None,
    *,
    place: str = "100K/1",
    name: str = "chat.json",
) -> Path:
    """Writes a chat with its questions below `root/chats`; returns the root."""
    folder = root / "chats" / place
    (folder / "probing_questions").mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(chat), encoding="utf-8")
    asked = {"information_extraction": [question()]} if questions is None else questions
    path = folder / "probing_questions" / "probing_questions.json"
    path.write_text(json.dumps(asked), encoding="utf-8")
    return root


def beam(root: Path, info: DatasetInfo = UNREGISTERED, **settings: Any) -> Beam:
    return Beam(root, info, BeamSettings(**settings))


def registered(*files: FileInfo) -> DatasetInfo:
    return replace(BEAM, files=files)
