"""The forecast of a sweep before it is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from memeval.errors import UserError
from memeval.pipeline.open.called import limits_of
from memeval.results.files import temporary_folder
from memeval.runs.forecast.estimate import Estimator
from memeval.runs.forecast.outlook import Outlook, look_ahead
from memeval.runs.forecast.totals import Estimate, shortfall
from memeval.runs.invocation import FailedCell
from memeval.runs.plan import Plan
from memeval.runs.units import StageUnits, Units
from memeval.text.shown import counted


@dataclass(frozen=True, repr=False)
class Forecast:
    """Work of a sweep, its cost, and the differences it could show."""

    cells: int
    finished_cells: int
    units: Mapping[str, StageUnits]
    """By stage."""
    estimate: Estimate
    outlooks: Sequence[Outlook]
    failures: Sequence[FailedCell] = ()
    """Runs that can't be made, with reasons, if the others may run without them."""

    def __repr__(self) -> str:
        runs = f"{counted(self.cells, 'run')}, {self.finished_cells:,} finished"
        calls, tokens = self.estimate.calls, self.estimate.tokens
        return f"<Forecast of {runs}: {counted(calls, 'call')}, {counted(tokens, 'token')}>"


async def forecast(plan: Plan, *, exact: bool = False) -> Forecast:
    """The forecast of a plan. Nothing is sent, and nothing is written outside a temporary folder.

    `exact` composes every open question.
    """
    units = Units()
    for planned in plan.cells:
        units.add(planned)

    with temporary_folder("plan") as folder:
        estimate = await Estimator(plan, units, Path(folder)).estimate(exact=exact)

    for planned in plan.cells[:1]:  # they share one budget
        notes = shortfall(estimate, limits_of(planned.cell.config))
        estimate = replace(estimate, basis=[*estimate.basis, *notes])

    return Forecast(
        cells=len(plan.cells),
        finished_cells=len(plan.cells) - len(plan.open_cells),
        units=units.by_stage,
        estimate=estimate,
        outlooks=look_ahead(plan, units.cases),
    )


def find_unread_store(plan: Plan) -> str | None:
    """The setting of a store whose finished work a forecast does not see, if any."""
    for planned in plan.cells:
        for name in ("url", "memories"):
            if getattr(planned.cell.config.store, name):
                return f"store.{name}"

    return None


def check_stores_are_read(plan: Plan) -> None:
    """Raises `UserError` for a store whose finished work the plan could not see."""
    if store := find_unread_store(plan):
        raise UserError(
            f"plan reads the files of the home, not {store}",
            f"leave {store} out: the plan then covers everything that this home has not finished",
        )
