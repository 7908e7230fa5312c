"""One run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from memeval.api.finished import Run
from memeval.api.overrides import as_overrides
from memeval.api.threads import COMPOSING, in_thread

if TYPE_CHECKING:
    from memeval.pipeline.cell import Cell
    from memeval.pipeline.progress import Progress


def run(*overrides: str, progress: bool = True, **settings: Any) -> Run:
    """Runs one configuration and returns the finished run.

    What was finished before is not done again.

    `progress=False` prints nothing. Works where an event loop is running, as in Jupyter: the run
    has a loop and a thread of its own. Raises `UserError` for settings that can't be run,
    `WorldError` if the disk or the tracking store can't be written.
    """
    words = [*overrides, *as_overrides(settings)]
    return in_thread(partial(run_here, words, progress=progress)).result()


async def arun(*overrides: str, progress: bool = True, **settings: Any) -> Run:
    """`run`, to be awaited: other tasks of the event loop go on, and several runs may be under way
    at once.
    """
    words = [*overrides, *as_overrides(settings)]
    return await asyncio.wrap_future(in_thread(partial(run_here, words, progress=progress)))


def run_here(words: Sequence[str], *, progress: bool) -> Run:
    """`run`, in this thread."""
    from memeval.display.progress import progress_for
    from memeval.pipeline.progress import Silent
    from memeval.runs.cell import complete_cell, refuse_stopped
    from memeval.runs.job import check_writable

    check_writable()
    cell = open_one(words)

    def show() -> AbstractContextManager[Progress]:
        return progress_for(cell.name) if progress else nullcontext(Silent())

    summary = complete_cell(cell, show).summary
    refuse_stopped(summary)
    return Run(cell.folder, summary)


def open_one(words: Sequence[str]) -> Cell:
    """The cell that words compose. Raises `UserError`."""
    from memeval.pipeline.opening import open_cell
    from memeval.runs.compose.config import compose_config
    from memeval.runs.environment import set_environment
    from memeval.runs.job import repeating_command

    set_environment()
    # Only the composition: runs that are under way do not wait for each other.
    with COMPOSING:
        return open_cell(compose_config(words), repeating_command(words))
