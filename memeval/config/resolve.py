"""From Hydra's composition to the typed, checked `RunConfig`."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, InterpolationResolutionError, OmegaConfBaseException

from memeval.config.checks import check_address, check_headers, check_secrets
from memeval.config.integers import INTEGER_GROUPS, option_value
from memeval.config.names import unknown_name
from memeval.config.options import available, class_path
from memeval.config.paths import conf_dir
from memeval.config.renamed import RENAMED, current_name, warn_renamed
from memeval.config.roles import LIMIT_PARAMETERS, OF_BODY, ROLES, check_roles
from memeval.config.schema import ANSWER, JUDGE, PREPARE, LlmConfig, RunConfig
from memeval.config.settings import TIMEOUT
from memeval.errors import UserError, unknown
from memeval.shown import one_line

T = TypeVar("T")
OPENAI_BASE_URL = "https://api.openai.com/v1"

_LEAST: dict[str, float] = {
    "top_k": 1,
    "retain_recent": 0,
    "num_runs": 1,
    "granularity.size": 1,
    "granularity.overlap": 0,
    "prompt.choose_tokens": 1,
    **{
        f"{role}.{field}": least
        for role in ROLES
        for field, least in {
            "max_tokens": 1,
            "max_concurrency": 1,
            "patience_s": 0,
            "temperature": 0,
        }.items()
    },
    "llm.max_retries": 0,
    "embedder.width": 1,
    "embedder.max_concurrency": 1,
    "embedder.max_retries": 0,
    "embedder.patience_s": 0,
    "judge.threshold": 0,
    "judge.repeats": 1,
    "min_coverage": 0,
    "max_ingest_loss": 0,
}
_MOST: dict[str, float] = {
    **{f"{role}.max_concurrency": 1000 for role in ROLES},
    "embedder.max_concurrency": 1000,
    "llm.max_retries": 1000,
    "embedder.max_retries": 1000,
    "min_coverage": 1,
    "max_ingest_loss": 1,
    "judge.threshold": 1,
}
LONGEST_TIMEOUT_S = 86_400.0
"""A day: whoever waits longer for one reply waits for nothing."""
FRESH_STAGES = (PREPARE, ANSWER, JUDGE)
_ONE_OF = {
    "llm.name": ("extractive", "openai", "mock"),
    "tracking.name": ("mlflow", "none"),
    "judge.reading": ("first_word", "official"),
    "compression_unit": ("pairs", "chunks"),
}
_SPOKEN = {
    "integer": "a whole number",
    "int": "a whole number",
    "float": "a number",
    "boolean": "true or false",
    "bool": "true or false",
}
_NOT_OF_TYPE = re.compile(
    r"(?:Value|Incompatible value) '(?P<value>[^']*)' .*(?:converted to |field of type '|not a "
    r"valid )(?P<wanted>\w+)"
)


def resolve(composed: DictConfig) -> RunConfig:
    """The typed config.

    Raises `UserError` that names the field, what it holds and what it takes.
    """
    try:
        container = OmegaConf.to_container(composed, resolve=True)
    except InterpolationResolutionError as error:
        raise UserError(f"{error.full_key}: {str(error).splitlines()[0]}") from error

    assert isinstance(container, dict)
    _rename_options(container)
    _move_judge_model(container.get("llm"))
    for group in ("judge", "embedder"):
        if isinstance(container.get(group), dict):
            container[group] = _typed_class(group, container[group])

    dataset, system = (
        _check_name(group, container.pop(group, None)) for group in ("dataset", "system")
    )
    config = _build_typed(RunConfig, {str(key): value for key, value in container.items()})
    config.dataset, config.system = dataset, system
    check(config)
    if config.plots is None:
        config.plots = _plots_of_environment()
    if config.llm.name == "openai":
        _resolve_addresses(config.llm)
        check_roles(config.llm)
    if config.embedder.name == "openai":
        config.embedder.base_url = _address("embedder.base_url", config.embedder.base_url)

    return config


def _rename_options(container: Mapping[Any, Any]) -> None:
    """A config file of the user's own may say `name:` with an old name."""
    for group in RENAMED:
        values = container.get(group)
        if isinstance(values, dict) and isinstance(values.get("name"), str):
            values["name"] = current_name(group, values["name"])


def _move_judge_model(llm: Any) -> None:
    """`llm.judge_model` is the old name of `llm.judge.model`."""
    if not isinstance(llm, dict) or llm.get("judge_model") is None:
        return

    model = llm.pop("judge_model")
    judge = llm.setdefault("judge", {})
    if not isinstance(judge, dict):
        return  # refused where it is typed
    if judge.get("model") not in (None, model):
        raise UserError(
            f"llm.judge_model={one_line(model)} is the old name of "
            f"llm.judge.model={one_line(judge['model'])}, and both are set",
            "leave llm.judge_model out",
        )

    warn_renamed("llm.judge_model", "llm.judge.model")
    judge["model"] = model


