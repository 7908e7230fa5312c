"""Compares the arguments of Python functions with their annotations. A wrong type is reported on
one line, instead of a `TypeError` from deep inside memeval. So is a file name that is too long.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

from memeval.config.paths import refusing_paths
from memeval.errors import UserError
from memeval.results.run import Run
from memeval.text.shown import one_line

P = ParamSpec("P")
T = TypeVar("T")

_WORDS: Mapping[Any, tuple[str, str]] = {
    Run: ("a finished run, as returned by load_run", "finished runs"),
    str: ("a string", "strings"),
    Path: ("a path", "paths"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    datetime: ("a time", "times"),
    timedelta: ("a span of time", "spans of time"),
    types.NoneType: ("None", "None"),
}
"""How messages describe each annotation, in the singular and the plural."""
_NUMBERS = {int: Integral, float: Real}
_LISTS = (Sequence, Iterable)


def check_types(function: Callable[P, T]) -> Callable[P, T]:
    """Makes a function raise `UserError` for an argument whose type does not match its annotation.

    Annotations that are not in `_WORDS` are not compared.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if "settings" in signature.parameters:
            check_names(function, kwargs)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None

        for name, given in bound.arguments.items():
            parameter = signature.parameters[name]
            kinds = _kinds(parameter.annotation, function.__globals__)
            is_several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            values = given if is_several else (given,)
            for value in values:
                if kinds and not _fits_any(value, kinds):
                    wanted = " or ".join(map(_in_words, kinds))
                    raise UserError(
                        f"{function.__name__}: {name} must be {wanted}, "
                        f"not {one_line(repr(value), 80)}"
                    )

        with refusing_paths():
            return function(*args, **kwargs)

    return call


def check_names(function: Callable[..., object], given: Iterable[str]) -> None:
    """Raises `UserError` for a setting whose name is a misspelt parameter of the function; any
    other unknown name is refused when the settings are composed.
    """
    # Without `*overrides` and `**settings`, which can't be given by name.
    parameters = inspect.getfullargspec(function)
    names = parameters.args + parameters.kwonlyargs
    for name in given:
        near = get_close_matches(name, names, n=1, cutoff=0.8)
        if near and name not in names:
            # Imported here: it imports Hydra.
            from memeval.config.names import known_names

            if name not in known_names():
                message = f"{function.__name__}: unknown argument '{one_line(name)}'."
                raise UserError(f"{message} Did you mean: {near[0]}?")


def _kinds(annotation: Any, names: dict[str, Any]) -> tuple[Any, ...]:
    """The alternatives of an annotation; empty if one of them can't be compared."""
    # A string in modules with `annotations`. `get_type_hints` would need the result's types, too.
    annotated = eval(annotation, names) if isinstance(annotation, str) else annotation
    is_union = get_origin(annotated) in (Union, types.UnionType)
    kinds = get_args(annotated) if is_union else (annotated,)
    for kind in kinds:
        if kind not in _WORDS and get_origin(kind) not in _LISTS:
            return ()

    return kinds


def _fits_any(value: Any, kinds: Iterable[Any]) -> bool:
    return any(_fits(value, kind) for kind in kinds)


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) not in _LISTS:
        return isinstance(value, _NUMBERS.get(kind, kind))
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return False

    # An iterator can be read only once, by the function itself.
    members = value if isinstance(value, Collection) else ()
    kinds = _members(kind)
    return all(_fits_any(member, kinds) for member in members)


def _members(kind: Any) -> tuple[Any, ...]:
    (member,) = get_args(kind)
    return get_args(member) or (member,)


def _in_words(kind: Any) -> str:
    if get_origin(kind) in _LISTS:
        return f"a list of {' or '.join(_WORDS[member][1] for member in _members(kind))}"

    return _WORDS[kind][0]
