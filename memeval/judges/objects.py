"""The parts of a judge's reply: the reply without its thinking, and its only JSON object."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from msgspec import Struct

from memeval.judges.quoting import QuotableTexts
from memeval.llm.reply.text import HARMONY, THINKING_MARKS, without_thinking

LONGEST = 100_000
"""Maximum characters of a reply; a longer one has none of the requested forms."""
MAX_MARKS = 16
"""Maximum thinking marks after which a reply is read if the data also contains such a mark."""
_OPENING_QUOTES = "\"'\u2018\u201c\u201e\u201a\u00ab\u2039\u300c\u300e"


class ReplyObject(Struct, frozen=True):
    """The only object of a reply."""

    values: Mapping[str, Any]
    text: str
    """The object as it is written in the reply."""
    around: str
    """The rest of the reply."""

    def members(self) -> dict[str, Any]:
        """The values by lower-case name; of names that differ only in case, the last one."""
        return {name.casefold(): value for name, value in self.values.items()}


def only_object(text: str) -> ReplyObject | None:
    if len(text) > LONGEST:
        return None

    try:
        objects = list(_objects(text))
    except (ValueError, RecursionError):
        # A brace that does not open an object: a later object may be a part of a broken one.
        return None

    if not objects:
        return None

    around, done = [], 0
    for values, start, end in objects:
        if values != objects[0][0]:
            return None

        around.append(text[done:start])
        done = end

    around.append(text[done:])
    values, start, end = objects[0]
    return ReplyObject(values=values, text=text[start:end], around=" ".join(around))


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Every outermost object with its start and end.

    Raises `ValueError` at a brace that does not open an object, and at a quoted object.
    """
    # Not strict, because models write line breaks within strings.
    decoder = json.JSONDecoder(object_pairs_hook=_unique_members, strict=False)
    start = text.find("{")
    while start >= 0:
        values, end = decoder.raw_decode(text, start)
        before = text[max(0, start - 20) : start].rstrip(" \t")
        # In Markdown, `>` begins a quotation.
        if before.endswith((*_OPENING_QUOTES, "\n>")) or before == ">":
            raise ValueError("a quotation")

        yield values, start, end
        start = text.find("{", end)


def _unique_members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key occurs twice")

    return values


def reason_of(verdict: ReplyObject) -> str:
    members = verdict.members()
    for name in ("reason", "reasoning"):
        reason = members.get(name)
        if isinstance(reason, str):
            return reason

    return ""


def spoken_parts(reply: str, data: QuotableTexts) -> list[str]:
    """The reply without the thinking before it; empty if the thinking does not end, or ends twice.
    If the data contains a thinking mark, a mark in the reply may be a quotation: then the parts are
    the whole reply, and the text after each mark.
    """
    if (THINKING_MARKS.search(reply) or HARMONY.search(reply)) and data.has_marks():
        # The ends of thinking: closing marks, then the marks before a gpt-oss answer.
        closing = (mark for mark in THINKING_MARKS.finditer(reply) if mark["close"] is not None)
        ends = islice(chain(closing, HARMONY.finditer(reply)), MAX_MARKS)
        return [reply.strip(), *(reply[mark.end() :].strip() for mark in ends)]

    spoken = _after_thinking(reply)
    return [spoken] if spoken else []


@lru_cache(maxsize=16)
def _after_thinking(reply: str) -> str:
    """The reply without the thinking before it, or empty. Cached: a reply is read several times."""
    opened = closed = 0
    for mark in THINKING_MARKS.finditer(reply):
        opened += mark["open"] is not None
        closed += mark["close"] is not None

    spoken, _ = without_thinking(reply)
    return spoken if closed <= max(1, opened) else ""
