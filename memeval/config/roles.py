"""Roles of models. Unset fields come from the answers' model; limits are per URL and key."""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from memeval.config.schema import EmbedderConfig, LlmConfig, RerankerConfig, RunConfig
from memeval.errors import UserError
from memeval.text.redaction import holds_replacement

ANSWERS, INGEST, JUDGE = "llm", "llm.ingest", "llm.judge"
DRAFT, DRAFT_CHECK = "llm.draft", "llm.draft_check"
ROLES = (ANSWERS, INGEST, JUDGE)
"""The roles of a run by the path of their settings."""
DRAFTING = (DRAFT, DRAFT_CHECK)
"""The roles of `data draft`: one proposes questions, the other answers them."""
OTHERS = (INGEST, JUDGE, *DRAFTING)
"""The roles that inherit missing settings from the answers' model."""

ADDRESS_DEFAULTS = {"api_key_env": "", "headers": None, "api_version": None}
"""Defaults of settings not inherited by a role with its own URL: no secret goes elsewhere."""
MODEL_SETTINGS = ("limit_parameter", "reasoning_effort", "extra_body")
"""Settings that a role with its own model or URL does not inherit."""
RESERVED_PARAMETERS = {
    "model": "use:  {role}.model=...",
    "messages": "use:  prompt.file=... (or judge.prompt_file=...)",
    "temperature": "use:  {role}.temperature=...",
    "max_tokens": "use:  {role}.max_tokens=...",
    "max_completion_tokens": (
        "use:  {role}.max_tokens=... {role}.limit_parameter=max_completion_tokens"
    ),
    "reasoning_effort": "use:  {role}.reasoning_effort=...",
    "seed": "use:  seed=... or {role}.send_seed=false",
    "n": "memeval reads only one choice per reply; for several answers:  num_runs=...",
    "stream": "memeval does not stream replies",
    "tools": "for a memory's tools:  reader=tools or writer=tools; a provider's can't be used",
    "tool_choice": "under reader=tools, the last reply must be able to answer without a call",
}
"""Parameters of a request that `extra_body` must not contain, and the settings to use instead."""
EMBEDDER_LIMIT, RERANKER_LIMIT = 8, 16
"""Default limits of concurrent requests at a URL that no other role calls."""
BUILT_IN_MODELS = ("extractive", "mock", "openai")
"""The kinds of models that memeval has; any other is that of a package."""
OFFLINE_READER = "extractive"
"""The option of the group `llm` that is not a language model."""
_LOCAL = ("localhost", "127.0.0.1", "::1")


def settings_of_role(llm: LlmConfig, role: str) -> LlmConfig:
    """The settings of a role's model: its own, completed with those of the answers' model."""
    if role == ANSWERS:
        return llm

    settings = _own_settings(llm, role)
    # The offline reader answers, and a model judges.
    if role == JUDGE and llm.name == OFFLINE_READER and "model" in settings:
        settings["name"] = "openai"

    other_address = settings.get("base_url", llm.base_url) != llm.base_url
    other_model = other_address or settings.get("model", llm.model) != llm.model

    inherited: dict[str, Any] = {}
    # A key belongs to one URL, and headers may contain a key.
    if other_address:
        inherited |= ADDRESS_DEFAULTS
    if other_model:
        inherited |= dict.fromkeys(MODEL_SETTINGS)

    return dataclasses.replace(llm, **{**inherited, **settings})


def called_roles(llm: LlmConfig, roles: Sequence[str] = ROLES) -> list[str]:
    """The given roles whose model is behind an endpoint."""
    return [role for role in roles if settings_of_role(llm, role).name == "openai"]


def package_models(llm: LlmConfig, roles: Sequence[str] = ROLES) -> list[str]:
    """Names of the models of packages that the given roles call."""
    names: dict[str, None] = {}
    for role in roles:
        name = settings_of_role(llm, role).name
        if name not in BUILT_IN_MODELS:
            names[name] = None

    return list(names)


def lowest_limit(config: RunConfig) -> int | None:
    """The lowest limit of concurrent requests of the config's endpoints; None if it calls none."""
    roles = called_roles(config.llm)
    limits = [settings_of_role(config.llm, role).max_concurrency for role in roles]
    parts = [part for part in (config.embedder, config.reranker) if part.base_url is not None]
    limits += [part.max_concurrency for part in parts if part.max_concurrency is not None]
    return min(limits, default=None)


