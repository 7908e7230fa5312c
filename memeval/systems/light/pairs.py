"""Pairs of a conversation: one speaker's words and the other's reply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memeval.records import MemoryChunk

Pair = tuple[MemoryChunk, ...]


def is_closed(pair: Sequence[MemoryChunk]) -> bool:
    """Whether a pair takes no further chunk: it has two, or one in which several speak."""
    return len(pair) > 1 or any(len(set(chunk.speakers)) > 1 for chunk in pair)


def pairs_of(chunks: Sequence[MemoryChunk]) -> Iterator[Pair]:
    """Pairs of neighbours in a session; or single chunks of several speakers or at its end."""
    pair: list[MemoryChunk] = []
    for chunk in chunks:
        if pair and pair[0].session_id != chunk.session_id:
            yield tuple(pair)
            pair = []

        pair.append(chunk)
        if is_closed(pair):
            yield tuple(pair)
            pair = []

    if pair:
        yield tuple(pair)


def content_of(pair: Pair) -> str:
    """The words of a pair, without a date."""
    return "\n".join(chunk.content for chunk in pair)


def text_of(pair: Pair) -> str:
    """A pair as a reader is shown it: under one date, that of its first chunk."""
    first, *rest = pair
    return "\n".join([first.text, *(chunk.content for chunk in rest)])


def turns_of(pair: Pair) -> tuple[str, ...]:
    return tuple(dict.fromkeys(turn_id for chunk in pair for turn_id in chunk.turn_ids))
