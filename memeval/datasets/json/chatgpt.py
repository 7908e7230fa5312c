"""Reads `conversations.json` of an export of ChatGPT.

Each conversation is a tree (`mapping`): an answer that was asked for again is a branch of its own.
What the user saw last is the path from `current_node` up to the root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memeval.datasets.io.fields import Fields, kind_of
from memeval.errors import UserError

SPEAKERS = {"user": "user", "assistant": "ChatGPT"}
"""Who says what is kept, by the role of its author; system prompts and tools are left out."""


def conversations(exported: Any, path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The conversations as sessions in order of time, and notes of what was left out.

    Raises `UserError` with conversation and field for what is no such export.
    """
    if not isinstance(exported, list) or not exported:
        raise UserError(f"{path} holds {kind_of(exported)}, not a list of conversations.")

    left_out: Counter[str] = Counter()
    sessions = []
    for number, value in enumerate(exported):
        conversation = Fields.of(path, f"conversation {number}", value)
        turns = list(_turns(conversation, number, left_out))
        if not turns:
            left_out["conversations without a text"] += 1
            continue

        started = _time(conversation, "create_time")
        session = {"id": f"conversation {number}", "meta": {"title": value.get("title")}}
        sessions.append((started or "", session | ({"time": started} if started else {}), turns))

    # All times are in UTC and of one form, so their order as strings is that of time.
    # Times of turns may be missing or run backwards after a branch: the session's time is kept.
    ordered = sorted(sessions, key=lambda session: session[0])
    notes = [f"left out: {count:,} {what}" for what, count in sorted(left_out.items())]
    return [session | {"turns": turns} for _, session, turns in ordered], notes


def _turns(conversation: Fields, number: int, left_out: Counter[str]) -> Iterator[dict[str, str]]:
    """The turns on the path to the current node, the oldest first."""
    mapping = conversation.get("mapping", "an object")
    path = _path(conversation, mapping)
    left_out["messages of other branches"] += sum(
        name not in path and bool(node.get("message"))
        for name, node in mapping.items()
        if isinstance(node, dict)
    )

    for name in path:
        message = mapping[name].get("message")
        if not isinstance(message, dict):
            continue

        author = message.get("author")
        role = author.get("role") if isinstance(author, dict) else None
        text = _text(message.get("content"))
        metadata = message.get("metadata")
        hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
        if role not in SPEAKERS or hidden or not text:
            left_out["messages of the system, of tools, or without a text"] += 1
            continue

        yield {"id": f"{number}/{name}", "speaker": SPEAKERS[role], "text": text}


def _path(conversation: Fields, mapping: Mapping[str, Any]) -> dict[str, None]:
    """Names of the nodes from the root to the current one."""
    name: Any = conversation.text("current_node")
    # A tree may have tens of thousands of nodes: names are looked up, and not searched for.
    path: dict[str, None] = {}
    while name is not None:
        node = mapping.get(name) if isinstance(name, str) else None
        if not isinstance(node, dict):
            raise conversation.wrong("mapping", f"has no node '{name}'")

        if name in path:
            raise conversation.wrong("mapping", f"leads in a circle at node '{name}'")

        path[name] = None
        name = node.get("parent")

    return dict.fromkeys(reversed(path))


def _text(content: Any) -> str:
    """The text of a message; other parts, such as pictures, are left out."""
    if not isinstance(content, dict) or content.get("content_type") not in (
        "text",
        "multimodal_text",
    ):
        return ""

    parts = content.get("parts") or []
    # Some exporters write one part as it is, without a list.
    parts = [parts] if isinstance(parts, str) else parts
    texts = [part.strip() for part in parts if isinstance(part, str)]
    return "\n".join(text for text in texts if text)


def _time(conversation: Fields, name: str) -> str:
    """Seconds since 1970 as a time; empty where there are none."""
    seconds = conversation.values.get(name)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return ""

    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        raise conversation.wrong(name, "is not a time in seconds") from None