def with_roles_filled(llm: LlmConfig) -> LlmConfig:
    """The settings with every role filled in, so that settings that mean the same are equal."""
    filled = {}
    for role in OTHERS:
        name = role.partition(".")[2]
        settings = settings_of_role(llm, role)
        part = section_of_role(llm, role)
        values = {entry.name: getattr(settings, entry.name) for entry in dataclasses.fields(part)}
        filled[name] = type(part)(**values)

    return dataclasses.replace(llm, **filled)


def section_of_role(llm: LlmConfig, role: str) -> Any:
    """The part of the config for a role, as written, with its unset fields."""
    return llm if role == ANSWERS else getattr(llm, role.partition(".")[2])


def _own_settings(llm: LlmConfig, role: str) -> dict[str, Any]:
    section = section_of_role(llm, role)
    settings = {}
    for entry in dataclasses.fields(section):
        value = getattr(section, entry.name)
        if value is not None:
            settings[entry.name] = value

    return settings


def check_roles(llm: LlmConfig) -> None:
    """Raises `UserError` for roles with invalid settings. Addresses must be resolved before."""
    for role in called_roles(llm):
        check_api_version(role, settings_of_role(llm, role))

    for role in OTHERS:
        settings = _own_settings(llm, role)
        address = settings.get("base_url", llm.base_url)
        has_key = "api_key_env" in settings or "headers" in settings
        # A server on this machine rarely requires a key.
        if address != llm.base_url and not has_key and not is_local(address):
            raise UserError(
                f"{role}.base_url differs from llm.base_url, so llm's key is not sent there",
                f"name the environment variable of its key:  {role}.api_key_env=MY_KEY",
            )


def check_api_version(role: str, settings: LlmConfig | EmbedderConfig) -> None:
    """Raises `UserError` if Azure's version is set, but the URL is not that of a resource."""
    address = urlsplit(settings.base_url or "")
    is_resource = address.hostname != "api.openai.com" and "/openai" not in address.path
    if settings.api_version is not None and not is_resource:
        raise UserError(
            f"{role}.api_version is for Azure, but {settings.base_url} is not the URL of an Azure "
            "resource",
            f"use:  {role}.base_url=https://NAME.openai.azure.com, or without {role}.api_version",
        )


def share_limits(config: RunConfig) -> None:
    """Gives embedder and reranker the limit of their URL. Raises `UserError` for two limits."""
    callers = list(_callers(config))
    for first, second in combinations(callers, 2):
        limits = (first.limit, second.limit)
        if first.reach != second.reach or None in limits or first.limit == second.limit:
            continue

        raise UserError(
            f"{first.role}.max_concurrency={first.limit} and {second.role}.max_concurrency="
            f"{second.limit} set two limits for the same URL and key",
            f"use:  only {first.role}.max_concurrency={first.limit}, or another key for "
            f"{second.role}",
        )

    for settings, default in ((config.embedder, EMBEDDER_LIMIT), (config.reranker, RERANKER_LIMIT)):
        if settings.base_url is None:
            continue

        shared = [caller.limit for caller in callers if caller.reach == _reach(settings)]
        # Includes its own limit, as it is one of the callers.
        settings.max_concurrency = next(filter(None, shared), default)


class _Caller(Struct, frozen=True):
    """A role that calls an endpoint."""

    role: str
    reach: tuple[Any, ...]
    """URL, key and headers: callers that share them share one limit."""
    limit: int | None
    """Concurrent requests, if the role sets them itself."""


def _callers(config: RunConfig) -> Iterator[_Caller]:
    """The roles that call an endpoint, the answers' model first."""
    for role in called_roles(config.llm):
        settings = settings_of_role(config.llm, role)
        limit = _own_settings(config.llm, role).get("max_concurrency")
        yield _Caller(role=role, reach=_reach(settings), limit=limit)

    for role, other in (("embedder", config.embedder), ("reranker", config.reranker)):
        if other.base_url is not None:
            yield _Caller(role=role, reach=_reach(other), limit=other.max_concurrency)


def _reach(settings: LlmConfig | EmbedderConfig | RerankerConfig) -> tuple[Any, ...]:
    headers = tuple(sorted((settings.headers or {}).items()))
    return settings.base_url, settings.api_key_env, headers


def is_local(address: str | None) -> bool:
    """Whether a server is on this machine. A host that a package has replaced may have been local
    to its run, so it also counts.
    """
    host = urlsplit(address or "").hostname or ""
    return host in _LOCAL or holds_replacement(host)