def _check_name(group: str, values: Any) -> dict[str, Any]:
    """The values of a group whose option declares its own settings."""
    if not isinstance(values, dict) or not isinstance(values.get("name"), str):
        raise UserError(f"the config of a {group} needs a `name`")

    return _without_built_in_class(group, {str(key): value for key, value in values.items()})


def _typed_class(group: str, values: dict[Any, Any]) -> dict[str, Any]:
    """The values of a group by its fields: `class`, which can't name a field, is `class_` there."""
    own = _without_built_in_class(group, {str(key): value for key, value in values.items()})
    if "class" in own:
        own["class_"] = own.pop("class")

    return own


def _without_built_in_class(group: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values without the class that the option's own YAML names: that is no setting."""
    path = values.get("class")
    built_in = path is not None and path == class_path(group, str(values.get("name")))
    return {key: value for key, value in values.items() if key != "class" or not built_in}


def _address(option: str, base_url: str | None) -> str:
    """The address of an endpoint.

    Raises `UserError` where it is not one, or holds more than one should.
    """
    address = base_url
    if not address:
        address, option = os.environ.get("OPENAI_BASE_URL") or OPENAI_BASE_URL, "OPENAI_BASE_URL"

    check_address(option, address)
    return address.rstrip("/")


def _resolve_addresses(llm: LlmConfig) -> None:
    """Makes the addresses of all roles comparable; a role without one calls that of the answers."""
    llm.base_url = _address("llm.base_url", llm.base_url)
    for name, role in (("ingest", llm.ingest), ("judge", llm.judge)):
        if role.base_url is not None:
            role.base_url = _address(f"llm.{name}.base_url", role.base_url)


def _plots_of_environment() -> bool | None:
    """What MEMEVAL_PLOTS says. Raises `UserError` where it is neither true nor false."""
    value = os.environ.get("MEMEVAL_PLOTS")
    if not value:
        return None
    if value not in ("true", "false"):
        raise UserError(f"MEMEVAL_PLOTS must be true or false, not '{one_line(value)}'")

    return value == "true"


def _build_typed(schema: type[T], values: Mapping[str, Any]) -> T:
    try:
        merged = OmegaConf.merge(OmegaConf.structured(schema), OmegaConf.create(dict(values)))
        typed = OmegaConf.to_object(merged)
    except ConfigKeyError as error:
        raise unknown_name(error.full_key or str(error)) from error
    except OmegaConfBaseException as error:
        raise _explain_type_error(error) from error

    assert isinstance(typed, schema)
    return typed


def _explain_type_error(error: OmegaConfBaseException) -> UserError:
    first = str(error).splitlines()[0]
    match = _NOT_OF_TYPE.search(first)
    if match and match["wanted"].lower() in _SPOKEN:
        value = match["value"].replace("None", "null")
        return UserError(
            f"{error.full_key} must be {_SPOKEN[match['wanted'].lower()]}, not '{value}'"
        )

    if "is not a ListConfig" in first:
        return UserError(f"{error.full_key} must be a list, for example [1, 2]")

    return UserError(f"{error.full_key}: {first}" if error.full_key else first)


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """A config's leaves by dotted path; lists stay values. A field `class_` is named `class`."""
    items = (
        config.items()
        if isinstance(config, Mapping)
        else (
            (field.name.removesuffix("_"), getattr(config, field.name))
            for field in dataclasses.fields(config)
        )
    )
    leaves: dict[str, Any] = {}

    for name, value in items:
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) or dataclasses.is_dataclass(value):
            leaves |= flatten(value, f"{path}.")
        else:
            leaves[path] = value

    return leaves


