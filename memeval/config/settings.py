"""Reads values of YAML into the dataclass that declares them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from memeval.config.classes import explaining, path_of
from memeval.errors import UserError, check_number, unknown
from memeval.text.shown import one_line

T = TypeVar("T")

TIMEOUT = "timeout_s"
"""The key of `system` that limits the time of each method call, for all systems."""
TENANTS, SHARED = "tenants", "shared"
"""The key of `system` that puts another user's sessions into the same store, and its only value."""
SHARED_SETTINGS = frozenset({TIMEOUT, TENANTS})
REQUIRED = "???"
"""Placeholder for a setting without a default, until it gets a value."""
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

    with explaining(f"the settings of this {group} can't be read: {path_of(settings_type)}"):
        values = read_values(settings_type, own_settings(given, group), f"{group}.")
        for entry in fields(settings_type):
            if entry.init and default_of(entry) is MISSING and entry.name not in values:
                raise UserError(
                    f"{group}.{entry.name} has no default and no value",
                    f"set it:  {group}.{entry.name}=...",
                )

        return settings_type(**values)


def default_of(entry: Field[Any]) -> Any:
    """A dataclass field's default, created by its factory if any, else `MISSING`."""
    return entry.default if entry.default_factory is MISSING else entry.default_factory()


def own_settings(given: Mapping[str, Any], group: str) -> dict[str, Any]:
    """The given values without the option's name and the fields that all systems share."""
    shared = NOT_SETTINGS | SHARED_SETTINGS if group == "system" else NOT_SETTINGS
    return {key: value for key, value in given.items() if key not in shared}


def check_fields(settings: Any, prefix: str) -> None:
    """Raises `UserError` for a number outside the bounds that its field declares."""
    for entry in fields(settings):
        name, value = f"{prefix}.{entry.name}", getattr(settings, entry.name)
        if is_dataclass(value):
            check_fields(value, name)
        else:
            check_number(name, value, entry.metadata)


def _unknown_option(key: str, known: Sequence[str]) -> UserError:
    if known:
        return unknown("option", key, known)

    return UserError(f"unknown option '{key}': this {key.partition('.')[0]} has no settings")


def read_values(
    settings_type: type[Any],
    given: Mapping[str, Any],
    prefix: str = "",
    refuse: Callable[[str, Sequence[str]], UserError] = _unknown_option,
    *,
    loosely: bool = False,
) -> dict[str, Any]:
    """The given values by field, converted; a group of settings is merged into its default.

    `refuse` makes the error for an unknown path, from it and the known ones. `loosely` takes a
    number that is given as a string, and a string that is given as a number. Raises `UserError`.
    """
    hashable: Any = settings_type
    types = _hints(hashable)
    known = {entry.name: entry for entry in fields(settings_type)}
    values = {}

    for key, value in given.items():
        path = f"{prefix}{key}"
        if key not in known:
            raise refuse(path, [f"{prefix}{name}" for name in known])

        if not is_dataclass(types[key]):
            values[key] = _convert(path, value, types[key], loosely=loosely)
            continue

        default = default_of(known[key])
        if not isinstance(value, Mapping):
            raise UserError(
                f"{path} is a group of settings, but is '{value}'",
                f"set one of them:  {path}.{fields(default)[0].name}=...",
            )

        inner = read_values(type(default), value, f"{path}.", refuse, loosely=loosely)
        values[key] = replace(default, **inner)

    return values


@cache
def _hints(settings_type: type[Any]) -> dict[str, Any]:
    return get_type_hints(settings_type)


def _convert(key: str, value: Any, wanted: Any, *, loosely: bool) -> Any:
    """The value, checked to be `wanted`."""
    origin = get_origin(wanted)
    if origin is Literal:
        if value not in get_args(wanted):
            raise unknown(f"value of {key}", str(value), list(map(str, get_args(wanted))))

        return value

    if origin in (Union, UnionType):
        if value is None and NoneType in get_args(wanted):
            return None

        types = [option for option in get_args(wanted) if option is not NoneType]
        # The value must already have one of several types: nothing is converted.
        return value if type(value) in types else _convert(key, value, types[-1], loosely=loosely)

    if origin is tuple:
        return _list(key, value, get_args(wanted)[0])
    if origin is dict and not isinstance(value, Mapping):
        raise UserError(f"{key} must be a mapping, not '{value}'")
    if wanted not in _TYPE_WORDS or type(value) is wanted:
        return value

    # A whole number is a number, too. Interpolations of the environment are strings.
    is_whole = type(value) is int and wanted is float
    if is_whole or (loosely and type(value) in (str, int, float)):
        with suppress(ValueError, KeyError, OverflowError):
            return _CONVERSIONS[wanted](value)

    hints = []
    if isinstance(value, list | tuple):
        hints = [f"to compare several, in a sweep:  {key}={','.join(map(str, value))}"]

    shown = "null" if value is None else one_line(value, 60)
    raise UserError(f"{key} must be {_TYPE_WORDS[wanted]}, not '{shown}'", *hints)


def _whole(value: str | float) -> int:
    """A whole number. Raises `ValueError` for any other number or string."""
    if isinstance(value, float):
        raise ValueError("it may have a fraction")

    return int(value)


_TRUTH = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_CONVERSIONS: Mapping[Any, Callable[[Any], Any]] = {
    bool: lambda value: _TRUTH[str(value).lower()],
    int: _whole,
    float: float,
    str: str,
}


def _list(key: str, value: Any, wanted: Any) -> tuple[Any, ...]:
    """A YAML list as a tuple of ids: strings, or whole numbers if `wanted` allows it."""
    if not isinstance(value, list | tuple):
        raise UserError(f"{key} must be a list", f"for example:  {key}=[{one_line(value, 60)}]")

    allowed_types = get_args(wanted) or (wanted,)
    for item in value:
        if isinstance(item, bool) or not isinstance(item, allowed_types):
            example = "[1, 2]" if int in allowed_types else "[q1, '2'], with quotes around a number"
            raise UserError(
                f"{key} must be a list of ids, for example {example}; '{item}' is not an id"
            )

    return tuple(value)
