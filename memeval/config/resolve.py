"""From Hydra's composition to the typed, checked `RunConfig`."""

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError

from memeval.config.checks import check_address
from memeval.config.integers import option_value
from memeval.config.names import unknown_name
from memeval.config.options import class_path, options
from memeval.config.overrides import GROUPS, INTEGER_GROUPS
from memeval.config.paths import conf_dir
from memeval.config.plugins import own_file, plugin, plugins
from memeval.config.roles import (
    OFFLINE_READER,
    OTHERS,
    check_api_version,
    check_roles,
    is_local,
    section_of_role,
    share_limits,
)
from memeval.config.schema import EmbedderConfig, JudgeModelConfig, LlmConfig, RunConfig
from memeval.config.settings import REQUIRED, read_values
from memeval.config.validation import check
from memeval.errors import UserError, unknown
from memeval.text.shown import one_line
from memeval.text.yaml_files import load_yaml

OPENAI_BASE_URL = "https://api.openai.com/v1"
_WITHOUT_EMBEDDINGS = ("api.anthropic.com", "api.groq.com")


def resolve(composed: DictConfig | dict[str, Any]) -> RunConfig:
    """The typed config. Modifies a plain dictionary. Raises `UserError` naming the field."""
    container = composed if isinstance(composed, dict) else _as_plain(composed)
    for group in ("judge", "embedder", "reranker"):
        if isinstance(container.get(group), dict):
            container[group] = _typed_class(group, container[group])

    # Removed, because the schema can't know the fields of a user's data set or system.
    dataset = _check_name("dataset", container.pop("dataset", None))
    system = _check_name("system", container.pop("system", None))
    values = read_values(
        RunConfig, container, refuse=lambda path, _: unknown_name(path), loosely=True
    )
    config = RunConfig(**values)
    config.dataset, config.system = dataset, system
    check(config)
    if config.plots is None:
        config.plots = _plots_of_environment()
    if config.llm.name == "openai":
        _resolve_addresses(config.llm)
        check_roles(config.llm)
    elif config.llm.name == OFFLINE_READER:
        _resolve_judge_alone(config.llm)
    if config.embedder.name == "openai":
        _resolve_embedder(config.embedder, config.llm)
    if config.reranker.base_url:
        # A URL may include the path that is called: both forms mean the same URL.
        config.reranker.base_url = config.reranker.base_url.rstrip("/").removesuffix("/rerank")

    # Last, because roles with equal final URLs share a limit.
    share_limits(config)

    return config


def _as_plain(composed: DictConfig) -> dict[Any, Any]:
    """A composition as Python dictionaries, with its interpolations resolved."""
    try:
        container = OmegaConf.to_container(composed, resolve=True)
    except InterpolationResolutionError as error:
        raise UserError(f"{error.full_key}: {str(error).splitlines()[0]}") from error

    assert isinstance(container, dict)
    return container


def _check_name(group: str, values: Any) -> dict[str, Any]:
    """The values of a group whose option declares its own settings."""
    if not isinstance(values, dict) or not isinstance(values.get("name"), str):
        raise UserError(f"the config of a {group} needs a `name`")

    # A setting without a default is missing until it gets a value.
    given = {key: value for key, value in values.items() if value != REQUIRED}
    return _without_built_in_class(group, given)


def _typed_class(group: str, values: dict[Any, Any]) -> dict[str, Any]:
    """The values of a group by field name: `class`, a Python keyword, is `class_` there."""
    renamed = _without_built_in_class(group, values)
    if "class" in renamed:
        renamed["class_"] = renamed.pop("class")

    return renamed


def _without_built_in_class(group: str, values: dict[Any, Any]) -> dict[str, Any]:
    """The values without the class that the option's own YAML names, which is not a setting."""
    named = {str(key): value for key, value in values.items()}
    path = named.get("class")
    if path is not None and path == class_path(group, str(named.get("name"))):
        del named["class"]

    return named


def _address(base_url: str | None) -> str:
    """The URL of an endpoint, by default that of the environment.

    Raises `UserError` if the environment's is invalid; the config's URLs were checked.
    """
    if base_url:
        return base_url.rstrip("/")

    address = os.environ.get("OPENAI_BASE_URL") or OPENAI_BASE_URL
    check_address("OPENAI_BASE_URL", address)
    return address.rstrip("/")


def _resolve_addresses(llm: LlmConfig) -> None:
    """Makes the URLs of all roles comparable; a role without one uses the answers' model's."""
    llm.base_url = _address(llm.base_url)
    for path in OTHERS:
        role = section_of_role(llm, path)
        if role.base_url is not None:
            role.base_url = _address(role.base_url)


