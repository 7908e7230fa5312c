"""Prepare: builds and saves the memories of each case, for later runs; asks no questions."""

import asyncio
from collections import Counter
from pathlib import Path

from msgspec import Struct, field

from memeval.errors import StorageError, UserError
from memeval.llm.metering import totals
from memeval.pipeline.execute.builder import Builder
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.execute.repeat import first_error
from memeval.pipeline.execute.timeline import cases_until, ids_until
from memeval.pipeline.execute.window import Window
from memeval.pipeline.open.called import run_with_breaker
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.records import EvalCase, Usage
from memeval.text.shown import one_line

CASES_AHEAD = 4
"""Cases built concurrently if a model is involved; otherwise one."""

CANNOT_BE_SAVED = "not saved (this system can't save its memories, so each run builds them)"


class Prepared(Struct):
    """Result of a pass of prepare."""

    folder: Path
    """Folder of the memories of the first repeat."""
    counts: Counter[str] = field(default_factory=Counter)
    """Memories by outcome: `built`, `found`, `not saved`, `CANNOT_BE_SAVED`, `failed`."""
    usages: list[Usage] = field(default_factory=list)
    """Usages of building the memories; found memories are left out."""
    failures: list[str] = field(default_factory=list)
    """Case and reason of each failure."""
    notes: list[str] = field(default_factory=list)
    """Other problems by case: lost chunks, memories that could not be saved or closed."""


async def prepare(cell: Cell, progress: Progress) -> Prepared:
    """Prepares each case for each repeat; failures are counted and named.

    Raises `StorageError`, and `UserError` if the system can't be built at all.
    """
    models = Models(cell.config, cell.run_key, progress.say)
    work = _prepare(cell, models, progress)
    return await run_with_breaker(cell, models.connections.breaker, work)


async def _prepare(cell: Cell, models: Models, progress: Progress) -> Prepared:
    builder, prepared = Builder(cell, models), Prepared(cell.memory_folder(cell.config.seed))
    ahead = CASES_AHEAD if cell.identity.uses_llm_at_ingest else 1
    window = Window(ahead)
    # Repeats with the same memory key share their memories: one seed per key is enough.
    seeds = list({cell.keys(seed).prepare: seed for seed in cell.seeds}.values())

    try:
        async with asyncio.TaskGroup() as group:
            for case in cell.dataset.cases():
                for seed in seeds:
                    # Before the task is created: otherwise the tasks would keep all cases of a
                    # large file in memory.
                    await window.enter(1)
                    progress.expect("prepare", len(ids_until(case)))
                    work = _prepare_case(builder, case, seed, prepared=prepared, progress=progress)
                    group.create_task(work).add_done_callback(lambda _: window.leave(1))
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    finally:
        await models.aclose()

    prepared.usages = list(totals(prepared.usages))
    return prepared


async def _prepare_case(
    builder: Builder, case: EvalCase, seed: int, *, prepared: Prepared, progress: Progress
) -> None:
    """Prepares the memory of a case, or those of its checkpoints: each continues an earlier one."""
    for part in cases_until(case):
        await _prepare_memory(builder, part, seed, prepared)
        progress.done("prepare")


async def _prepare_memory(builder: Builder, case: EvalCase, seed: int, prepared: Prepared) -> None:
    try:
        memory = await builder.memory(case, seed)
    except (asyncio.CancelledError, StorageError, UserError):
        raise
    except Exception as error:  # noqa: BLE001
        # The boundary of a case: a case that can't be ingested must not stop the others.
        prepared.counts["failed"] += 1
        prepared.failures.append(f"{one_line(case.case_id, 80)}: {one_line(error, 400)}")
        failed = builder.failed_memory(case, seed)
        if failed:
            prepared.usages += failed.usage
        return

    problems = [memory.save_error, await memory.watched.close()]
    if memory.ingested.health.lost:
        problems.append(memory.ingested.health.summary)

    for problem in filter(None, problems):
        prepared.notes.append(f"{one_line(case.case_id, 80)}: {problem}")

    if memory.was_loaded:
        prepared.counts["found"] += 1
        return

    outcome = "built"
    if not memory.saved:
        outcome = "not saved" if memory.save_error else CANNOT_BE_SAVED

    prepared.counts[outcome] += 1
    prepared.usages += memory.ingested.usage
