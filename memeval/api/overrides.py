"""Converts keyword arguments to overrides of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memeval.errors import UserError
from memeval.text.shown import one_line

_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_./:@+-]+")


def as_overrides(settings: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as overrides.

    In a dictionary, `name` chooses the option and the other keys set its fields.
    """
    overrides = []
    for name, value in settings.items():
        if not isinstance(value, Mapping):
            overrides.append(f"{name}={as_value(value)}")
            continue

        fields = dict(value)
        if "name" in fields:
            overrides.append(f"{name}={as_value(fields.pop('name'))}")

        overrides += [f"{name}.{field}={as_value(inner)}" for field, inner in fields.items()]

    return overrides


def check_words(overrides: Sequence[object]) -> None:
    """Raises `UserError` for an override that is not a string."""
    for word in overrides:
        if not isinstance(word, str):
            raise UserError(
                f"an override is a string such as 'system=bm25', not {one_line(repr(word), 80)}"
            )


def plain(value: Any) -> Any:
    """A number, array or series of numpy and pandas as a Python value; other values unchanged."""
    is_foreign = hasattr(value, "tolist") and not isinstance(value, type)
    return value.tolist() if is_foreign else value


def as_value(value: Any) -> str:
    """A value as Hydra's override grammar writes it.

    Raises `UserError` for a class, a function and other objects that can't be a setting.
    """
    value = plain(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(as_value, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)}: {as_value(inner)}" for key, inner in value.items())
        return f"{{{', '.join(pairs)}}}"

    if callable(value) or (isinstance(value, Iterable) and not isinstance(value, str)):
        hint = "for several values, use a list"
        if callable(value):
            hint = "to use a class, name its path:  {'class': 'my_module:MyClass'}"

        raise UserError(f"{one_line(repr(value), 80)} is not a setting", hint)

    text = str(value)
    if isinstance(value, int | float) or _PLAIN_VALUE.fullmatch(text):
        return text

    # Hydra reads a quote after a backslash as escaped, so these backslashes are doubled.
    quoted = re.sub(r"(\\*)'", lambda match: match[1] * 2 + r"\'", text)
    trailing = len(quoted) - len(quoted.rstrip("\\"))

    return f"'{quoted}{chr(92) * trailing}'"


def as_word(name: str, value: Any) -> str:
    """A setting as a word of a printed command, quoted for Hydra and for the shell."""
    return shlex.quote(f"{name}={as_value(value)}")


def _key(key: object) -> str:
    """A dictionary key, escaped because Hydra's grammar allows no quotes around it."""
    return re.sub(r"([\\()\[\]{}:=, \t])", r"\\\1", str(key))