def check(config: RunConfig) -> None:
    """Raises `UserError` for values of the right type that make no sense."""
    leaves = flatten(config)
    check_secrets(leaves)
    _check_numbers(leaves)
    for group, settings in (
        ("llm", config.llm),
        ("llm.ingest", config.llm.ingest),
        ("llm.judge", config.llm.judge),
        ("embedder", config.embedder),
    ):
        check_headers(f"{group}.headers", settings.headers or {})

    _check_parameters(config.llm)

    for path, value in leaves.items():
        if (
            path.endswith("url")
            and path.startswith(("llm.", "embedder.", "system."))
            and isinstance(value, str)
        ):
            check_address(path, value)

    if config.fresh is not None and config.fresh not in FRESH_STAGES:
        raise unknown("fresh", config.fresh, FRESH_STAGES)

    for path, allowed in _ONE_OF.items():
        if leaves[path] not in allowed:
            raise unknown(path, str(leaves[path]), allowed)

    if config.embedder.class_ is None:
        embedders = available("embedder")
        if config.embedder.name not in embedders:
            raise unknown("embedder.name", config.embedder.name, embedders)

    if config.judge.repeats % 2 == 0:
        raise UserError(
            f"judge.repeats must be an odd number, for a majority, not {config.judge.repeats}"
        )

    turn = config.compression_turn
    if turn not in ("never", "middle", "rolling") and (isinstance(turn, str) or turn < 1):
        raise UserError(
            f"compression_turn must be never, middle, rolling or a positive integer, not '{turn}'"
        )

    size, overlap = config.granularity.size, config.granularity.overlap
    if size is not None and overlap is not None and overlap >= size:
        raise UserError(
            f"granularity.overlap ({overlap}) must be smaller than granularity.size ({size})"
        )


def _check_parameters(llm: LlmConfig) -> None:
    """Raises `UserError` for parameters of requests that memeval sets itself, and for unknown names
    of the limit of tokens.
    """
    for path, role in (("llm", llm), ("llm.ingest", llm.ingest), ("llm.judge", llm.judge)):
        for name in role.extra_body or {}:
            if name in OF_BODY:
                raise UserError(
                    f"{path}.extra_body must not hold '{name}', which memeval sets itself",
                    OF_BODY[name].format(role=path),
                )

        if role.limit_parameter not in (None, *LIMIT_PARAMETERS):
            raise unknown(f"{path}.limit_parameter", str(role.limit_parameter), LIMIT_PARAMETERS)


def _check_numbers(leaves: Mapping[str, Any]) -> None:
    for path, value in leaves.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{path} must be a finite number, not {value}")

    for path, least in _LEAST.items():
        value = leaves.get(path)
        if value is not None and value < least:
            raise UserError(f"{path} must be at least {least:g}, not {value}")

    for path, most in _MOST.items():
        value = leaves.get(path)
        if value is not None and value > most:
            raise UserError(f"{path} must be at most {most:g}, not {value:g}")

    limit = leaves.get(f"system.{TIMEOUT}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
        raise UserError(
            f"system.{TIMEOUT} must be a number of seconds, or null, not '{one_line(limit)}'"
        )

    for path, value in leaves.items():
        if not path.endswith(".timeout_s") or not isinstance(value, int | float):
            continue

        if not 0 < value <= LONGEST_TIMEOUT_S:
            raise UserError(
                f"{path} must be above 0 seconds, and at most {LONGEST_TIMEOUT_S:g}, not {value:g}"
            )


def check_choices(config: RunConfig, overrides: Sequence[str]) -> None:
    """Raises `UserError` where Hydra would silently take something else than what was chosen.

    A config file that assigns `top_k:` or `compression_turn:` beats the option on the command line,
    and of a list of options the last wins.
    """
    chosen = dict(text.lstrip("+").split("=", 1) for text in overrides if "=" in text)
    groups = [path.name for path in conf_dir().iterdir() if path.is_dir()]

    for group in groups:
        if chosen.get(group, "").startswith("["):
            raise UserError(
                f"{group}={chosen[group]} is a list, but {group} takes one option",
                f"to compare several:  python -m memeval -m {group}=a,b",
            )

    for group in (group for group in INTEGER_GROUPS if group in chosen):
        option, value = chosen[group].strip("'\""), getattr(config, group)
        if option_value(group, option) not in (None, value):
            raise UserError(
                f"{group}={option} has no effect: a config file sets {group}: {value}",
                f'in that file, use:  defaults: [override /{group}: "{value}"]',
            )


def fields_of(group: str, option: str) -> list[str]:
    """Dotted paths of the fields that an option's file in conf/ has; none where there is no such
    file.
    """
    path = conf_dir() / group / f"{option}.yaml"
    values = OmegaConf.to_container(OmegaConf.load(path)) if path.is_file() else {}
    return [str(name) for name in flatten(values)]


def read_config(path: Path) -> RunConfig:
    """The config of a run folder. Nothing that it names is imported or opened."""
    loaded = OmegaConf.load(path)
    if not isinstance(loaded, DictConfig):
        raise ValueError("not a mapping")

    return resolve(loaded)


def as_yaml(settings: Mapping[str, Any]) -> str:
    """Settings as YAML, in the order given."""
    return OmegaConf.to_yaml(OmegaConf.create(dict(settings)))
