"""The cells of a sweep: composes, opens and checks all of them before the first call."""

from collections.abc import Sequence

from hydra.core.config_loader import ConfigLoader
from hydra.core.utils import JobReturn, JobStatus, setup_globals
from omegaconf import DictConfig

from memeval.errors import RefusedError, UserError
from memeval.pipeline.open.opening import OpenedData
from memeval.runs.compose.errors import explaining_config_errors
from memeval.runs.compose.sweep import SweepComposer
from memeval.runs.display.progress import Countdown
from memeval.runs.invocation import Invocation, failed_cell
from memeval.runs.job import objective_of, open_job
from memeval.runs.plan import CellOutcome, Plan, PlannedCell, earlier_run
from memeval.runs.spending import check_keys
from memeval.text.shown import counted


def plan_jobs(
    loader: ConfigLoader,
    master: DictConfig,
    jobs: Sequence[Sequence[str]],
    first: int,
    *,
    invocation: Invocation,
    keep_going: bool,
) -> Plan:
    """The cells of a batch of jobs that a sweeper requests, composed, opened and checked.

    `master` is the composition that all cells have in common, and `first` the number of the first
    job. With `keep_going`, the valid cells run even if others can't.

    Without it, raises `RefusedError` if a cell can't be run.
    """
    # As Hydra's own launchers do: this registers the resolvers that configs use.
    setup_globals()
    composer, opened = SweepComposer(loader, master, jobs), OpenedData()
    errors: list[UserError] = []
    cells: list[PlannedCell] = []

    countdown = Countdown(f"checking {counted(len(jobs), 'run')}", len(jobs))
    for number, overrides in enumerate(jobs, start=first):
        try:
            cells.append(_plan_job(composer, overrides, number, opened))
        except UserError as error:
            errors.append(error)
            invocation.note_failed(failed_cell(number, error))

        countdown.done()

    if errors and not keep_going:
        raise RefusedError(errors, len(jobs))

    return Plan(cells)


def _plan_job(
    composer: SweepComposer, overrides: Sequence[str], number: int, opened: OpenedData
) -> PlannedCell:
    with explaining_config_errors():
        fields, task = composer.compose(overrides, number)

    cell = open_job(fields, task, opened)
    before = earlier_run(cell)
    # A finished cell makes no calls, so it needs no key.
    if before.summary is None:
        check_keys(cell.config)

    return PlannedCell(number, cell, before)


def job_return(outcome: CellOutcome | None) -> JobReturn:
    returned = JobReturn(status=JobStatus.COMPLETED)
    returned.return_value = None
    if outcome is None:
        return returned

    if outcome.summary is not None:
        returned.return_value = objective_of(outcome.planned.cell, outcome.summary)
    elif outcome.error is not None and outcome.failure is None:
        # Only a bug in memeval is returned as an error: Hydra raises it at the end, with its
        # traceback. Other errors are already reported, and Hydra would end the command at the first
        # one.
        returned.status, returned.return_value = JobStatus.FAILED, outcome.error

    return returned
