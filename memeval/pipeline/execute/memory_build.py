"""Loads the memory of one case if it was saved, else ingests the case and saves it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from msgspec import Struct, field, structs
from msgspec.structs import replace

from memeval.config.schema import PREPARE
from memeval.errors import FailedMemoryError, MemevalError, StorageError, UserError
from memeval.llm.metering import Ledger, metered, plus, totals
from memeval.pipeline.execute.compression import Compressions
from memeval.pipeline.execute.ingest import (
    await_ready,
    check_loss,
    health_of_ingest,
    ingest_calls,
    notes_of_ingest,
)
from memeval.pipeline.execute.memory import (
    Ingested,
    Memory,
    count_items,
    describe_memory,
    load_memory,
    save_memory,
)
from memeval.pipeline.execute.question import failure_message
from memeval.pipeline.execute.timeline import (
    CaseUntil,
    TimelinePart,
    operate,
    parts_after,
    parts_of,
)
from memeval.pipeline.execute.tool_writer import CaseWriter
from memeval.pipeline.isolate.returned import plain_notes
from memeval.pipeline.isolate.watch import Watched
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import FailedMemory
from memeval.records import EvalCase, MemoryChunk
from memeval.results import json_line, write_atomically
from memeval.results.files import dump_file, writing
from memeval.results.private import FILE_MODE, make_folder
from memeval.results.rows import OperationDone
from memeval.store.memories import SharedMemories
from memeval.text.names import digest_name
from memeval.text.redaction import without_known_in
from memeval.text.shown import one_line

UNLISTED = "the memory's contents could not be listed"
WAIT_S = 0.05
"""Seconds between checks whether another builder of the same memory is done."""

_rebuilt: set[Path] = set()
"""Folders built again under `fresh=prepare` in this process: cells of a sweep may share one."""
_uploaded: set[tuple[str, Path]] = set()
"""URLs and folders of memories that this process saw there: each is looked for once."""


def memory_path(cell: Cell, case_id: str, seed: int) -> Path:
    """The folder of a case's memory in the repeat under `seed`."""
    # The id comes from the data and could be `..` or `a/b`. A digest names the folder; the manifest
    # and `meta.json` contain the id.
    return cell.memory_folder(seed) / digest_name(case_id)


