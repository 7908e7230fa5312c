"""The roles of models: what a role leaves open is as the answers' model has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import combinations
from typing import Any
from urllib.parse import urlsplit

from memeval.config.schema import LlmConfig
from memeval.errors import UserError

ANSWERS, INGEST, JUDGE = "llm", "llm.ingest", "llm.judge"
ROLES = (ANSWERS, INGEST, JUDGE)
"""The roles by the path of their settings."""

OF_ADDRESS = ("api_key_env", "headers")
"""What a role with an address of its own does not take from the answers' model: secrets are sent
to the address that they are for.
"""
OF_MODEL = ("limit_parameter", "reasoning_effort", "extra_body")
"""What a role with a model or an address of its own does not take from the answers' model: another
model may refuse these parameters.
"""
LIMIT_PARAMETERS = ("max_tokens", "max_completion_tokens")
OF_BODY = {
    "model": "use:  {role}.model=...",
    "messages": "use:  prompt.file=... (or judge.prompt_file=...)",
    "temperature": "use:  {role}.temperature=...",
    "max_tokens": "use:  {role}.max_tokens=...",
    "max_completion_tokens": (
        "use:  {role}.max_tokens=... {role}.limit_parameter=max_completion_tokens"
    ),
    "reasoning_effort": "use:  {role}.reasoning_effort=...",
    "seed": "use:  seed=... or {role}.send_seed=false",
    "n": "memeval reads one choice of a reply; for several answers:  num_runs=...",
    "stream": "memeval reads whole replies",
}
"""Parameters of a request that `extra_body` must not hold, and what to use instead."""
_LOCAL = ("localhost", "127.0.0.1", "::1")


def settings_of_role(llm: LlmConfig, role: str) -> LlmConfig:
    """The settings of the model in a role: its own, and for the others those of the answers."""
    if role == ANSWERS:
        return llm

    own = _own_settings(llm, role)
    other_address = own.get("base_url", llm.base_url) != llm.base_url
    other_model = other_address or own.get("model", llm.model) != llm.model

    inherited: dict[str, Any] = {}
    if other_address:
        inherited |= {"headers": None}
    if other_model:
        inherited |= dict.fromkeys(OF_MODEL)

    return dataclasses.replace(llm, **{**inherited, **own})


def with_roles_filled(llm: LlmConfig) -> LlmConfig:
    """The settings with nothing left open in a role: two that mean the same are equal."""
    filled = {}
    for role in (INGEST, JUDGE):
        name = role.partition(".")[2]
        settings = settings_of_role(llm, role)
        own = getattr(llm, name)
        names = [field.name for field in dataclasses.fields(own)]
        filled[name] = type(own)(**{name: getattr(settings, name) for name in names})

    return dataclasses.replace(llm, **filled)


def _own_settings(llm: LlmConfig, role: str) -> dict[str, Any]:
    """What a role says itself, by field."""
    config = getattr(llm, role.partition(".")[2])
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return {name: value for name, value in values.items() if value is not None}


def check_roles(llm: LlmConfig) -> None:
    """Raises `UserError` for roles that can't be as they are set: addresses must be resolved."""
    for role in (INGEST, JUDGE):
        own = _own_settings(llm, role)
        address = own.get("base_url", llm.base_url)
        has_key = "api_key_env" in own or "headers" in own
        if address != llm.base_url and not has_key and not _is_local(address):
            raise UserError(
                f"{role}.base_url is not the address of the answers' model, whose key is not sent "
                "there",
                f"name the key:  {role}.api_key_env=MY_KEY, the environment variable that holds it",
            )

    for one, other in _sharing(llm):
        limits = [_own_limit(llm, role) for role in (one, other)]
        if None not in limits and limits[0] != limits[1]:
            raise UserError(
                f"{one}.max_concurrency={limits[0]} and {other}.max_concurrency={limits[1]} "
                "limit the same address under the same key, which has one limit",
                f"use:  {one}.max_concurrency={limits[0]} alone, or another key for {other}",
            )


def _sharing(llm: LlmConfig) -> Iterator[tuple[str, str]]:
    """Pairs of roles that call one address under one key."""
    for one, other in combinations(ROLES, 2):
        first, second = settings_of_role(llm, one), settings_of_role(llm, other)
        fields = ("base_url", "api_key_env", "headers")
        if all(getattr(first, name) == getattr(second, name) for name in fields):
            yield one, other


def _own_limit(llm: LlmConfig, role: str) -> int | None:
    """The limit that a role sets itself."""
    if role == ANSWERS:
        return llm.max_concurrency

    limit: int | None = _own_settings(llm, role).get("max_concurrency")
    return limit


def _is_local(address: str | None) -> bool:
    return (urlsplit(address or "").hostname or "") in _LOCAL
