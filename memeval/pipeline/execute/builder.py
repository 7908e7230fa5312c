"""Builds a cell's memories: chunks a case, creates its system, loads or ingests its memory."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from memeval.config.paths import outputs_dir, prepared_dir
from memeval.config.settings import TENANTS
from memeval.datasets.granularity import chunks
from memeval.llm.metering import current_ledger
from memeval.pipeline.execute.compression import Compressions, plan_compressions
from memeval.pipeline.execute.memory import Memory
from memeval.pipeline.execute.memory_build import MemoryBuild, memory_path
from memeval.pipeline.execute.reader import BudgetedReader, SilentReader, cell_reader
from memeval.pipeline.execute.timeline import OTHER_USER, USER, CaseUntil, with_other_user
from memeval.pipeline.execute.tool_loop import ToolLimits
from memeval.pipeline.execute.tool_reader import ToolReader
from memeval.pipeline.execute.tool_writer import CaseWriter
from memeval.pipeline.isolate.by_user import ByUser
from memeval.pipeline.isolate.call import Steps
from memeval.pipeline.isolate.process_state import ProcessState
from memeval.pipeline.isolate.watch import Watched, build_watched
from memeval.pipeline.open.called import OFFLINE
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import FailedMemory
from memeval.pipeline.open.models import Models
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.pipeline.open.system_source import SystemSource
from memeval.process.leftovers import sweep, sweep_temporary
from memeval.records import EvalCase, MemoryChunk
from memeval.systems.base import IS_ESTIMATE, LINES, QuickSystem, Reader, SystemContext
from memeval.systems.external.ranked import Ranked

T = TypeVar("T")

MAX_BUILDS = 4
"""Number of memories built concurrently if building calls no model or server: the first questions
are asked while later memories are being built.
"""


class Builder:
    """Builds the memories of one cell's cases with the cell's models, on a running event loop."""

    def __init__(self, cell: Cell, models: Models, *, saves: bool = True) -> None:
        """Without `saves`, for an estimate, nothing on disk is changed."""
        assert isinstance(cell.source, SystemSource), "only a memory system builds memories"
        self._cell, self._models, self._source = cell, models, cell.source
        # Created before any system: this state is restored after each call of a system.
        self._state = ProcessState()
        self._saves = saves
        if saves:
            # A killed run can't clean up after itself: the next run does.
            sweep_temporary()
            for folder in (prepared_dir(), outputs_dir() / "runs"):
                sweep(folder)

        self._bridge = Bridge()
        # No limit if building waits for a model or a server: all open cases build concurrently.
        only_computes = (
            issubclass(self._source.system_class, QuickSystem)
            and not cell.identity.uses_llm_at_ingest
            and cell.config.embedder.name in OFFLINE
        )
        self._build_slot = asyncio.Semaphore(MAX_BUILDS) if only_computes else nullcontext()

    async def memory(self, case: EvalCase, seed: int) -> Memory:
        """The memory of a case for the repeat under `seed`. Raises any error of the system."""
        if issubclass(self._source.system_class, Ranked):
            # It is unknown what another program's memory does on a request to forget.
            case = replace(case, operations=())

        case_chunks = self._chunks(case)
        build = MemoryBuild(
            cell=self._cell,
            case=case,
            chunks=case_chunks,
            plan=lambda: self._compressions(case, case_chunks),
            seed=seed,
            create_system=lambda: self._system(case, seed),
            create_writer=self._writer(case, seed),
        )
        if not self._saves:
            return await build.imagine()

        async with self._build_slot:
            return await build.run(self._models.memories, self._models.connections.failed_memories)

    def _chunks(self, case: EvalCase) -> list[MemoryChunk]:
        case_chunks = chunks(case, self._cell.config.granularity)
        if self._cell.config.system.get(TENANTS):
            return with_other_user(case, case_chunks, self._cell.config.granularity)

        return case_chunks

    def _compressions(self, case: EvalCase, case_chunks: Sequence[MemoryChunk]) -> Compressions:
        """The cuts of the window among the chunks of a case, or of a part of one."""
        config, whole, whole_chunks = self._cell.config, case, case_chunks
        # Planned on the whole case: a part has a different middle and end, and the memory at a
        # later checkpoint would depend on which earlier checkpoints were asked.
        if isinstance(case, CaseUntil) and case.full_case is not None:
            whole, whole_chunks = case.full_case, self._chunks(case.full_case)

        planned = plan_compressions(
            turn=config.compression_turn,
            unit=config.compression_unit,
            retain=config.retain_recent,
            case=whole,
            chunks=whole_chunks,
        )
        return {after: keeps for after, keeps in planned.items() if after <= len(case_chunks)}

    def failed_memory(self, case: EvalCase, seed: int) -> FailedMemory | None:
        """The record of a case's memory if it could not be built before, else None."""
        folder = memory_path(self._cell, case.case_id, seed)
        return self._models.connections.failed_memories.get(folder)

    def notes(self) -> list[str]:
        """Notes on changes that systems made to the process in which they run."""
        return self._state.notes()

    def _system(self, case: EvalCase, seed: int) -> Watched:
        if not self._cell.config.system.get(TENANTS):
            return self._instance(case.case_id, seed)
        if self._source.needs_instances:
            return ByUser(
                lambda user: self._instance(f"{case.case_id}-{user}", seed), USER, OTHER_USER
            )

        watched = self._instance(case.case_id, seed)
        watched.user = USER
        return watched

    def _instance(self, case_id: str, seed: int) -> Watched:
        cell, models = self._cell, self._models
        parts = SystemContext(
            reader=self._reader(seed),
            model=models.ingest_model,
            embedder=models.embedder(),
            reranker=models.reranker,
            top_k=cell.config.top_k,
            seed=seed,
            case_id=case_id,
            extra={"origin": cell.run_key, IS_ESTIMATE: not self._saves, LINES: self._lines},
            run_sync=self._bridge.run_sync,
        )
        system_class = self._source.system_class
        return build_watched(
            lambda: system_class(self._source.settings, parts),
            system_class,
            case_id=case_id,
            timeout_s=cell.timeout_s,
            state=self._state,
            stop_parts=self._bridge.stop,
        )

    def _lines(self) -> Iterator[str]:
        """Text of all chunks of all cases; empty if reading the cases again is not quick."""
        if not self._cell.is_read_quickly:
            return

        for case in self._cell.dataset.cases():
            for chunk in chunks(case, self._cell.config.granularity):
                yield chunk.content

    def tool_reader(self, watched: Watched, seed: int) -> ToolReader | None:
        """The reader that uses a memory's tools; None without `reader=tools`."""
        template, reader = self._cell.templates.tools, self._cell.config.reader
        if template is None:
            return None

        return ToolReader(
            watched,
            reader=cell_reader(self._cell, self._models.reader, seed),
            model=self._models.reader,
            instructions=template,
            limits=ToolLimits(
                steps=reader.max_steps,
                calls=reader.max_tool_calls,
                result_tokens=reader.max_result_tokens,
                context_tokens=self._cell.config.context_tokens,
            ),
            seed=seed,
        )

    def _writer(self, case: EvalCase, seed: int) -> Callable[[Watched], CaseWriter] | None:
        """A function that creates a memory's writer; None if systems are given the chunks."""
        template, writer = self._cell.templates.writer, self._cell.config.writer
        if template is None:
            return None

        return partial(
            CaseWriter,
            model=self._models.ingest_model,
            template=template,
            limits=ToolLimits(
                steps=writer.max_steps,
                calls=writer.max_tool_calls,
                result_tokens=writer.max_result_tokens,
            ),
            session_tokens=writer.max_session_tokens,
            seed=seed,
            changes=bool(case.operations or case.checkpoints),
        )

    def _reader(self, seed: int) -> Reader:
        reader: Reader = cell_reader(self._cell, self._models.reader, seed)
        if retrieves_only(self._cell.config):
            reader = SilentReader()

        most = self._cell.config.context_tokens
        return reader if most is None else BudgetedReader(reader, most)


