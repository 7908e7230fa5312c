"""Builds the memory of one case, once: loads it if it was saved, else ingests the case and saves
the result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from memeval.config.schema import PREPARE
from memeval.errors import FailedMemoryError, MemevalError, StorageError, UserError
from memeval.llm.metering import Ledger, metered, totals
from memeval.pipeline.execute.compression import plan_compressions
from memeval.pipeline.execute.ingest import (
    await_ready,
    check_loss,
    fill,
    health_of_ingest,
    ingest_calls,
    notes_of_ingest,
)
from memeval.pipeline.execute.memory import (
    MANIFEST,
    Memory,
    describe_memory,
    load_memory,
    save_memory,
)
from memeval.pipeline.execute.question import failure_message, plus
from memeval.pipeline.execute.stored import count_items
from memeval.pipeline.execute.timeline import CaseUntil, Part, operate, parts_after, parts_of
from memeval.pipeline.execute.tool_writer import CaseWriter
from memeval.pipeline.isolate.returned import plain_notes
from memeval.pipeline.isolate.watch import Watched
from memeval.pipeline.open.cell import Cell
from memeval.process.private import FILE_MODE, make_folder
from memeval.records import EvalCase, MemoryChunk
from memeval.results import json_line, write_atomically
from memeval.results.files import dump_file
from memeval.results.rows import OperationDone
from memeval.store.memories import SharedMemories
from memeval.text.names import digest_name
from memeval.text.redaction import without_known_in
from memeval.text.shown import one_line

Writer = Callable[[Watched], CaseWriter]

UNLISTED = "what the memory holds could not be listed"
WAIT_S = 0.05
"""Between two looks whether another builder of the same memory is done."""


async def build_memory(
    cell: Cell,
    case: EvalCase,
    chunks: Sequence[MemoryChunk],
    fresh: Callable[[], Watched],
    seed: int,
    *,
    writer: Writer | None = None,
    shared: SharedMemories | None = None,
    failed: dict[Path, str],
) -> Memory:
    """The memory of a case: loaded if one with the same key was saved whole, else built and saved
    if the system can be.

    `writer` writes it by its tools; without, it is given the chunks. `shared` are memories of other
    machines: one that is missing here is fetched from there, and one that is built is put there.

    Raises `IngestLossError` if more was lost than the config allows: such a memory is not saved,
    and not asked; `FailedMemoryError` for one that is in `failed`.
    """
    # The id comes from the data: `..` or `a/b` would lead elsewhere. A digest names the folder; the
    # manifest and `meta.json` hold the id.
    folder = cell.memory_folder(seed) / digest_name(case.case_id)
    identity = {"case_id": case.case_id, "key": cell.keys(seed).prepare}

    async with _building(folder):
        is_due = _is_due(cell, folder)
        if shared is not None and not is_due and not folder.exists():
            await shared.fetch(folder, identity["key"], MANIFEST)

        loaded = None if is_due else await load_memory(cell, folder, identity, fresh)
        if loaded is not None:
            return loaded

        if folder in failed:
            raise FailedMemoryError(failed[folder])

        try:
            memory = await _build(
                cell, case, chunks, fresh, folder=folder, identity=identity, writer=writer
            )
        except (StorageError, UserError):
            raise  # these concern the whole run
        except Exception as error:
            failed[folder] = failure_message(error)
            raise

        if shared is not None and memory.saved:
            try:
                await shared.put(folder, identity["key"], MANIFEST)
            except BaseException:
                # The caller never gets this memory, and so can't close it.
                await memory.close()
                raise

        return memory


async def imagine_memory(
    cell: Cell,
    case: EvalCase,
    chunks: Sequence[MemoryChunk],
    fresh: Callable[[], Watched],
    seed: int,
    *,
    writer: Writer | None = None,
) -> Memory:
    """The memory of a case, for an estimate: loaded if one was saved, else built and not saved.

    Losses are allowed: they come from replies that were made up.
    """
    folder = cell.memory_folder(seed) / digest_name(case.case_id)
    identity = {"case_id": case.case_id, "key": cell.keys(seed).prepare}
    if cell.config.fresh != PREPARE:
        loaded = await load_memory(cell, folder, identity, fresh)
        if loaded is not None:
            return loaded

    parts = parts_of(case, chunks)
    watched = fresh()
    by_tools = None if writer is None else writer(watched)
    return await _ingest(cell, case, chunks, watched, parts, writer=by_tools, allow_losses=True)


_made_again: set[Path] = set()
"""Folders of memories that this process built again under `fresh=prepare`: cells of a sweep share
one.
"""


def _is_due(cell: Cell, folder: Path) -> bool:
    """Whether a memory is to be built again although it is there."""
    if cell.config.fresh != PREPARE or folder in _made_again:
        return False

    _made_again.add(folder)
    return True


async def _build(
    cell: Cell,
    case: EvalCase,
    chunks: Sequence[MemoryChunk],
    fresh: Callable[[], Watched],
    *,
    folder: Path,
    identity: Mapping[str, str],
    writer: Writer | None,
) -> Memory:
    """Ingests a case, and saves its memory."""
    watched, parts = await _continue(cell, case, chunks, fresh, folder=folder, identity=identity)
    by_tools = None if writer is None else writer(watched)
    memory = await _ingest(cell, case, chunks, watched, parts, writer=by_tools)
    # Before the save: a memory that is loaded brings its count along.
    items, trouble = await _list_items(watched, by_tools)
    if items is not None:
        memory = replace(memory, stored=await asyncio.to_thread(count_items, items, case))

    saved, unsaved = await save_memory(memory, folder, identity, describe_memory(cell, identity))
    trouble = trouble or _write_items(items or (), dump_file(folder))
    if trouble:
        memory = replace(memory, notes={**memory.notes, "dump": f"{UNLISTED}: {trouble}"})

    return replace(memory, saved=saved, unsaved=unsaved)


async def _continue(
    cell: Cell,
    case: EvalCase,
    chunks: Sequence[MemoryChunk],
    fresh: Callable[[], Watched],
    *,
    folder: Path,
    identity: Mapping[str, str],
) -> tuple[Watched, list[Part]]:
    """The system that a case is ingested into, and the parts that are left to ingest.

    It holds the memory of the latest earlier checkpoint that was saved, else nothing. It was not
    asked there: answers never flow into a memory.
    """
    parts = parts_of(case, chunks)
    earlier = case.earlier if isinstance(case, CaseUntil) else ()
    for session_id, case_id in reversed(earlier):
        saved = folder.with_name(digest_name(case_id))
        known = {**identity, "case_id": case_id}
        memory = await load_memory(cell, saved, known, fresh)
        if memory is not None:
            return memory.watched, parts_after(parts, session_id)

    return fresh(), parts


async def _ingest(
    cell: Cell,
    case: EvalCase,
    chunks: Sequence[MemoryChunk],
    watched: Watched,
    parts: Sequence[Part],
    *,
    writer: CaseWriter | None,
    allow_losses: bool = False,
) -> Memory:
    """Ingests the parts of a case."""
    ledger = Ledger()
    operations: list[OperationDone] = []
    count = parts[-1].end - parts[0].first if parts else 0
    config = cell.config
    compressions = plan_compressions(
        turn=config.compression_turn,
        unit=config.compression_unit,
        retain=config.retain_recent,
        case=case,
        chunks=chunks,
    )
    try:
        with metered(ledger):
            for part in parts:
                # Without new chunks there is nothing to make ready again.
                is_new = part.first == 0 or part.end > part.first
                if is_new and writer is not None:
                    await writer.write(chunks[part.first : part.end], begins=part.first == 0)
                elif is_new:
                    await fill(watched, ingest_calls(chunks, compressions, part.first, part.end))

                operations += [await operate(watched, one, chunks) for one in part.operations]

            # What it takes until it can be searched is a figure of its own.
            seconds = plus(ledger.own.measured_s, ledger.calls_s())
            filled = time.perf_counter()
            waits = await await_ready(watched)
            ready = time.perf_counter()
            health = await health_of_ingest(watched, count, ledger)
            written = None if writer is None else await writer.written()

        if not allow_losses:
            check_loss(health, cell.config.max_ingest_loss, ledger)
    # Nobody else knows this system yet, so that it is closed here, after a cancellation, too.
    except BaseException:
        await watched.close()
        raise

    return Memory(
        watched=watched,
        chunks=count,
        compressions=len(compressions),
        usage=totals(ledger.usages),
        seconds=seconds,
        ready_seconds=ready - filled if waits else None,
        origin=cell.run_key,
        health=health,
        notes=notes_of_ingest(ledger),
        operations=tuple(operations),
        written=written,
    )


async def _list_items(
    watched: Watched, writer: CaseWriter | None
) -> tuple[list[Mapping[str, Any]] | None, str | None]:
    """Items that a memory extracted or wrote; None if its system lists nothing.

    The second value is the error that kept the system from listing, if any. No answer depends on
    the list.
    """
    # A class may follow the contract without inheriting from it.
    if not hasattr(watched.system, "dump"):
        return None, None

    try:
        items = await (watched.call("dump") if writer is None else writer.items())
        return None if items is None else list(map(plain_notes, items)), None
    except (MemevalError, TypeError, ValueError) as error:
        return None, one_line(error, 400)


def _write_items(items: Sequence[Mapping[str, Any]], path: Path) -> str | None:
    """Writes the items of a memory for a reader to look at; returns what kept it from that."""
    try:
        if items:
            write_atomically(path, "".join(json_line(without_known_in(item)) for item in items))
        else:
            path.unlink(missing_ok=True)
    except (MemevalError, OSError, TypeError, ValueError) as error:
        return one_line(error, 400)

    return None


@asynccontextmanager
async def _building(folder: Path) -> AsyncIterator[None]:
    """One builder per memory, in this process and in others: who comes second finds it saved."""
    # An object of its own for each builder: a shared one would let a second task of this process
    # in, as filelock lets its holder take a lock again.
    lock = FileLock(f"{folder}.lock", mode=FILE_MODE, thread_local=False, is_singleton=False)
    while True:
        try:
            make_folder(folder.parent)
            # Tried again and again: a wait inside would stop the event loop.
            lock.acquire(timeout=0)
            break
        except Timeout:
            await asyncio.sleep(WAIT_S)
        except OSError as error:
            raise StorageError(
                f"{folder}.lock can't be opened: {error.strerror or error}"
            ) from error

    try:
        yield
    finally:
        lock.release()
