"""The times at which the agent's window is cut, and the chunks that it keeps."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks as cut
from memeval.pipeline.execute.timeline import OTHER_USER
from memeval.records import EvalCase, MemoryChunk

ROLLING_TURNS = 40
"""Turn pairs (or chunks) between two cuts of the window under `compression_turn=rolling`."""
PAIRS, CHUNKS = "pairs", "chunks"
"""Units in which `compression_turn` and `retain_recent` count."""
Compressions = Mapping[int, int]
"""The cuts of a window: chunks ingested before each, and the number of the newest that it keeps."""


class _Pair(Struct, frozen=True):
    """Position of a turn pair among the chunks, counted from 1."""

    first: int
    """The first chunk that contains one of its turns."""
    last: int
    """The chunk that completes it."""


def compression_points(turn: int | str, count: int) -> list[int]:
    """The numbers of pairs or chunks, up to `count`, after which the window is cut.

    `rolling` cuts once more at the end, before the questions.
    """
    if not count:
        return []
    if turn == "rolling":
        return [*range(ROLLING_TURNS, count, ROLLING_TURNS), count]

    point = count // 2 if turn == "middle" else int(turn)
    # A turn past the end is never reached. A note of the run counts such cases.
    return [point] if 1 <= point <= count else []


def plan_compressions(
    *, turn: int | str, unit: str, retain: int, case: EvalCase, chunks: Sequence[MemoryChunk]
) -> Compressions:
    """The cuts of the window while a case is ingested.

    With `unit=pairs`, `turn` and `retain` both count turn pairs: the window is cut after the chunk
    that completes a pair, and keeps the chunks that contain the latest `retain` pairs.
    """
    if turn == "never":
        return {}

    if unit == CHUNKS:
        # Chunks of the store's other user come first. Pairs leave them out: they have no turn ids.
        others = sum(chunk.user == OTHER_USER for chunk in chunks)
        points = compression_points(turn, len(chunks) - others)
        return {others + point: min(retain, point) for point in points}

    pairs = _pairs(case, chunks)
    keeps = {}
    for point in compression_points(turn, len(pairs)):
        end = pairs[point - 1].last
        # A chunk may complete several pairs: all of them were ingested with it.
        ingested = [pair for pair in pairs if pair.last <= end]
        latest = ingested[max(0, len(ingested) - retain) :]
        # With retain_recent=0 nothing is kept: the window then starts after the cut.
        start = min((pair.first for pair in latest), default=end + 1)
        keeps[end] = end + 1 - start

    return keeps


def _pairs(case: EvalCase, chunks: Sequence[MemoryChunk]) -> list[_Pair]:
    """Positions of the turn pairs among the chunks, in the order of the conversation.

    A pair is a round, as in `granularity=round`. Without replies, each turn is a pair. A pair
    that no chunk contains gets the position of the one before, or is left out if it is first.
    """
    speakers = {turn.speaker for turn in case.turns}
    granularity = GranularityConfig("round" if len(speakers) > 1 else "turn")
    numbers: dict[str, list[int]] = {}
    for number, chunk in enumerate(chunks, start=1):
        for turn_id in chunk.turn_ids:
            numbers.setdefault(turn_id, []).append(number)

    pairs = []
    reached = 0
    for pair in cut(case, granularity):
        positions: list[int] = []
        for turn_id in pair.turn_ids:
            positions += numbers.get(turn_id, ())

        # Chunks may overlap or be out of step with the pairs: a pair ends no earlier than the
        # one before it.
        reached = max([reached, *positions])
        if reached:
            pairs.append(_Pair(first=min(positions, default=reached), last=reached))

    return pairs
