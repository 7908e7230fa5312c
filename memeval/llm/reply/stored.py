"""Replies as the response cache keeps them, checked when they are read back."""

from __future__ import annotations

import json
from typing import Any

from memeval.llm.reply.body import CHARACTERS, NOTES, THINKING, count_of, seconds_of
from memeval.llm.reply.ranking import is_score
from memeval.llm.reply.text import without_controls, without_thinking
from memeval.llm.reply.tool_calls import stored_tool_calls


def stored_chat(value: bytes) -> dict[str, Any] | None:
    """An entry of the response cache; None if it is damaged, and so requested again."""
    entry = _parse_entry(value)
    if entry is None or not isinstance(entry.get("text"), str):
        return None

    # Only a reply to a request with tools has the member, and may be without text.
    has_tools = "tool_calls" in entry
    if has_tools and stored_tool_calls(entry["tool_calls"]) is None:
        return None
    if not has_tools and not entry["text"].strip():
        return None

    raw, finish, notes = entry.get("raw"), entry.get("finish_reason"), entry.get("notes", [])
    sound = sound_usage(entry.get("usage")) and _is_text(raw) and _is_text(finish)
    if (
        not sound
        or not isinstance(notes, list)
        or not all(isinstance(note, str) and note in NOTES for note in notes)
    ):
        return None

    # An earlier release kept replies as they came.
    clean, odd_characters = without_controls(entry["text"])
    text, thought = without_thinking(clean)
    if not text and not has_tools:
        return None

    odd = {THINKING: thought, CHARACTERS: odd_characters}
    notes = list(dict.fromkeys([*notes, *(name for name, is_so in odd.items() if is_so)]))

    return {
        **entry,
        "text": text,
        "raw": clean if thought else raw,
        "finish_reason": finish,
        "notes": notes,
    }


def stored_ranking(value: bytes, documents: int) -> dict[str, Any] | None:
    """An entry of the response cache that a reranker wrote; None for an unsound one."""
    entry = _parse_entry(value)
    if (
        entry is None
        or count_of(entry.get("tokens")) is None
        or not isinstance(entry.get("estimated"), bool)
    ):
        return None

    scores = entry.get("scores")
    sound = (
        isinstance(scores, list)
        and len(scores) == documents
        and all(is_score(score) for score in scores)
    )

    return entry if sound else None


def _parse_entry(value: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(value)
    except (ValueError, TypeError, RecursionError):
        return None

    if (
        not isinstance(entry, dict)
        or seconds_of(entry.get("latency_s")) is None
        or seconds_of(entry.get("wait_s")) is None
    ):
        return None

    return entry


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def sound_usage(usage: object) -> bool:
    """Whether a stored usage holds counts, and nothing else."""
    if not isinstance(usage, dict) or set(usage) != {
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "estimated",
    }:
        return False

    counts = (
        count_of(usage[name]) for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
    )
    return all(count is not None for count in counts) and isinstance(usage["estimated"], bool)
