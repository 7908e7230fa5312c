"""The Python API: `memeval.run(...)`, `memeval.load_runs(...)`, and finished runs as pandas tables.

Overrides are those of the command line (`"system=bm25"`), or keyword arguments (`system="bm25"`,
`llm={"name": "openai", "model": "gpt-4o-mini"}`); a dotted name goes into a dictionary:
`**{"dataset.limit_cases": 1}`.
"""

from __future__ import annotations

import asyncio
import shlex
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from memeval.api.finished import Run
from memeval.api.overrides import as_overrides
from memeval.api.selection import load_run, load_runs
from memeval.config.overrides import full_override

if TYPE_CHECKING:
    from memeval.pipeline.cell import Cell
    from memeval.pipeline.progress import Progress

__all__ = ["Run", "arun", "as_overrides", "load_run", "load_runs", "run"]

_COMPOSING = threading.Lock()
"""Hydra composes one config at a time."""


def run(*overrides: str, progress: bool = True, **settings: Any) -> Run:
    """Runs one configuration and returns the finished run.

    What was finished before is not done again.

    `progress=False` prints nothing. Works where an event loop is running, as in Jupyter: the run
    has a loop and a thread of its own. Raises `UserError` for settings that can't be run,
    `WorldError` if the disk or the tracking store can't be written.
    """
    return _start([*overrides, *as_overrides(settings)], progress=progress).result()


async def arun(*overrides: str, progress: bool = True, **settings: Any) -> Run:
    """`run`, to be awaited: other tasks of the event loop go on, and several runs may be under way
    at once.
    """
    started = _start([*overrides, *as_overrides(settings)], progress=progress)
    return await asyncio.wrap_future(started)


def _start(words: Sequence[str], *, progress: bool) -> Future[Run]:
    """A run in a thread of its own.

    The thread is a daemon, so that Ctrl-C in the caller ends the process.
    """
    future: Future[Run] = Future()

    def target() -> None:
        try:
            future.set_result(_run(words, progress=progress))
        except BaseException as error:  # noqa: BLE001
            # Raised again where the result is asked for.
            future.set_exception(error)

    # From here on the future refuses `cancel`: a thread can't be stopped from outside.
    future.set_running_or_notify_cancel()
    threading.Thread(target=target, name="memeval-run", daemon=True).start()

    return future


def _run(words: Sequence[str], *, progress: bool) -> Run:
    from memeval.display.progress import progress_for
    from memeval.pipeline.progress import Silent
    from memeval.runs.cell import complete_cell, refuse_stopped

    cell = _open(words)

    def show() -> AbstractContextManager[Progress]:
        return progress_for(cell.name) if progress else nullcontext(Silent())

    summary = complete_cell(cell, show).summary
    refuse_stopped(summary)
    return Run(cell.folder, summary)


def _open(words: Sequence[str]) -> Cell:
    from memeval.pipeline.opening import open_cell
    from memeval.runs.compose.config import compose_config
    from memeval.runs.environment import set_environment

    set_environment()
    command = shlex.join(["python", "-m", "memeval", *map(full_override, words)])
    # Only the composition: runs that are under way do not wait for each other.
    with _COMPOSING:
        return open_cell(compose_config(words), command)
