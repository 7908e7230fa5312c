"""The budget of a config, checked before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.config.roles import ANSWERS, INGEST, JUDGE, ROLES, called_roles, settings_of_role
from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.llm.budget import Budget, Limits
from memeval.llm.prices import cost_usd, provider_of
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.declared import Declared
from memeval.records import Role, Usage

OWN_SERVERS = ("memeval.systems.external.letta", "memeval.systems.external.mem0_cloud")
"""Systems that call models behind a server of their own."""


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
            f"a budget can't be kept with system={cell.config.system['name']}: its own server "
            "makes its calls",
            "leave the budget out",
        )

    if limits.usd is not None:
        _check_prices(cell, more)


def _check_prices(cell: Cell, more: Sequence[str]) -> None:
    for path, model, address in _models(cell, more):
        # Any tokens will do: the price list either knows the model or does not.
        if cost_usd(Usage(Role.ANSWER, model, provider_of(address), 1, 1)) is None:
            raise UserError(
                f"budget.usd needs the price of {path}.model={model}, which is unknown",
                "use:  budget.tokens=... or budget.calls=...",
            )


def _models(cell: Cell, more: Sequence[str]) -> list[tuple[str, str, str]]:
    """The models that the cell calls: path of the settings, name and address."""
    config = cell.config
    called: list[tuple[str, str | None, str | None]] = []
    has_work = {
        ANSWERS: True,
        INGEST: cell.identity.uses_llm_at_ingest,
        JUDGE: cell.identity.judge_uses_llm,
        **dict.fromkeys(more, True),
    }
    for role in called_roles(config.llm, (*ROLES, *more)):
        if has_work[role]:
            settings = settings_of_role(config.llm, role)
            called.append((role, settings.model, settings.base_url))

    for path, part in (("embedder", config.embedder), ("reranker", config.reranker)):
        if part.base_url:
            called.append((path, part.model, part.base_url))

    return [(path, str(model), str(address)) for path, model, address in called]
