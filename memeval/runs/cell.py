"""Runs one resolved cell and publishes it: `run` does so per job, and `evaluate` once."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from memeval.config.paths import cache_dir
from memeval.config.roles import called_roles, settings_of_role
from memeval.config.schema import RunConfig
from memeval.errors import BudgetError
from memeval.llm.keys import headers_of, key_for
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.measure.summary import finish
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import endpoint_settings, sampling_of
from memeval.results import NoteKind, RunSummary
from memeval.runs.display.progress import RunDisplay, already_done
from memeval.runs.invocation import Invocation
from memeval.runs.loop import run_loop
from memeval.runs.plan import earlier_run, say_damage
from memeval.runs.publish.published import find_published, refile
from memeval.runs.publish.publisher import PUBLISHING, PublishResult, publish_cell, publisher_of
from memeval.store.opening import open_memories, open_store

if TYPE_CHECKING:
    from memeval.pipeline.execute.run import CellRun

MakeRun = Callable[[Cell, Progress], "CellRun"]
"""Creates the run of a cell whose answers don't come from its system."""


class Completed(Struct, frozen=True):
    """A cell that ran, or was already finished, and is published."""

    summary: RunSummary
    reused: bool
    """True if it was finished before."""
    published: PublishResult


def run_cell(
    cell: Cell,
    invocation: Invocation,
    job: int = 0,
    make_run: MakeRun | None = None,
    *,
    processes: int = 1,
) -> RunSummary:
    """Runs the cell, or uses its finished results, and publishes it; see `complete_cell`.

    Raises `UserError`, `StorageError`, and, for a stopped run, `BudgetError` once its finished part
    is published.
    """
    completed = complete_cell(
        cell, lambda: RunDisplay(cell.name), make_run, invocation.sweep, processes=processes
    )
    done = invocation.done_cell(
        job,
        cell,
        reused=completed.reused,
        url=completed.published.url,
        not_logged=completed.published.error,
    )
    invocation.note_done(done)
    refuse_stopped(completed.summary)
    return completed.summary


def refuse_stopped(summary: RunSummary) -> None:
    """Raises `BudgetError` for a run that was stopped."""
    if summary.is_stopped:
        raise BudgetError(" ".join(note.text for note in summary.notes_of(NoteKind.STOPPED)))


def complete_cell(
    cell: Cell,
    show: Callable[[], AbstractContextManager[Progress]],
    make_run: MakeRun | None = None,
    sweep: str | None = None,
    *,
    processes: int = 1,
) -> Completed:
    """Runs and publishes a cell.

    `show` creates the progress display, after all checks. `sweep` is the digest of the overrides of
    the sweep that the cell belongs to. `processes` is the number of processes of this command that
    share the limit of each endpoint.

    Raises `UserError` and `StorageError`.
    """
    before = earlier_run(cell)
    summary = before.summary
    reused = summary is not None
    workers = None
    if not reused:
        check_keys(cell.config)
        # An unreachable store is the user's mistake here, but an outside fault during the run.
        say = partial(print, file=sys.stderr)
        open_store(cell.config.store, cache_dir(), say)
        open_memories(cell.config.store, say)
        if make_run is None and processes == 1:
            from memeval.runs.compute.workers import start_callers

            # Before anything below starts a thread: a process with threads must not be forked.
            workers = start_callers(cell)

    # MLflow and pyplot take seconds of CPU to load: only if something is left to publish.
    published_url = find_published([cell], sweep).get(cell.folder) if reused else None
    # Before the run: MLflow loads while the run waits for the model.
    if published_url is None:
        publisher_of(cell.config)

    with closing(workers) if workers else nullcontext(), show() as progress:
        say_damage(cell, before, progress)
        if summary is None:
            from memeval.pipeline.execute.run import CellRun

            run = make_run or partial(CellRun, processes=processes, computing=workers)
            summary = run_loop(run(cell, progress).run(partial(finish, cell)))
        else:
            progress.say(f"  {already_done(summary)}")
            summary = refile(cell, summary)

    if published_url is not None:
        return Completed(summary, reused, PublishResult(published_url or None))

    published = publish_cell(cell, sweep)
    progress.say(PUBLISHING)
    return Completed(summary, reused, published.result())


def check_keys(config: RunConfig) -> None:
    """Raises `UserError` if an endpoint lacks its key or its model, before anything starts."""
    for role in called_roles(config.llm):
        settings = settings_of_role(config.llm, role)
        if settings.base_url:
            endpoint_settings(settings, role)
            sampling_of(settings, role)

    embedder = config.embedder
    if embedder.name == "openai" and embedder.base_url:
        headers_of(embedder.headers, "embedder.headers")
        key = embedder.api_key_env or ""
        key_for(key, embedder.base_url, "embedder=openai", embedder.headers)
