"""Runs one resolved cell and publishes it: what `run` does per job, and `evaluate` once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memeval.cli.interrupt import run_loop
from memeval.cli.progress import progress_for
from memeval.cli.session import DoneCell, described, note_done, start_publisher
from memeval.config.schema import RunConfig
from memeval.errors import StorageError
from memeval.llm.keys import key_of
from memeval.pipeline.cell import Cell
from memeval.pipeline.models import OFFLINE
from memeval.pipeline.progress import Progress
from memeval.pipeline.run import CellRun, Finished
from memeval.pipeline.summary import finish, reusable
from memeval.results import RunSummary

Finish = Callable[[Finished], RunSummary]
Runner = Callable[[Cell, Progress, Finish], RunSummary]
"""Runs a cell's stages, telling a `Progress`, and returns what the `Finish` makes of them."""


def run_cell(cell: Cell, job: int = 0, runner: Runner | None = None) -> RunSummary:
    """Runs the cell, or takes it as it was finished before, and publishes it. Raises `UserError` and `StorageError`."""
    summary = reusable(cell)
    reused = summary is not None
    if not reused:
        check_keys(cell.config)
    publisher = start_publisher(cell.config.tracking)
    with progress_for(cell.name) as progress:
        if summary is None:
            summary = (runner or _run)(cell, progress, lambda finished: finish(cell, finished))
        else:
            progress.say(f"  finished before: {sum(summary.statuses.values())} records reused, no call made")
            summary = _of_this_sweep(cell, summary)
    result = publisher.publish(cell.folder)
    note_done(DoneCell(job, str(cell.folder), reused, described(result)))
    return summary


def check_keys(config: RunConfig) -> None:
    """Raises `UserError` where an endpoint needs a key that is not set, before anything is started."""
    for option, endpoint in (("llm=openai", config.llm), ("embedder=openai", config.embedder)):
        if endpoint.name == "openai" and endpoint.base_url:
            key_of(endpoint.api_key_env, endpoint.base_url, option, OFFLINE)


def _run(cell: Cell, progress: Progress, finished: Finish) -> RunSummary:
    return run_loop(CellRun(cell, progress).run(finished))


def _of_this_sweep(cell: Cell, summary: RunSummary) -> RunSummary:
    """A finished cell that another sweep asks for is tagged with that sweep as well."""
    if cell.config.sweep_name in (None, summary.sweep):
        return summary
    tagged = replace(summary, sweep=cell.config.sweep_name, tags={**summary.tags, "sweep": str(cell.config.sweep_name)})
    try:
        tagged.write(cell.folder)
    except OSError as error:
        raise StorageError(f"{cell.folder} can't be written: {error.strerror or error}") from error
    return tagged
