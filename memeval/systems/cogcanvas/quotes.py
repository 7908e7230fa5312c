"""Finds a quote in the chunk that it comes from, or the sentence that was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memeval.records import MemoryChunk
from memeval.retrieval.bm25 import terms

LEAST_OVERLAP = 0.5
"""Share of the terms of a quote and a sentence together that both must hold for the sentence to be
used in place of the quote.
"""

_MARKS, _CLOSING = r"[.!?…]++", r"[\"'”’)]*+"
_SENTENCE = re.compile(rf"\S(?:[^.!?…]++|{_MARKS}(?!{_CLOSING}\s))*+(?:{_MARKS}{_CLOSING})?")
"""No part of it is tried twice: a text of full stops alone takes no longer than another."""
_LONGEST_LOOSE = 2_000
"""Characters up to which a quote is searched for under other punctuation; no utterance is quoted at
greater length.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One turn of a chunk; the whole chunk where its turns can't be told apart."""

    start: int
    """Where its words start in the chunk's content, without the speaker's name."""
    text: str
    speaker: str
    turn_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A quote in its place."""

    line: Line
    quote: str
    """Verbatim."""
    start: int
    """Within the chunk's content."""


def lines(chunk: MemoryChunk) -> Iterator[Line]:
    """The turns of a chunk: one per line where there are as many of both, else all of it as one."""
    parts = chunk.content.split("\n")
    is_apart = len(parts) == len(chunk.turn_ids)
    start = 0
    for number, part in enumerate(parts if is_apart else [chunk.content]):
        speaker = ""
        if is_apart or len(chunk.speakers) == 1:
            named = (name for name in chunk.speakers if part.startswith(f"{name}: "))
            speaker = next(named, "")

        skipped = len(speaker) + 2 if speaker else 0

        yield Line(
            start=start + skipped,
            text=part[skipped:],
            speaker=speaker,
            turn_ids=chunk.turn_ids[number : number + 1] if is_apart else chunk.turn_ids,
        )
        start += len(part) + 1


def verbatim(quote: str, chunk: MemoryChunk) -> Found | None:
    """The quote where one turn of the chunk holds it letter for letter."""
    for line in lines(chunk):
        words = quote.strip().removeprefix(f"{line.speaker}: ") if line.speaker else quote.strip()
        if words and (place := line.text.find(words)) >= 0:
            return Found(line, words, line.start + place)

    return None


def nearest(quote: str, chunk: MemoryChunk) -> Found | None:
    """The words that were meant.

    The same under other punctuation and case, else the sentence that shares most terms with the
    quote.
    """
    wanted = terms(quote)
    if not wanted:
        return None

    words = r"[^a-z0-9]+".join(wanted) if len(quote) <= _LONGEST_LOOSE else None
    loose = re.compile(rf"\b{words}\b", re.IGNORECASE) if words else None
    asked = set(wanted)
    best: tuple[float, Found | None] = (LEAST_OVERLAP, None)
    for line in lines(chunk):
        if loose and (match := loose.search(line.text)):
            return Found(line, match.group(), line.start + match.start())

        for sentence in _SENTENCE.finditer(line.text.removesuffix("\n")):
            held = set(terms(sentence.group()))
            overlap = len(held & asked) / len(held | asked)
            if overlap >= best[0] and (best[1] is None or overlap > best[0]):
                best = (overlap, Found(line, sentence.group(), line.start + sentence.start()))

    return best[1]
