"""The scratchpad: notes on each pair in order of time, condensed if they grow too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memeval.llm.tokens import count_tokens


def is_too_long(notes: Sequence[str], tokens: int) -> bool:
    """Whether notes have more than twice the tokens that they are condensed to."""
    # Twice, as published: 28,000 tokens there are condensed to 14,000.
    return sum(map(count_tokens, notes)) > 2 * tokens


def pieces(notes: Sequence[str], tokens: int) -> Iterator[str]:
    """The notes in pieces of whole lines, each of at most `tokens`; a longer line is a piece."""
    lines: list[str] = []
    room = tokens
    for line in (line for note in notes for line in note.splitlines() if line.strip()):
        size = count_tokens(line)
        if lines and size > room:
            yield "\n".join(lines)
            lines, room = [], tokens

        lines.append(line)
        room -= size

    if lines:
        yield "\n".join(lines)
