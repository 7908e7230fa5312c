"""When the agent's window is cut, and which chunks it keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from memeval.datasets.granularity import Granularity
from memeval.datasets.granularity import chunks as cut
from memeval.pipeline.execute.timeline import OTHER_USER
from memeval.records import EvalCase, MemoryChunk

ROLLING_TURNS = 40
"""`compression_turn=rolling` compresses each time this many more turn pairs were ingested."""
PAIRS, CHUNKS = "pairs", "chunks"
"""Units that `compression_turn` and `retain_recent` count."""
Compressions = Mapping[int, int]
"""The cuts of a window: chunks that are ingested before each, and how many of them, the newest
ones, it keeps.
"""


class _Pair(Struct, frozen=True):
    """Position of a turn pair among the chunks, counted from 1."""

    first: int
    """The first chunk that holds a turn of it."""
    last: int
    """The chunk that completes it."""


def compression_points(turn: int | str, count: int) -> list[int]:
    """After how many of `count` pairs or chunks the window is cut; empty if it never is.

    `rolling` cuts once more at the end, before the questions.
    """
    if turn == "never":
        return []
    if turn == "rolling":
        return [*range(ROLLING_TURNS, count, ROLLING_TURNS), count] if count else []

    point = count // 2 if turn == "middle" else int(turn)
    # A turn past the end never comes. A note of the run says for how many cases.
    return [point] if 1 <= point <= count else []


def plan_compressions(
    *, turn: int | str, unit: str, retain: int, case: EvalCase, chunks: Sequence[MemoryChunk]
) -> Compressions:
    """The cuts of the window while a case is ingested.

    With `unit=pairs`, `turn` and `retain` both count turn pairs: the window is cut after the chunk
    that completes a pair, and keeps the chunks that hold the latest `retain` pairs.
    """
    if unit == CHUNKS:
        # Those of another user of the store come first; pairs leave them out by their turns.
        others = sum(chunk.user == OTHER_USER for chunk in chunks)
        points = compression_points(turn, len(chunks) - others)
        return {others + point: min(retain, point) for point in points}

    pairs = _pairs(case, chunks)
    keeps = {}
    for point in compression_points(turn, len(pairs)):
        end = pairs[point - 1].last
        # A chunk may complete several pairs: all that are in it were ingested with it.
        ingested = [pair for pair in pairs if pair.last <= end]
        latest = ingested[max(0, len(ingested) - retain) :]
        # With retain_recent=0 nothing is kept: the window then starts behind its end.
        start = min((pair.first for pair in latest), default=end + 1)
        keeps[end] = end + 1 - start

    return keeps


def _pairs(case: EvalCase, chunks: Sequence[MemoryChunk]) -> list[_Pair]:
    """Positions of the turn pairs among the chunks, in the order of the conversation.

    A pair is a round, as in `granularity=round`. If nobody replies, each turn is a pair. A pair
    that no chunk holds is left out.
    """
    speakers = {turn.speaker for turn in case.turns}
    name = "round" if len(speakers) > 1 else "turn"
    numbers: dict[str, list[int]] = {}
    for number, chunk in enumerate(chunks, start=1):
        for turn_id in chunk.turn_ids:
            numbers.setdefault(turn_id, []).append(number)

    pairs = []
    reached = 0
    for pair in cut(case, Granularity(name)):
        held = [number for turn_id in pair.turn_ids for number in numbers.get(turn_id, ())]
        # Chunks may overlap or be out of step with the pairs: a pair ends no earlier than the
        # one before it.
        reached = max([reached, *held])
        if reached:
            pairs.append(_Pair(first=min(held, default=reached), last=reached))

    return pairs
