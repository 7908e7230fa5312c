"""The models, the embedder and the reranker that a cell calls, and their budget."""

from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from memeval.config.roles import (
    ANSWERS,
    INGEST,
    JUDGE,
    called_roles,
    package_models,
    section_of_role,
    settings_of_role,
)
from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.llm.breaker import Breaker
from memeval.llm.budget import Budget, SpendingLimits
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.records import Role, Usage
from memeval.results.own_prices import EXAMPLE
from memeval.results.prices import cost_usd, provider_of
from memeval.retrieval.rerank import NONE as NO_RERANKER

T = TypeVar("T")
OFFLINE = ("tfidf", NO_RERANKER)
"""Options that make no calls, even if a URL is set."""


class CalledModel(Struct, frozen=True):
    part: str
    """Path of the model's settings."""
    model: str
    address: str
    option: str
    """The setting that contains the URL."""


def called_models(cell: Cell, more: Sequence[str] = ()) -> Iterator[CalledModel]:
    """The models that the cell calls; `more` are additional roles."""
    config = cell.config
    for role in called_roles(config.llm, (*_roles(cell), *more)):
        settings = settings_of_role(config.llm, role)
        # A role without its own URL calls that of the answers: a message must name the setting that
        # the user wrote.
        url_role = role if section_of_role(config.llm, role).base_url else ANSWERS
        yield CalledModel(role, str(settings.model), str(settings.base_url), f"{url_role}.base_url")

    for path, part in (("embedder", config.embedder), ("reranker", config.reranker)):
        if part.base_url and part.name not in OFFLINE:
            yield CalledModel(path, str(part.model), part.base_url, f"{path}.base_url")


def calls_package_models(cell: Cell) -> bool:
    return bool(package_models(cell.config.llm, _roles(cell)))


async def run_with_breaker(
    cell: Cell, breaker: Breaker, work: Coroutine[Any, Any, T], more: Sequence[str] = ()
) -> T:
    """The result of `work`, unless an endpoint of the cell is dead; `more` are additional roles.
    Raises as `Breaker.run`.
    """
    options: dict[str, str] = {}
    roles: dict[str, str] = {}
    # If several settings name a URL or a model, the first one counts.
    for called in called_models(cell, more):
        options.setdefault(called.address, called.option)
        roles.setdefault(f"{called.address} {called.model}", called.part)

    return await breaker.run(work, options, cell.config.stop_after_failures, roles)


def _roles(cell: Cell) -> list[str]:
    roles = []
    if not retrieves_only(cell.config) and not cell.is_imported:
        roles.append(ANSWERS)
    if cell.identity.uses_llm_at_ingest:
        roles.append(INGEST)
    if cell.identity.judge_uses_llm:
        roles.append(JUDGE)

    return roles


def limits_of(config: RunConfig) -> SpendingLimits:
    """Spending limits of a command under this config."""
    budget = config.budget
    return SpendingLimits(usd=budget.usd, tokens=budget.tokens, calls=budget.calls)


def budget_of(config: RunConfig) -> Budget | None:
    """The budget of a command under this config; None without limits."""
    limits = limits_of(config)
    return Budget(limits) if limits.any else None


def check_budget(cell: Cell, more: Sequence[str] = ()) -> None:
    """Raises `UserError` if the budget can't be kept; `more` are additional roles."""
    limits = limits_of(cell.config)
    if not limits.any:
        return

    if cell.source.settings.own_server:
        raise UserError(
            f"a budget can't be enforced with system={cell.config.system['name']}: its server "
            "makes the calls",
            "leave the budget out",
        )

    for name in package_models(cell.config.llm, (*_roles(cell), *more)):
        raise UserError(
            f"a budget can't be enforced with llm={name}: the model's package makes the calls",
            "leave the budget out",
        )

    if limits.usd is None:
        return

    for called in called_models(cell, more):
        # The number of tokens does not matter: only whether the price list knows the model.
        usage = Usage(Role.ANSWER, called.model, provider_of(called.address), 1, 1)
        if cost_usd(usage) is None:
            raise UserError(
                f"budget.usd needs the price of {called.part}.model={called.model}, which is "
                "unknown",
                "use budget.tokens=... or budget.calls=..., or put it into prices.yaml",
                EXAMPLE,
            )