class Bridge:
    """Lets worker threads wait for parts that are `async`, until the run is stopped."""

    def __init__(self) -> None:
        """Must be called on the event loop on which the parts are awaited."""
        self._loop = asyncio.get_running_loop()
        self._waited: set[Future[Any]] = set()
        self._stopped = False

    def run_sync(self, awaitable: Awaitable[T]) -> T:
        """The result of `awaitable`, for a thread other than the loop's.

        Raises `RuntimeError` on the loop's own, and `CancelledError` once the run is stopped.
        """
        # The loop would wait for itself forever.
        if threading.get_ident() == getattr(self._loop, "_thread_id", None):
            raise RuntimeError(
                "run_sync was called on the event loop, where a plain recall() runs, and any plain "
                "method under in_thread = False: await the part in an async method"
            )

        # `run_coroutine_threadsafe` accepts only coroutines, not other awaitables.
        async def wait() -> T:
            result: T = await Steps(awaitable)
            return result

        with current_ledger().own_work.waiting():
            future = asyncio.run_coroutine_threadsafe(wait(), self._loop)
            self._waited.add(future)
            future.add_done_callback(self._waited.discard)
            # `stop` may have cancelled the waiting futures before this one was added.
            if self._stopped:
                future.cancel()

            return future.result()

    def stop(self) -> None:
        """Cancels all waits, and any wait that a thread begins later."""
        self._stopped = True
        # A copy: each future removes itself from the set when it is cancelled.
        for future in self._waited.copy():
            future.cancel()
