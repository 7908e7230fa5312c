"""Chunks of a fixed number of characters, cut from the ingested chunks of each session.

Each new chunk knows the turns that it covers.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from memeval.records import MemoryChunk
from memeval.text.words import is_unspaced

Span = tuple[int, int, tuple[str, ...]]
"""Start, end and turn ids of a part of the joined content."""


def rechunk(chunks: Sequence[MemoryChunk], size: int, overlap: int) -> list[MemoryChunk]:
    """Joins each session's chunks by line breaks and cuts the result into chunks of equal size.

    A new chunk has the date of its session, and never spans two sessions.
    """
    sessions: dict[str, list[MemoryChunk]] = {}
    for chunk in chunks:
        sessions.setdefault(chunk.session_id, []).append(chunk)

    cut: list[MemoryChunk] = []
    for members in sessions.values():
        cut += _cut_session(members, size, overlap)

    return cut


def windows(text: str, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Start and end of each window over `text`.

    A window has at most `size` characters and shares about `overlap` of them with the one before.
    Both ends are between words, but a word longer than `size` is cut.
    """
    start = 0
    while start < len(text):
        end = _word_end(text, start, start + size)
        yield start, end
        if end == len(text):
            return

        start = _word_start(text, max(end - overlap, start + 1), end)
        # A window that does not end later contains nothing new.
        while _word_end(text, start, start + size) <= end:
            start = _word_start(text, start + 1, end)


def _word_end(text: str, start: int, limit: int) -> int:
    if limit >= len(text):
        return len(text)

    end = limit
    while end > start and not _is_border(text, end):
        end -= 1

    return end if end > start else limit


def _is_border(text: str, position: int) -> bool:
    """Whether text may be cut before a position: at white space, or in scripts without spaces."""
    before, after = text[position - 1], text[position]
    return before.isspace() or after.isspace() or is_unspaced(before) or is_unspaced(after)


def _word_start(text: str, start: int, end: int) -> int:
    while start < end and not (text[start - 1].isspace() or is_unspaced(text[start])):
        start += 1

    while start < len(text) and text[start].isspace():
        start += 1

    return start


def _cut_session(chunks: Sequence[MemoryChunk], size: int, overlap: int) -> Iterator[MemoryChunk]:
    text = "\n".join(chunk.content for chunk in chunks)
    spans = list(_spans(chunks))
    speakers = tuple(dict.fromkeys(chain.from_iterable(chunk.speakers for chunk in chunks)))
    first = chunks[0]

    for number, (start, end) in enumerate(windows(text, size, overlap)):
        content = text[start:end].strip()
        turn_ids: dict[str, None] = {}
        for begin, stop, turns in spans:
            if begin < end and stop > start:
                turn_ids |= dict.fromkeys(turns)

        if content:
            yield MemoryChunk(
                chunk_id=f"{first.session_id}/p{number}",
                content=content,
                time=first.time,
                session_id=first.session_id,
                turn_ids=tuple(turn_ids),
                speakers=speakers,
            )


def _spans(chunks: Sequence[MemoryChunk]) -> Iterator[Span]:
    """One span per turn if a chunk has one line per turn, else one for the whole chunk."""
    start = 0
    for chunk in chunks:
        lines = chunk.content.split("\n")
        # If a turn contains line breaks, lines can't be matched with turns.
        if len(lines) == len(chunk.turn_ids):
            for line, turn in zip(lines, chunk.turn_ids, strict=True):
                yield start, start + len(line), (turn,)
                start += len(line) + 1
        else:
            yield start, start + len(chunk.content), chunk.turn_ids
            start += len(chunk.content) + 1
