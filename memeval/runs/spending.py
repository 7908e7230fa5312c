"""Checks and questions before a command spends money."""

import sys

from memeval.config.roles import called_roles, settings_of_role
from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.llm.budget import Budget, SpendingLimits
from memeval.llm.network import endpoint_settings
from memeval.metrics.formats import dollars
from memeval.pipeline.open.called import check_budget, limits_of
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import sampling_of
from memeval.runs.loop import run_loop
from memeval.runs.plan import Plan
from memeval.text.shown import counted

YES = ("y", "yes")


def check_keys(config: RunConfig) -> None:
    """Raises `UserError` if an endpoint lacks its key or its model, before anything starts."""
    for role in called_roles(config.llm):
        settings = settings_of_role(config.llm, role)
        if settings.base_url:
            endpoint_settings(settings, role)
            sampling_of(settings, role)

    embedder = config.embedder
    if embedder.name == "openai" and embedder.base_url:
        endpoint_settings(embedder, "embedder=openai")


def _is_limited(cell: Cell) -> bool:
    return limits_of(cell.config).any or cell.config.confirm_above_usd is not None


def refuse_limits_of_sweep(cell: Cell) -> None:
    """Raises `UserError` for limits in a sweep whose launcher is not memeval's: it runs each cell
    alone, perhaps in another process.
    """
    if _is_limited(cell):
        raise UserError(
            "budget.* and confirm_above_usd apply to a sweep as a whole, and only "
            "hydra/launcher=memeval runs a sweep as a whole",
            "leave them out, or use:  hydra/launcher=memeval",
        )


def refuse_limits(cell: Cell, command: str) -> None:
    """Raises `UserError` for limits that a command does not enforce."""
    if _is_limited(cell):
        raise UserError(
            f"{command} ignores budgets: budget.* and confirm_above_usd are for runs and sweeps",
            "leave them out",
        )


def refuse_confirmation(config: RunConfig, command: str) -> None:
    """Raises `UserError` for `confirm_above_usd` in a command that never asks about the cost."""
    if config.confirm_above_usd is not None:
        raise UserError(
            f"{command} ignores confirm_above_usd, which is for runs and sweeps",
            "leave it out, or use:  budget.usd=...",
        )


def shared_budget(plan: Plan, budgets: dict[SpendingLimits, Budget]) -> Budget | None:
    """The budget of a sweep; None without limits. `budgets` are those of the command.

    Raises `UserError` if cells have different budgets, or if one can't be enforced.
    """
    all_limits = {limits_of(planned.cell.config) for planned in plan.cells}
    if len(all_limits) > 1:
        raise UserError(
            "the runs of a sweep share one budget, but they set several",
            "set the same budget for all",
        )

    limits = next(iter(all_limits), SpendingLimits())
    if not limits.any:
        return None

    for planned in plan.open_cells:
        check_budget(planned.cell)

    return budgets.setdefault(limits, Budget(limits))


def confirm_cost(plan: Plan) -> None:
    """Asks for confirmation if the estimated cost is unknown or above `confirm_above_usd`.

    Raises `UserError` if the answer is no, or without a terminal.
    """
    bounds = []
    for planned in plan.open_cells:
        limit = planned.cell.config.confirm_above_usd
        if limit is not None:
            bounds.append(limit)

    if not bounds:
        return

    from memeval.runs.forecast.forecast import find_unread_store, forecast

    bound = min(bounds)
    estimate = run_loop(forecast(plan)).estimate
    usd = estimate.usd
    # An unknown cost could be any amount: it needs a confirmation.
    if usd is not None and usd <= bound:
        return

    cost = "at an unknown cost" if usd is None else f"for about ${dollars(usd)}"
    message = f"this would make {counted(estimate.calls, 'call')} {cost}"
    if store := find_unread_store(plan):
        message += f", not counting results that {store} already has"
    if estimate.uncounted:
        message += f" ({'; '.join(estimate.uncounted)})"

    _ask_for_consent(message, bound, usd)


def _ask_for_consent(message: str, bound: float, usd: float | None) -> None:
    if not sys.stdin.isatty():
        known = "raise it" if usd is not None else "put the models' prices into prices.yaml"
        raise UserError(
            f"{message}: confirm_above_usd={bound:g} asks for confirmation, but there is no "
            "terminal",
            f"leave confirm_above_usd out, or {known}",
        )

    print(f"memeval: {message}. Continue? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in YES:
        raise UserError("nothing was run")
