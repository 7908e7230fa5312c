"""The models, the embedder and the reranker that a cell calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memeval.config.roles import ANSWERS, INGEST, JUDGE, called_roles, settings_of_role, written_for
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.retrieval.rerank import NONE as NO_RERANKER

OFFLINE = ("tfidf", NO_RERANKER)
"""Options that call nothing, even with an address."""


@dataclass(frozen=True)
class Called:
    """A model that a cell calls."""

    part: str
    """Path of its settings."""
    model: str
    address: str
    option: str
    """The setting that names the address."""


def called_models(cell: Cell, more: Sequence[str] = ()) -> Iterator[Called]:
    """The endpoints that the cell calls; `more` are additional roles."""
    config = cell.config
    for role in called_roles(config.llm, (*_roles(cell), *more)):
        settings = settings_of_role(config.llm, role)
        # A role without its own address calls that of the answers: a message must name the setting
        # that the user wrote.
        own = role if written_for(config.llm, role).base_url else ANSWERS
        yield Called(role, str(settings.model), str(settings.base_url), f"{own}.base_url")

    for path, part in (("embedder", config.embedder), ("reranker", config.reranker)):
        if part.base_url and part.name not in OFFLINE:
            yield Called(path, str(part.model), part.base_url, f"{path}.base_url")


def options_of_addresses(cell: Cell) -> dict[str, str]:
    """The setting that names each address, by address; the first if several name it."""
    options: dict[str, str] = {}
    for called in called_models(cell):
        options.setdefault(called.address, called.option)

    return options


def roles_of_models(cell: Cell) -> dict[str, str]:
    """The settings of each model that is called, by address and model; the first of equal ones."""
    roles: dict[str, str] = {}
    for called in called_models(cell):
        roles.setdefault(f"{called.address} {called.model}", called.part)

    return roles


def _roles(cell: Cell) -> list[str]:
    """The roles of the language model that the cell has work for."""
    roles = []
    if not retrieves_only(cell.config) and not cell.is_imported:
        roles.append(ANSWERS)
    if cell.identity.uses_llm_at_ingest:
        roles.append(INGEST)
    if cell.identity.judge_uses_llm:
        roles.append(JUDGE)

    return roles
