"""A model's reply to the extraction's prompt, and the content of each item."""

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memeval.llm.reply.text import without_controls
from memeval.systems.cogcanvas.artifacts import KINDS

_BETWEEN = re.compile(r"[, \t\r\n]*")


class ItemsReply(Struct, frozen=True):
    items: tuple[Any, ...]
    """The complete members of its list."""
    closed: bool
    """False if the list breaks off: the reply was cut."""


def read_reply(text: str) -> ItemsReply | None:
    """The first JSON list in a reply; None without a list, or without a complete first member."""
    decoder = json.JSONDecoder()
    items: list[Any] = []
    # Text before the list is skipped; without a list, `at` is 0.
    at = text.find("[") + 1
    while at > 0:
        # The pattern also matches the empty string, so there is always a match.
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
        if text.startswith("]", at):
            return ItemsReply(tuple(items), closed=True)

        try:
            item, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            # A reply of brackets alone is nested as deep as it is long.
            break

        items.append(item)

    if not items:
        return None

    return ItemsReply(tuple(items), closed=False)


def kind_of(item: Mapping[str, Any]) -> str | None:
    """The type of an item: a key fact if the item names no type, None for an unknown type."""
    kind = text_of(item.get("type")).lower().replace(" ", "_") or "key_fact"
    return kind if kind in KINDS else None


def people_of(item: Mapping[str, Any], speaker: str) -> tuple[str, ...]:
    people = item.get("people")
    if not isinstance(people, list):
        return ()

    names = dict.fromkeys(map(text_of, people))
    return tuple(name for name in names if name not in ("", speaker))


def text_of(value: Any) -> str:
    """A string of a reply on one line; empty for anything else."""
    if not isinstance(value, str):
        return ""

    # The reply was cleaned when it arrived, but JSON escapes hide characters from that, and half of
    # a surrogate pair can't be saved.
    clean, _ = without_controls(value)
    return " ".join(clean.split("\n")).strip()


def named_chunk(item: Any) -> int:
    """The number of the chunk that an item names, from 1; 0 if it does not name one."""
    number = item.get("chunk") if isinstance(item, Mapping) else None
    # `int()` refuses strings of thousands of digits, which a runaway model may write.
    if isinstance(number, str) and len(number) < 10 and number.strip().isdecimal():
        return int(number)

    return number if isinstance(number, int) else 0
