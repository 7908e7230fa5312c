"""Events for expressions of time that no artifact quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memeval.records import MemoryChunk
from memeval.systems.cogcanvas.artifacts import Artifact, Batch
from memeval.systems.cogcanvas.dates import time_expressions
from memeval.systems.cogcanvas.quotes import Line, lines

# As published.
AROUND = 100
"""Characters on both sides of an expression of time that its event keeps."""

Dates = Callable[[str, MemoryChunk, str], tuple[str, ...]]
"""Resolves a quote of a chunk; the third argument is the date that a model claims."""


def events_of_times(
    cut: Sequence[Batch], artifacts: Sequence[Artifact], dates_of: Dates
) -> list[Artifact]:
    """One event per expression of time that no artifact of its chunk quotes."""
    events = []
    for batch_number, batch in enumerate(cut):
        for chunk_index, chunk in batch:
            quoted = [artifact for artifact in artifacts if artifact.chunk_index == chunk_index]
            for line, start, expression in _find_unquoted(chunk, quoted):
                dates = dates_of(expression, chunk, "")
                moment = dates[0] if dates else expression
                around = line.text[max(0, start - AROUND) : start + len(expression) + AROUND]
                event = Artifact(
                    kind="event",
                    content=f"TIME: {moment} (originally: {expression}) - {around}",
                    quote=expression,
                    speaker=line.speaker,
                    turn_ids=line.turn_ids,
                    time=chunk.time,
                    dates=dates,
                    people=(),
                    chunk_index=chunk_index,
                    start=line.start + start,
                    batch=batch_number,
                )
                events.append(event)

    return events


def _find_unquoted(
    chunk: MemoryChunk, quoted: Sequence[Artifact]
) -> Iterator[tuple[Line, int, str]]:
    """Each expression of time outside of all quotes: its line, its start there, its words."""
    # Lines come from the content, which is without the date that memeval puts before a chunk. So
    # that date never becomes an event. In the published code it does: on LoCoMo, without a single
    # reply of a model, that alone makes 3,094 artifacts from 2,938 turns.
    for line in lines(chunk):
        for start, expression in time_expressions(line.text):
            if not _is_quoted(line.start + start, quoted):
                yield line, start, expression


def _is_quoted(position: int, artifacts: Sequence[Artifact]) -> bool:
    """Whether a position in a chunk's content is inside the quote of one of its artifacts."""
    return any(
        artifact.start <= position < artifact.start + len(artifact.quote) for artifact in artifacts
    )
