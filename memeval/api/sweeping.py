"""Sweeps: several runs, as one piece of work."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.api.comparing import Comparisons
from memeval.api.finished import Run
from memeval.api.overrides import as_overrides
from memeval.api.threads import COMPOSING, in_thread
from memeval.config.paths import outputs_dir
from memeval.errors import UserError, WorldError

if TYPE_CHECKING:
    from memeval.runs.forecast.forecast import Forecast
    from memeval.runs.plan import Plan
    from memeval.runs.session import FailedCell, Session


@dataclass(frozen=True)
class Sweep:
    """A sweep that has ended."""

    runs: Sequence[Run]
    """The finished runs, in the sweep's order."""
    failures: Sequence[FailedCell]
    """What could not be run, and why."""
    comparisons: Comparisons
    """How the runs of each data set differ from the first of them; none where nothing can be
    compared.
    """
    folder: Path
    """Has the comparison as Markdown, CSV, plots and a page."""

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<Sweep of {len(self.runs)} runs{failed}: {self.folder.name}>"


def sweep(
    *overrides: str, progress: bool = True, keep_going: bool = False, **settings: Any
) -> Sweep:
    """Runs a sweep, as `python -m memeval -m` does, and compares its runs.

    Alternatives are strings with commas: `sweep(system="bm25,rag", top_k="5,10")` has four runs;
    `"+sweep=NAME"` is one of those that are filed. What was finished before is not done again.

    All runs are checked before the first call; with `keep_going` those that can be run are run,
    whatever the others are like. `progress=False` prints nothing. Raises `UserError` where a run
    can't be made, `WorldError` if the disk can't be written; a run that fails is in `failures`.
    """
    words = [*overrides, *_alternatives(settings)]
    work = partial(_sweep, words, progress=progress, keep_going=keep_going)
    return in_thread(work).result()


async def asweep(
    *overrides: str, progress: bool = True, keep_going: bool = False, **settings: Any
) -> Sweep:
    """`sweep`, to be awaited: other tasks of the event loop go on."""
    words = [*overrides, *_alternatives(settings)]
    work = partial(_sweep, words, progress=progress, keep_going=keep_going)
    return await asyncio.wrap_future(in_thread(work))


def plan(*overrides: str, exact: bool = False, **settings: Any) -> Forecast:
    """What a run or a sweep would do and cost: runs, calls, tokens, dollars, minutes, and the
    differences that it could show. Nothing is run.

    `exact` looks at every open question. Raises `UserError` where a run can't be made.
    """
    words = [*overrides, *_alternatives(settings)]

    def work() -> Forecast:
        with _refusals_as_mistakes():
            return forecast_of(words, exact=exact)

    return in_thread(work).result()


def forecast_of(words: Sequence[str], *, exact: bool) -> Forecast:
    """The forecast of the runs that words compose.

    Raises `UserError`, and `RefusedError` where runs can't be made.
    """
    from memeval.runs.forecast.forecast import forecast
    from memeval.runs.interrupt import run_loop
    from memeval.runs.launch.planning import check_store_is_read

    with tempfile.TemporaryDirectory(prefix="memeval-plan-") as name:
        # What Hydra writes for a plan is thrown away.
        folder = Path(name)
        plan = _compose(words, folder)
        for planned in plan.cells:
            check_store_is_read(planned.cell.config.store)

        return run_loop(forecast(plan, folder, outputs_dir() / "runs", exact=exact))


def _alternatives(settings: dict[str, Any]) -> list[str]:
    """Keyword arguments as overrides: a string with commas holds the alternatives of a sweep."""
    swept = {
        name: value for name, value in settings.items() if isinstance(value, str) and "," in value
    }
    others = {name: value for name, value in settings.items() if name not in swept}
    return [*as_overrides(others), *(f"{name}={value}" for name, value in swept.items())]


def _sweep(words: Sequence[str], *, progress: bool, keep_going: bool) -> Sweep:
    from memeval.runs.batch import run_plan, start_workers
    from memeval.runs.job import check_writable, is_repeated
    from memeval.runs.session import new_session
    from memeval.runs.sweep_display import SweepDisplay

    check_writable()
    session = new_session([word for word in words if is_repeated(word)])
    going = ["hydra.launcher.keep_going=true"] if keep_going else []
    with _refusals_as_mistakes():
        plan = _compose([*words, *going], session.folder)

    show = partial(SweepDisplay, quiet=not progress)
    ends = run_plan(plan, session, start_workers, show=show)
    for outcome in ends.values():
        if outcome.error is not None and not isinstance(outcome.error, UserError | WorldError):
            raise outcome.error  # a fault of ours

    return _concluded(session)


def _compose(words: Sequence[str], folder: Path) -> Plan:
    from memeval.runs.environment import set_environment
    from memeval.runs.launch.planning import compose_plan
    from memeval.runs.session import composing_in

    set_environment()
    with COMPOSING, composing_in(folder):
        return compose_plan(words)


def _concluded(session: Session) -> Sweep:
    from memeval.runs.publish.conclusion import conclusion_of

    conclusion = conclusion_of(session)
    if conclusion.cells:
        conclusion.write(draws=True)
        conclusion.log()

    folders = [Path(cell.folder) for cell in conclusion.cells]
    runs = [Run(*pair) for pair in zip(folders, conclusion.summaries, strict=True)]
    comparisons = [group.comparison for group in conclusion.compared if group.comparison]
    return Sweep(
        runs=runs,
        failures=session.failed_cells(),
        comparisons=Comparisons(comparisons),
        folder=session.folder,
    )


@contextmanager
def _refusals_as_mistakes() -> Iterator[None]:
    """Raises `UserError`, with each mistake once, for a sweep of which nothing can be run."""
    from memeval.runs.compose.refused import RefusedError

    try:
        yield
    except RefusedError as refusal:
        errors = {error.message: error for error in refusal.errors}
        hints = [hint for error in errors.values() for hint in error.hints]
        raise UserError("; ".join(errors), *dict.fromkeys(hints)) from refusal
