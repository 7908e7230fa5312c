"""One run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from memeval.api.arguments import check_names
from memeval.api.finished import FinishedRun
from memeval.api.overrides import as_overrides, check_words
from memeval.api.threads import await_thread, composing, in_thread
from memeval.config.overrides import MULTIRUN
from memeval.config.paths import conf_dir
from memeval.errors import UserError
from memeval.runs.compose.words import reorder_arguments
from memeval.text.shown import one_line

if TYPE_CHECKING:
    from memeval.pipeline.open.cell import Cell


def run(*overrides: str, progress: bool = True, **settings: Any) -> FinishedRun:
    """Runs one configuration and returns the finished run.

    Finished work is not done again.

    `progress=False` prints nothing. Also works inside a running event loop, as in Jupyter: the run
    has its own loop and thread. Raises `UserError` for settings that can't be run or make several
    runs, `WorldError` if the disk or the tracking store can't be written.
    """
    check_names(run, settings)
    words = single_run_words(overrides, settings)
    return in_thread(partial(run_here, words, progress=progress))


async def arun(*overrides: str, progress: bool = True, **settings: Any) -> FinishedRun:
    """Awaitable `run`: other tasks of the event loop continue, and several runs may be under way at
    the same time.

    Cancelling it ends the run as a first Ctrl-C does: model calls in progress finish, and the same
    call continues it.
    """
    check_names(arun, settings)
    words = single_run_words(overrides, settings)
    return await await_thread(partial(run_here, words, progress=progress))


def single_run_words(overrides: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
    """The overrides of one run. Raises `UserError` for those of a sweep, and for other types."""
    check_words(overrides)
    several = [word for word in overrides if word in MULTIRUN]
    for name, value in settings.items():
        # The name of an option has no comma; other values may have one.
        values = value.split(",") if isinstance(value, str) else value
        is_list = isinstance(values, list | tuple) and len(values) > 1
        if is_list and (conf_dir() / name).is_dir():
            several.append(f"{name}={one_line(value)}")

    if several:
        raise UserError(
            f"run makes one run, but {several[0]} makes several",
            'use:  memeval.sweep(system="bm25,rag")',
        )

    return [*reorder_arguments(overrides), *as_overrides(settings)]


def run_here(words: Sequence[str], *, progress: bool) -> FinishedRun:
    """`run`, in this thread."""
    from memeval.runs.cell import run_alone
    from memeval.runs.job import check_writable

    check_writable()
    cell = compose_cell(words)
    return FinishedRun(cell.folder, run_alone(cell, quiet=not progress).complete_summary())


def compose_cell(words: Sequence[str]) -> Cell:
    """Composes a cell from overrides. Raises `UserError`."""
    from memeval.pipeline.open.opening import open_cell
    from memeval.runs.compose.config import compose_config
    from memeval.runs.job import repeating_command

    with composing():
        return open_cell(compose_config(words), repeating_command(words))