class MemoryBuild(Struct, frozen=True, dict=True):
    """The memory of one case in one repeat: loaded if it was saved whole, else built."""

    cell: Cell
    case: EvalCase
    chunks: Sequence[MemoryChunk]
    plan: Callable[[], Compressions]
    """Plans the cuts of the window among the chunks."""
    seed: int
    create_system: Callable[[], Watched]
    """Creates an empty system."""
    create_writer: Callable[[Watched], CaseWriter] | None
    """Creates the model that writes with the system's tools; None: the system gets the chunks."""
    ledger: Ledger = field(default_factory=Ledger)
    """The calls of the ingest."""

    @cached_property
    def folder(self) -> Path:
        """Folder in which the memory is saved."""
        return memory_path(self.cell, self.case.case_id, self.seed)

    @cached_property
    def key(self) -> str:
        return self.cell.keys(self.seed).prepare

    async def run(self, shared: SharedMemories | None, failed: dict[Path, FailedMemory]) -> Memory:
        """Loads or builds the memory, and saves it if the system can.

        With `shared` memories of other machines, a memory missing here is fetched, and one missing
        there is uploaded.

        Raises `IngestLossError` if more was lost than allowed, and `FailedMemoryError` for a memory
        in `failed`.
        """
        folder = self.folder
        async with _building(folder):
            if not self._claim_rebuild():
                await self._fetch(folder, shared)
                loaded = await self._load(self.case.case_id)
                if loaded is not None:
                    await self._put(loaded, shared, only_missing=True)
                    return loaded

            if folder in failed:
                raise FailedMemoryError(failed[folder].error)

            try:
                memory = await self._build(shared)
            except (StorageError, UserError):
                raise  # these concern the whole run
            except Exception as error:
                usage = tuple(totals(self.ledger.usages))
                failed[folder] = FailedMemory(failure_message(error), usage, self.cell.run_key)
                raise

            await self._put(memory, shared, only_missing=False)
            return memory

    async def imagine(self) -> Memory:
        """For an estimate: loads it, or builds it unsaved; allows losses in made-up replies."""
        if not self.cell.redoes(PREPARE):
            loaded = await self._load(self.case.case_id)
            if loaded is not None:
                return loaded

        parts = parts_of(self.case, self.chunks)
        watched = self.create_system()
        return await self._ingest(watched, parts, self._writer_of(watched), allow_losses=True)

    def _claim_rebuild(self) -> bool:
        """Whether this build must replace an existing memory: True once per folder."""
        if not self.cell.redoes(PREPARE) or self.folder in _rebuilt:
            return False

        _rebuilt.add(self.folder)
        return True

    async def _fetch(self, folder: Path, shared: SharedMemories | None) -> None:
        if shared is not None and not folder.exists():
            await shared.fetch(folder, self.key)

    async def _put(
        self, memory: Memory, shared: SharedMemories | None, *, only_missing: bool
    ) -> None:
        """Uploads a saved memory; an earlier run may have failed to. Raises `StorageError`."""
        if shared is None or not memory.saved:
            return

        target = shared.url, self.folder
        if only_missing and target in _uploaded:
            return

        try:
            if not only_missing or await shared.manifest(self.folder, self.key) is None:
                await shared.put(self.folder, self.key)
        except BaseException:
            # The caller never gets this memory, so it can't close it.
            await memory.watched.close()
            raise

        _uploaded.add(target)

    async def _load(self, case_id: str) -> Memory | None:
        folder = memory_path(self.cell, case_id, self.seed)
        identity = {"case_id": case_id, "key": self.key}
        return await load_memory(self.cell, folder, identity, self.create_system)

    async def _build(self, shared: SharedMemories | None) -> Memory:
        watched, parts = await self._continue(shared)
        writer = self._writer_of(watched)
        memory = await self._ingest(watched, parts, writer)
        # Before the save: the saved memory includes these counts.
        items, dump_error = await _list_items(watched, writer)
        if items is not None:
            stored = await asyncio.to_thread(count_items, items, self.case)
            memory = _with_changes(memory, stored=stored)

        identity = {"case_id": self.case.case_id, "key": self.key}
        meta = describe_memory(self.cell, identity)
        saved, save_error = await save_memory(memory, self.folder, identity, meta)
        dump_error = dump_error or _write_items(items or (), dump_file(self.folder))
        if dump_error:
            notes = {**memory.ingested.notes, "dump": f"{UNLISTED}: {dump_error}"}
            memory = _with_changes(memory, notes=notes)

        return replace(memory, saved=saved, save_error=save_error)

    def _writer_of(self, watched: Watched) -> CaseWriter | None:
        return None if self.create_writer is None else self.create_writer(watched)

    async def _continue(self, shared: SharedMemories | None) -> tuple[Watched, list[TimelinePart]]:
        """The system to ingest into, with the latest saved checkpoint, and the remaining parts."""
        parts = parts_of(self.case, self.chunks)
        if isinstance(self.case, CaseUntil):
            for session_id, case_id in reversed(self.case.earlier):
                folder = memory_path(self.cell, case_id, self.seed)
                if shared is not None:
                    async with _building(folder):
                        await self._fetch(folder, shared)

                memory = await self._load(case_id)
                if memory is not None:
                    return memory.watched, parts_after(parts, session_id)

        return self.create_system(), parts

    async def _ingest(
        self,
        watched: Watched,
        parts: Sequence[TimelinePart],
        writer: CaseWriter | None,
        *,
        allow_losses: bool = False,
    ) -> Memory:
        ledger, compressions = self.ledger, self.plan()
        count = parts[-1].end - parts[0].first if parts else 0
        ready_seconds = written = None
        try:
            with metered(ledger):
                operations = await self._fill(watched, parts, writer, compressions)
                # The time until the memory can be searched is a separate figure.
                seconds = plus(ledger.own_work.measured_s, ledger.calls_s())
                filled = time.perf_counter()
                if await await_ready(watched):
                    ready_seconds = time.perf_counter() - filled

                health = await health_of_ingest(watched, count, ledger)
                if writer is not None:
                    written = await writer.written()

            if not allow_losses:
                check_loss(health, self.cell.config.max_ingest_loss, ledger)
        # No other code has this system yet: it is closed here, also after a cancellation.
        except BaseException:
            await watched.close()
            raise

        ingested = Ingested(
            chunks=count,
            compressions=len(compressions),
            usage=totals(ledger.usages),
            seconds=seconds,
            ready_seconds=ready_seconds,
            origin=self.cell.run_key,
            health=health,
            notes=notes_of_ingest(ledger),
            operations=operations,
            written=written,
        )
        return Memory(watched, ingested)

    async def _fill(
        self,
        watched: Watched,
        parts: Sequence[TimelinePart],
        writer: CaseWriter | None,
        compressions: Compressions,
    ) -> tuple[OperationDone, ...]:
        """Ingests the chunks of each part, and then does its operations."""
        write = partial(writer.write, begins=False) if writer else None
        done: list[OperationDone] = []
        # A memory continued from a checkpoint did the earlier operations before it.
        number = len(self.case.operations) - sum(len(part.operations) for part in parts)
        for part in parts:
            # Without new chunks the memory is still ready.
            if part.first == 0 or part.end > part.first:
                if writer is None:
                    calls = ingest_calls(self.chunks, compressions, part.first, part.end)
                    await watched.run(calls)
                else:
                    new_chunks = self.chunks[part.first : part.end]
                    await writer.write(new_chunks, begins=part.first == 0)

            for operation in part.operations:
                done.append(await operate(watched, operation, self.chunks, number, write))
                number += 1

        return tuple(done)


def _with_changes(memory: Memory, **changed: Any) -> Memory:
    return replace(memory, ingested=structs.replace(memory.ingested, **changed))


async def _list_items(
    watched: Watched, writer: CaseWriter | None
) -> tuple[list[Mapping[str, Any]] | None, str | None]:
    """Items that a memory lists or its writer wrote, and the error if they can't be listed."""
    try:
        items = await (watched.call("dump") if writer is None else writer.items())
        if items is not None:
            items = list(map(plain_notes, items))

        return items, None
    except (MemevalError, TypeError, ValueError) as error:
        return None, one_line(error, 400)


def _write_items(items: Sequence[Mapping[str, Any]], path: Path) -> str | None:
    """Writes a memory's items to a file for people to read; returns the error if that failed."""
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
    """One builder per memory, in this process and in others: the second finds the memory saved."""
    # A separate object for each builder: filelock lets the holder of a lock take it again, and a
    # shared object would let in a second task of this process.
    lock = FileLock(f"{folder}.lock", mode=FILE_MODE, thread_local=False, is_singleton=False)
    while True:
        try:
            make_folder(folder.parent)
            # Polled: a blocking wait would stop the event loop.
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
        with writing(f"{folder}.lock", "closed"):
            lock.release()
