"""Runs one resolved cell and publishes it: what `run` does per job, and `evaluate` once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from memeval.config.filing import read_filing
from memeval.config.paths import cache_dir
from memeval.config.roles import called_roles, settings_of_role
from memeval.config.schema import RunConfig
from memeval.display.progress import progress_for
from memeval.errors import BudgetError, StorageError
from memeval.llm.keys import headers_of, key_for
from memeval.pipeline.cell import Cell
from memeval.pipeline.models import endpoint_settings
from memeval.pipeline.progress import Progress
from memeval.pipeline.repeat import Finished
from memeval.pipeline.summary import Earlier, earlier, finish
from memeval.results import RunSummary
from memeval.runs.interrupt import run_loop
from memeval.runs.publish.published import published_before
from memeval.runs.publish.publisher import PublishResult
from memeval.runs.publish.publishers import start_publisher
from memeval.runs.session import DoneCell, Session
from memeval.store.opening import open_memories, open_store

Finish = Callable[[Finished], RunSummary]
Runner = Callable[[Cell, Progress, Finish], RunSummary]
"""Runs a cell's stages, telling a `Progress`, and returns what the `Finish` makes of them."""


@dataclass(frozen=True)
class Completed:
    """A cell that was run, or taken as it was finished before, and published."""

    summary: RunSummary
    reused: bool
    """True where it was finished before."""
    published: PublishResult


def run_cell(
    cell: Cell,
    session: Session,
    job: int = 0,
    runner: Runner | None = None,
    *,
    processes: int = 1,
) -> RunSummary:
    """Runs the cell, or takes it as it was finished before, and publishes it.

    `processes` of this command share the limit of each endpoint.

    Raises `UserError`, `StorageError`, and `BudgetError` for a run that was stopped, once what is
    done is published.
    """
    runner = runner or partial(_run, processes=processes)
    completed = complete_cell(cell, lambda: progress_for(cell.name), runner, session.sweep)
    session.note_done(
        DoneCell(
            job=job,
            folder=str(cell.folder),
            reused=completed.reused,
            published=completed.published.shown,
            plots=cell.config.plots is not False,
            sweep_id=session.tracked_sweep(cell.config),
        )
    )
    refuse_stopped(completed.summary)
    return completed.summary


def refuse_stopped(summary: RunSummary) -> None:
    """Raises `BudgetError` for a run that was stopped."""
    if summary.is_stopped:
        raise BudgetError(summary.notes[0])


def complete_cell(
    cell: Cell,
    show: Callable[[], AbstractContextManager[Progress]],
    runner: Runner | None = None,
    sweep: str | None = None,
) -> Completed:
    """Runs and publishes a cell.

    `show` makes what shows its progress, once nothing is left to be checked; `sweep` is the digest
    of the words of the sweep that asks for it.

    Raises `UserError` and `StorageError`.
    """
    before = Earlier() if cell.config.fresh else earlier(cell)
    summary = before.summary
    reused = summary is not None
    if not reused:
        check_keys(cell.config)
        # A store that can't be reached is the user's mistake now, and a fault of the world later.
        open_store(cell.config.store, cache_dir(), None)
        open_memories(cell.config.store)

    # MLflow and pyplot take seconds of CPU to load: only where something is left to publish.
    known = published_before([cell], sweep).get(cell.folder) if reused else None
    # Before the run, and not behind it: MLflow loads while the model is waited for.
    if known is None:
        start_publisher(cell.config.tracking, plots=cell.config.plots is not False)

    with show() as progress:
        for damage in before.damage:
            progress.say(
                f"  the finished run {cell.run_key} is damaged: {damage}; memeval makes it again "
                "from its rows"
            )

        if summary is None:
            summary = (runner or _run)(cell, progress, lambda finished: finish(cell, finished))
        else:
            progress.say(
                f"  already done: reused {sum(summary.statuses.values())} results, no API calls"
            )
            summary = tag_with_sweep(cell, summary)

    if known is not None:
        return Completed(summary, reused, PublishResult(url=known or None))

    return Completed(summary, reused, publish_cell(cell, sweep))


def publish_cell(cell: Cell, sweep: str | None) -> PublishResult:
    """Writes a finished cell's report and logs it."""
    publisher = start_publisher(cell.config.tracking, plots=cell.config.plots is not False)
    return publisher.publish(cell.folder, read_filing(cell.config, sweep))


def check_keys(config: RunConfig) -> None:
    """Raises `UserError` where an endpoint needs a key that is not set, before anything starts."""
    for role in called_roles(config.llm):
        settings = settings_of_role(config.llm, role)
        if settings.base_url:
            endpoint_settings(settings, role)

    embedder = config.embedder
    if embedder.name == "openai" and embedder.base_url:
        headers_of(embedder.headers, "embedder.headers")
        key = embedder.api_key_env or ""
        key_for(key, embedder.base_url, "embedder=openai", embedder.headers)


def _run(cell: Cell, progress: Progress, finished: Finish, processes: int = 1) -> RunSummary:
    from memeval.pipeline.run import CellRun

    return run_loop(CellRun(cell, progress, processes=processes).run(finished))


def tag_with_sweep(cell: Cell, summary: RunSummary) -> RunSummary:
    """A finished cell that another sweep asks for is tagged with that sweep as well."""
    if cell.config.sweep_name in (None, summary.sweep):
        return summary

    tagged = replace(
        summary,
        sweep=cell.config.sweep_name,
        tags={**summary.tags, "sweep": str(cell.config.sweep_name)},
    )
    try:
        tagged.write(cell.folder)
    except OSError as error:
        raise StorageError(f"{cell.folder} can't be written: {error.strerror or error}") from error

    return tagged
