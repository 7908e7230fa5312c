"""The body of a reply: its JSON, and the fields shared by chats, embeddings and rankings."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from memeval.errors import ModelError
from memeval.results.fields import read_json
from memeval.text.shown import one_line
from memeval.text.typed import convert, fault_in

MAX_TOKENS = 10_000_000
"""A larger number is not a token count of one call: no context window is that large."""
MAX_SECONDS = 1e7
TokenCount = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]

ODD_USAGE, THINKING, CHARACTERS, PARTS = "odd_usage", "thinking", "control_characters", "odd_parts"
NOTES = {
    ODD_USAGE: "the endpoint reported a usage that is not a token count, so memeval counted the "
    "tokens",
    THINKING: "thinking in a reply (<think> and the like) is not part of the answer",
    CHARACTERS: "control characters and broken characters were removed from replies",
    PARTS: "parts of a reply that are not text were left out",
}
"""The report's sentence about each repair."""


class UnsoundReplyError(ModelError):
    """A reply under status 200 without the requested content."""


class IndexedRow(Struct):
    """The result for one of the items sent."""

    index: int | None = None
    """Position of the item, from 0."""


T = TypeVar("T", bound=Struct)
Row = TypeVar("Row", bound=IndexedRow)


class WithoutTextError(ModelError):
    """A reply without text, but possibly billed."""

    def __init__(self, message: str, usage: Mapping[str, Any] | None = None) -> None:
        """`usage` is that of a `ChatReply`; None if the request itself was refused."""
        super().__init__(message)
        self.usage = usage


class CutReplyError(WithoutTextError):
    """The token limit was reached before the reply began."""


class FilteredReplyError(WithoutTextError):
    """The provider's filter withheld the reply."""


def parse(content: bytes, content_type: str = "") -> Mapping[str, Any]:
    """The JSON object in a body. Raises `UnsoundReplyError`."""
    try:
        parsed = _loads(content)
    except (ValueError, RecursionError) as error:
        raise UnsoundReplyError(_describe_non_json(content, content_type)) from error

    if not isinstance(parsed, dict):
        raise UnsoundReplyError("the reply is not a JSON object")

    return parsed


def _loads(content: bytes) -> Any:
    try:
        return read_json(content)
    except ValueError as error:
        if "integer string conversion" not in str(error):
            raise

        # An integer with thousands of digits must not invalidate the rest: it is read as infinity.
        return json.loads(
            content, parse_int=lambda digits: int(digits) if len(digits) < 400 else math.inf
        )


def read(reply: Mapping[str, Any], wanted: type[T]) -> T:
    """A reply as a typed record. Raises `UnsoundReplyError` that names the invalid member."""
    try:
        return convert(reply, wanted)
    except ValueError as error:
        fault = one_line(fault_in(error))
        raise UnsoundReplyError(f"the reply is malformed: {fault}") from error


def is_error_page(content: bytes, content_type: str) -> bool:
    """Whether a body is typical of a failing gateway: an HTML page, or nothing."""
    return not content.strip() or _is_html(content, content_type)


def _is_html(content: bytes, content_type: str) -> bool:
    start = content[:512].lstrip().lower()
    return (
        start.startswith((b"<!doctype", b"<html", b"<head", b"<body"))
        or "html" in content_type.lower()
    )


def _describe_non_json(content: bytes, content_type: str) -> str:
    if not content.strip():
        return "the reply is empty: it has no body"
    if _is_html(content, content_type):
        return "the reply is an HTML page instead of JSON: is this the URL of an API?"
    if content.lstrip().startswith((b"data:", b"event:")):
        return "the reply is a stream of events instead of JSON"

    return "the reply is not JSON"


def count_of(value: object) -> int | None:
    """A count of tokens; None for a value that is not one."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_TOKENS:
        return None

    return value


def odd_notes(thought: bool, odd_characters: bool) -> tuple[str, ...]:
    """The notes on parts that were removed from a text."""
    odd = {THINKING: thought, CHARACTERS: odd_characters}
    return tuple(name for name, is_so in odd.items() if is_so)


def in_order(rows: Sequence[Row], count: int, row_noun: str, item_noun: str) -> Sequence[Row]:
    """Rows sorted by `index`, which must number them from 0; in the given order if none has one."""
    if len(rows) != count:
        raise UnsoundReplyError(f"the reply has {len(rows)} {row_noun}s for {count} {item_noun}s")

    by_index = {row.index: row for row in rows}
    if by_index.keys() == {None}:
        return rows
    if by_index.keys() != set(range(count)):
        raise UnsoundReplyError(f"the indices of the reply don't match its {count} {item_noun}s")

    return [by_index[index] for index in range(count)]


def batch_tokens(usage: object, *names: str) -> tuple[int | None, tuple[str, ...]]:
    """The first of a usage's counts under any of `names`, and the notes on it."""
    if usage is None or usage == {}:
        return None, ()
    if not isinstance(usage, dict):
        return None, (ODD_USAGE,)

    value = next((usage[name] for name in names if usage.get(name) is not None), None)
    count = count_of(value)
    # Servers that don't count tokens report 0.
    if not count:
        return None, (ODD_USAGE,)

    return count, ()
