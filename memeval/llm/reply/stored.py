"""Replies as the response cache stores them, checked when they are read back."""

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from memeval.llm.reply.body import MAX_SECONDS, NOTES, TokenCount, odd_notes
from memeval.llm.reply.ranking import Score
from memeval.llm.reply.text import without_controls, without_thinking
from memeval.text.typed import decoder

T = TypeVar("T", bound=Struct)
Seconds = Annotated[float, Meta(ge=0, le=MAX_SECONDS)]


class _Usage(Struct, forbid_unknown_fields=True):
    prompt_tokens: TokenCount
    completion_tokens: TokenCount
    cached_tokens: TokenCount
    estimated: bool


class _Chat(Struct):
    text: str
    usage: _Usage
    latency_s: Seconds
    wait_s: Seconds
    raw: str | None = None
    finish_reason: str | None = None
    notes: list[Literal[tuple(NOTES)]] = []  # type: ignore[valid-type]
    tool_calls: list[Annotated[list[str], Meta(min_length=3, max_length=3)]] | UnsetType = UNSET
    """Set only for a request with tools, whose reply may be without text."""
    model: str | UnsetType = UNSET
    """The model that the reply named, or the requested one. An earlier release did not store it."""


class _Ranking(Struct):
    scores: list[Score]
    tokens: TokenCount
    estimated: bool
    latency_s: Seconds
    wait_s: Seconds


def stored_chat(value: bytes) -> dict[str, Any] | None:
    """A chat reply from the response cache; None if it is damaged and must be requested again."""
    chat = _read(value, _Chat)
    if chat is None:
        return None

    # An earlier release stored replies unchanged.
    clean, odd_characters = without_controls(chat.text)
    text, thought = without_thinking(clean)
    if not text.strip() and chat.tool_calls is UNSET:
        return None

    entry: dict[str, Any] = msgspec.to_builtins(chat)
    entry["notes"] = list(dict.fromkeys([*chat.notes, *odd_notes(thought, odd_characters)]))
    entry["text"] = text
    if thought:
        entry["raw"] = clean

    return entry


def stored_ranking(value: bytes, documents: int) -> dict[str, Any] | None:
    """A reranker's reply from the response cache; None if it is unsound."""
    ranking = _read(value, _Ranking)
    if ranking is None or len(ranking.scores) != documents:
        return None

    entry: dict[str, Any] = msgspec.to_builtins(ranking)
    return entry


def _read(value: bytes, wanted: type[T]) -> T | None:
    try:
        return decoder(wanted).decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
