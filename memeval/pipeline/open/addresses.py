"""The addresses that a cell calls."""

from __future__ import annotations

from memeval.config.roles import ANSWERS, INGEST, JUDGE, called_roles, settings_of_role
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.imported_source import IMPORTED
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.retrieval.rerank import NONE as NO_RERANKER
from memeval.retrieval.rerank_endpoint import PATH


def called_addresses(cell: Cell) -> dict[str, str]:
    """The setting that names each address, by address; the first if several name it."""
    config = cell.config
    options: dict[str, str] = {}

    called = called_roles(config.llm)
    for role in (role for role in _roles(cell) if role in called):
        address = settings_of_role(config.llm, role).base_url
        # A role without an address of its own calls that of the answers: the message must name the
        # setting that the user wrote.
        is_own = role == ANSWERS or getattr(config.llm, role.partition(".")[2]).base_url
        if address is not None:
            options.setdefault(address, f"{role if is_own else ANSWERS}.base_url")

    if config.embedder.name == "openai" and config.embedder.base_url:
        options.setdefault(config.embedder.base_url, "embedder.base_url")

    reranker = config.reranker
    if reranker.name != NO_RERANKER and reranker.base_url:
        address = reranker.base_url.rstrip("/").removesuffix(PATH)
        options.setdefault(address, "reranker.base_url")

    return options


def called_models(cell: Cell) -> dict[str, str]:
    """The settings of each model that is called, by address and model; the first of equal ones."""
    roles: dict[str, str] = {}
    if cell.config.llm.name == "openai":
        for role in _roles(cell):
            settings = settings_of_role(cell.config.llm, role)
            roles.setdefault(f"{settings.base_url} {settings.model}", role)

    return roles


def _roles(cell: Cell) -> list[str]:
    """The roles of the language model that the cell has work for."""
    roles = []
    if not retrieves_only(cell.config) and cell.config.system["name"] != IMPORTED:
        roles.append(ANSWERS)
    if cell.identity.uses_llm_at_ingest:
        roles.append(INGEST)
    if cell.identity.judge_uses_llm:
        roles.append(JUDGE)

    return roles
