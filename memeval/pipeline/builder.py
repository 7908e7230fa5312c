"""Builds a cell's memories: cuts a case into units, makes its system, and has it loaded or ingested."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import TypeVar

from memeval.granularity import chunks
from memeval.pipeline.cell import Cell
from memeval.pipeline.memory import Memory, build_memory
from memeval.pipeline.models import Models
from memeval.pipeline.reader import CellReader
from memeval.records import EvalCase
from memeval.systems.contract import MemorySystem, Parts

T = TypeVar("T")


class Builder:
    """Builds the memories of one cell's cases with the cell's models."""

    def __init__(self, cell: Cell, models: Models) -> None:
        self._cell, self._models = cell, models

    async def memory(self, case: EvalCase, seed: int) -> Memory:
        """The memory of a case for the repeat under `seed`. Raises whatever the system raises."""
        units = chunks(case, self._cell.granularity)
        return await build_memory(self._cell, case, units, lambda: self._system(case, seed), seed)

    def _system(self, case: EvalCase, seed: int) -> MemorySystem:
        cell, models, loop = self._cell, self._models, asyncio.get_running_loop()
        parts = Parts(
            reader=CellReader(
                models.reader,
                cell.wording,
                cell.style,
                seed,
                choosing=cell.choose_wording,
                choose_tokens=cell.config.prompt.choose_tokens,
            ),
            model=models.reader,
            embedder=models.embedder(),
            top_k=cell.config.top_k,
            seed=seed,
            case_id=case.case_id,
            extra={"origin": cell.run_key},
            run_sync=lambda awaitable: wait_from_thread(awaitable, loop),
        )
        return cell.system(cell.settings, parts)


def wait_from_thread(awaitable: Awaitable[T], loop: asyncio.AbstractEventLoop) -> T:
    """What `awaitable` comes to on `loop`, waited for in another thread. On the loop's own it would wait for ever: RuntimeError."""
    if threading.get_ident() == getattr(loop, "_thread_id", None):
        raise RuntimeError("run_sync was called on the event loop: set in_thread = True, or await the part in an async method")

    async def waited() -> T:
        return await awaitable

    return asyncio.run_coroutine_threadsafe(waited(), loop).result()
