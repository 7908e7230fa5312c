"""Reads settings of a system or a data set into the dataclass that declares them."""

import traceback
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from memeval.errors import MemevalError, UserError, unknown
from memeval.text.shown import one_line

T = TypeVar("T")

TIMEOUT = "timeout_s"
"""The key of `system` that limits the time of each method call, whatever the system."""
TENANTS, SHARED = "tenants", "shared"
"""The key of `system` that puts another user's sessions into the same store, and its only value."""
SHARED_SETTINGS = frozenset({TIMEOUT, TENANTS})
REQUIRED = "???"
"""The value of a setting that has no default, until it is given one."""
NOT_SETTINGS = frozenset({"name", "class"})
"""Keys of a group's YAML that identify the option and are not settings."""

_TYPE_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
}


def read_settings(settings_type: type[T], given: Mapping[str, Any], group: str = "system") -> T:
    """Settings from YAML values, with defaults for the others. Raises `UserError`."""
    if not (isinstance(settings_type, type) and is_dataclass(settings_type)):
        raise UserError(
            f"the settings type of this {group} must be a dataclass, "
            f"not {one_line(settings_type, 80)}"
        )

    try:
        values = _values(settings_type, own_settings(given, group), f"{group}.")
        for entry in fields(settings_type):
            if entry.init and default_of(entry) is MISSING and entry.name not in values:
                raise UserError(
                    f"{group}.{entry.name} has no default and no value",
                    f"give it one:  {group}.{entry.name}=...",
                )

        return settings_type(**values)
    except MemevalError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        file = f"{Path(last.filename).name}:{last.lineno}"
        where = f"{settings_type.__module__}:{settings_type.__qualname__} ({file})"
        raise UserError(
            f"the settings of this {group} can't be read: {where}: {type(error).__name__}: "
            f"{one_line(error)}"
        ) from error


def default_of(entry: Field[Any]) -> Any:
    """A dataclass field's default, created by its factory if any; `MISSING` if there is none."""
    return entry.default if entry.default_factory is MISSING else entry.default_factory()


def own_settings(given: Mapping[str, Any], group: str) -> dict[str, Any]:
    """The given values without the option's name and the fields that all systems share."""
    shared = NOT_SETTINGS | SHARED_SETTINGS if group == "system" else NOT_SETTINGS
    return {key: value for key, value in given.items() if key not in shared}


def _values(settings_type: type[Any], given: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The given values by field, converted; a group of settings is merged into its default."""
    hashable: Any = settings_type
    types = _hints(hashable)
    known = {entry.name: entry for entry in fields(settings_type)}
    values = {}

    for key, value in given.items():
        if not known:
            raise UserError(
                f"unknown option '{prefix}{key}': this {prefix.removesuffix('.')} has no settings"
            )

        if key not in known:
            raise unknown("option", f"{prefix}{key}", [f"{prefix}{name}" for name in known])

        if is_dataclass(types[key]):
            values[key] = _group(known[key], value, f"{prefix}{key}")
        else:
            values[key] = _convert(f"{prefix}{key}", value, types[key])

    return values


@cache
def _hints(settings_type: type[Any]) -> dict[str, Any]:
    return get_type_hints(settings_type)


def _group(entry: Field[Any], given: Any, key: str) -> Any:
    default = default_of(entry)
    if not isinstance(given, Mapping):
        raise UserError(
            f"{key} is a group of settings, but is '{given}'",
            f"set one of them:  {key}.{fields(default)[0].name}=...",
        )

    return replace(default, **_values(type(default), given, f"{key}."))


def _convert(key: str, value: Any, wanted: Any) -> Any:
    """The value, checked to be `wanted`. The only conversion is from a whole number to a float."""
    origin = get_origin(wanted)
    if origin is Literal:
        if value not in get_args(wanted):
            raise unknown(f"value of {key}", str(value), list(map(str, get_args(wanted))))

        return value

    if origin in (Union, UnionType):
        if value is None and NoneType in get_args(wanted):
            return None

        # A setting has one type, or is None: there is no guessing among several types.
        (wanted,) = [option for option in get_args(wanted) if option is not NoneType]
        return _convert(key, value, wanted)

    if origin is tuple:
        return _list(key, value, get_args(wanted)[0])
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)

    # True and False are ints in Python.
    if wanted in _TYPE_WORDS and (
        not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)
    ):
        hints = []
        if isinstance(value, list | tuple):
            hints = [f"to compare several, in a sweep:  {key}={','.join(map(str, value))}"]

        raise UserError(f"{key} must be {_TYPE_WORDS[wanted]}, but is '{value}'", *hints)

    return value


def _list(key: str, value: Any, wanted: Any) -> tuple[Any, ...]:
    """A YAML list as a tuple of ids: strings, or whole numbers if `wanted` allows it."""
    if not isinstance(value, list | tuple):
        raise UserError(f"{key} must be a list, for example [1, 2]")

    allowed_types = get_args(wanted) or (wanted,)
    for item in value:
        if isinstance(item, bool) or not isinstance(item, allowed_types):
            raise UserError(
                f"{key} must be a list of ids, for example [1, 2]; '{item}' is not an id"
            )

    return tuple(value)