def _resolve_judge_alone(llm: LlmConfig) -> None:
    """Sets the URL of the judge's model if the offline reader answers."""
    judge, unset = llm.judge, JudgeModelConfig()
    if judge.model is not None:
        check_roles(llm)
        if judge.base_url is None:
            judge.api_key_env = judge.api_key_env or llm.api_key_env

        judge.base_url = _address(judge.base_url)
        return

    for entry in fields(judge):
        if getattr(judge, entry.name) != getattr(unset, entry.name):
            raise UserError(
                f"llm.judge.{entry.name} needs llm.judge.model: llm=extractive has no model to "
                "judge with",
                "for example:  llm.judge.model=gpt-4o-mini",
            )


def _resolve_embedder(embedder: EmbedderConfig, llm: LlmConfig) -> None:
    """Sets the embedder's URL, by default that of the answers' model.

    Each key belongs to a URL: raises `UserError` for another URL without its own key.
    """
    answers = llm.base_url if llm.name == "openai" else None
    openai_key_env = LlmConfig.api_key_env
    embedder.base_url = _address(embedder.base_url or answers)
    _check_embeddings(embedder.base_url)
    if embedder.base_url == answers and embedder.api_version is None:
        embedder.api_version = llm.api_version

    check_api_version("embedder", embedder)
    if embedder.api_key_env is not None:
        return

    if embedder.base_url == answers and embedder.headers is None:
        embedder.api_key_env, embedder.headers = llm.api_key_env, llm.headers
    elif embedder.base_url == answers:
        embedder.api_key_env = llm.api_key_env
    elif embedder.base_url == _address(None) and not (
        answers and llm.api_key_env == openai_key_env
    ):
        embedder.api_key_env = openai_key_env
    elif embedder.headers is None and not is_local(embedder.base_url):
        raise UserError(
            "embedder.base_url differs from llm.base_url, so llm's key is not sent there",
            "name the environment variable of its key:  embedder.api_key_env=MY_KEY",
        )


def _check_embeddings(address: str) -> None:
    """Raises `UserError` for the URL of a provider that is known to have no embeddings."""
    host = urlsplit(address).hostname or ""
    if host in _WITHOUT_EMBEDDINGS or host.startswith("bedrock-runtime."):
        raise UserError(
            f"embedder=openai: {host} has no embeddings",
            f"to use OpenAI's:  embedder.base_url={OPENAI_BASE_URL} "
            f"embedder.api_key_env={LlmConfig.api_key_env}",
            "or offline:  embedder=tfidf",
        )


def _plots_of_environment() -> bool | None:
    """Value of MEMEVAL_PLOTS. Raises `UserError` if it is neither true nor false."""
    value = os.environ.get("MEMEVAL_PLOTS")
    if not value:
        return None
    if value not in ("true", "false"):
        raise UserError(f"MEMEVAL_PLOTS must be true or false, not '{one_line(value)}'")

    return value == "true"


def check_choices(config: RunConfig, overrides: Sequence[str]) -> None:
    """Raises `UserError` for a choice that is a list, that a config file silently overrides, or
    that is made by `name`, which keeps the class of another option.
    """
    chosen = dict(text.lstrip("+").split("=", 1) for text in overrides if "=" in text)
    for group in GROUPS:
        _check_class(group, getattr(config, group), is_named=f"{group}.name" in chosen)

    for folder in filter(Path.is_dir, conf_dir().iterdir()):
        group = folder.name
        if chosen.get(group, "").startswith("["):
            raise UserError(
                f"{group}={chosen[group]} is a list, but {group} takes one option",
                f"to compare several:  python -m memeval -m {group}=a,b",
            )

        # Otherwise Hydra would silently take memeval's own option instead of the package's.
        plugin(group, chosen.get(group, ""))

    for group in INTEGER_GROUPS:
        if group not in chosen:
            continue

        option, value = chosen[group].strip("'\""), getattr(config, group)
        if option_value(group, option) not in (None, value):
            raise UserError(
                f"{group}={option} has no effect: a config file sets {group}: {value}",
                f'in that file, use:  defaults: [override /{group}: "{value}"]',
            )


def _check_class(group: str, values: Any, *, is_named: bool) -> None:
    """Raises `UserError` for a built-in class under the name of an option with another class, and
    under an unknown name if that is one of the words: only systems are renamed on the command line.
    """
    if not isinstance(values, dict):
        values = {"name": values.name, "class": values.class_}

    # The option's own class was removed.
    name, path = values.get("name"), values.get("class")
    if not str(path).startswith("memeval."):
        return
    if own_file(group, name):
        raise UserError(
            f"{group}.name={name} does not choose {group}={name}: the class would still be {path}",
            f"use:  {group}={name}",
        )
    if is_named and group != "system":
        raise unknown(f"{group}.name", name, {*options(group), *plugins(group)})


def read_config(path: Path) -> RunConfig:
    """The config of a run folder. Nothing named in it is imported or opened."""
    # It is already resolved, so OmegaConf, which takes ten times as long, is not needed.
    loaded = load_yaml(path)
    if not isinstance(loaded, dict):
        raise ValueError("not a mapping")

    # Runs of earlier development versions have this field, always null.
    if isinstance(loaded.get("llm"), dict):
        loaded["llm"].pop("judge_model", None)

    return resolve(loaded)
