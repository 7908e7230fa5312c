"""The budget of a config, checked before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.llm.budget import Budget, Limits
from memeval.pipeline.open.addresses import called_models
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.declared import Declared
from memeval.records import Role, Usage
from memeval.results.prices import cost_usd, provider_of

OWN_SERVERS = ("memeval.systems.external.letta", "memeval.systems.external.mem0_cloud")
"""Systems that call models behind their own server, and can't be simulated."""


def limits_of(config: RunConfig) -> Limits:
    """Spending limits of a command under this config."""
    budget = config.budget
    return Limits(usd=budget.usd, tokens=budget.tokens, calls=budget.calls)


def budget_of(config: RunConfig) -> Budget | None:
    """The budget of a cell that is run alone; None without limits."""
    limits = limits_of(config)
    return Budget(limits) if limits.any else None


def check_budget(cell: Cell, more: Sequence[str] = ()) -> None:
    """Raises `UserError` if the budget can't be kept; `more` are further roles called."""
    limits = limits_of(cell.config)
    if not limits.any:
        return

    source = cell.source
    if isinstance(source, Declared) and source.system_class.__module__ in OWN_SERVERS:
        raise UserError(
            f"a budget can't be enforced with system={cell.config.system['name']}: its server "
            "makes the calls",
            "leave the budget out",
        )

    if limits.usd is not None:
        _check_prices(cell, more)


def _check_prices(cell: Cell, more: Sequence[str]) -> None:
    for called in called_models(cell, more):
        # Any tokens will do: the price list either knows the model or does not.
        usage = Usage(Role.ANSWER, called.model, provider_of(called.address), 1, 1)
        if cost_usd(usage) is None:
            raise UserError(
                f"budget.usd needs the price of {called.part}.model={called.model}, which is "
                "unknown",
                "use:  budget.tokens=... or budget.calls=...",
            )
