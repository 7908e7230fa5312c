"""Fills a memory with the chunks of a case, and checks how many of them it lost."""

from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from memeval.errors import IngestLossError
from memeval.llm.metering import Ledger
from memeval.pipeline.execute.compression import Compressions
from memeval.pipeline.isolate.watch import Watched
from memeval.records import MOST, IngestHealth, MemoryChunk
from memeval.systems.base import MemorySystem
from memeval.text.shown import one_line

CUT_REPLIES = "cut_replies"
"""Name of the note on replies that were cut."""


async def health_of_ingest(watched: Watched, chunks: int, ledger: Ledger) -> IngestHealth:
    """Health as the system reports it; else each failed or cut call counts as a lost chunk."""
    health = await watched.call("health")
    if health is None:
        # Several calls for one chunk may fail: the loss can't exceed the number of chunks.
        lost = min(chunks, ledger.failed + ledger.cut_calls + ledger.filtered_calls)
        return IngestHealth(asked=chunks, stored=chunks - lost, lost=lost)

    if not isinstance(health, IngestHealth):
        raise watched.misuse(
            "health", f"it must return an IngestHealth, but returned {type(health).__name__}"
        )

    counts = [health.asked, health.stored, health.lost]
    # True and False are ints in Python.
    are_whole = [isinstance(count, int) and not isinstance(count, bool) for count in counts]
    if not all(are_whole) or min(counts) < 0 or max(counts) > MOST or health.lost > health.asked:
        raise watched.misuse(
            "health",
            f"asked, stored and lost must be whole numbers from 0 to {MOST:,}, lost at most asked: "
            f"{one_line(counts)}",
        )

    return health


def check_loss(health: IngestHealth, most: float, ledger: Ledger | None = None) -> None:
    """Raises `IngestLossError` if too much was lost; the message counts replies that were cut."""
    if health.lost_share <= most:
        return

    message = f"{health.summary}, but max_ingest_loss allows only {100 * most:.1f} %"
    if ledger is not None and ledger.cut_calls:
        message += f"; {_cut_replies(ledger)} (llm.ingest.max_tokens)"

    raise IngestLossError(message)


def _cut_replies(ledger: Ledger) -> str:
    return f"{ledger.cut_calls} of {ledger.calls} replies were cut at their token limit"


def notes_of_ingest(ledger: Ledger) -> dict[str, Any]:
    """Notes on the replies at ingest that were cut, withheld or repaired."""
    notes = dict(ledger.notes)
    if ledger.cut_calls:
        notes[CUT_REPLIES] = _cut_replies(ledger)

    if ledger.filtered_calls:
        notes["filtered_replies"] = (
            f"the provider's filter withheld {ledger.filtered_calls} of {ledger.calls} replies"
        )

    return notes


async def await_ready(watched: Watched) -> bool:
    """Waits until everything ingested can be found; returns whether the system has such a wait."""
    # Looked up first: no waiting time is recorded for a system without this method.
    if type(watched.system).await_ready is MemorySystem.await_ready:
        return False

    await watched.call("await_ready")
    return True


async def ingest(
    watched: Watched, chunks: Sequence[MemoryChunk], points: Sequence[int], retain: int
) -> None:
    """Ingests chunks into a system that belongs to no cell."""
    await watched.run(ingest_calls(chunks, dict.fromkeys(points, retain)))
    await await_ready(watched)


def ingest_calls(
    chunks: Sequence[MemoryChunk],
    compressions: Compressions,
    first: int = 0,
    end: int | None = None,
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The calls that ingest the chunks of `[first, end)`: method names and arguments."""
    if first == 0:
        yield "reset", ()

    for count, chunk in enumerate(chunks[first:end], start=first + 1):
        yield "ingest", (chunk,)
        # After the chunk: a cut keeps the newest chunks, this one included.
        if count in compressions:
            yield "compress", (tuple(chunks[max(0, count - compressions[count]) : count]),)

    yield "consolidate", ()


async def await_value(value: Any) -> Any:
    """The value, awaited if it is awaitable."""
    return await value if isinstance(value, Awaitable) else value
