"""Writes docs/api_reference.md from the docstrings: `python docs/api_reference.py`."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import memeval

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Python API: reference

Made from the docstrings by `python docs/api_reference.py`.
[The guide](python_api.md) shows how the parts are used.
"""


def reference() -> str:
    """The whole page."""
    names = [name for name in memeval.__all__ if not name.startswith("_")]
    functions = [name for name in names if inspect.isfunction(getattr(memeval, name))]
    classes = [name for name in names if inspect.isclass(getattr(memeval, name))]

    parts = [HEAD, "## Functions"]
    parts += [entry(name, getattr(memeval, name), level=3) for name in functions]
    parts += [class_entry(name, getattr(memeval, name)) for name in classes]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def entry(name: str, function: Any, level: int) -> str:
    """A function: its signature and its docstring."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=_Unquoted(parameter.annotation))
        if isinstance(parameter.annotation, str)
        else parameter
        for parameter in signature.parameters.values()
    ]
    returned = _Unquoted(signature.return_annotation)
    signature = signature.replace(parameters=parameters, return_annotation=returned)
    return f"{'#' * level} `{name}{signature}`\n\n{inspect.getdoc(function) or ''}"


class _Unquoted(str):
    """An annotation, which is a string in the code, as a signature shows a type."""

    __slots__ = ()
    __repr__ = str.__str__


def class_entry(name: str, kind: type[Any]) -> str:
    """A class: its docstring, its fields, and what it defines in public."""
    parts = [f"## `{name}`", inspect.getdoc(kind) or ""]
    if dataclasses.is_dataclass(kind):
        fields = dataclasses.fields(kind)
        parts += [f"### `{field.name}: {field.type}`" for field in fields]

    for member, value in vars(kind).items():
        if member.startswith("_"):
            continue
        if isinstance(value, property):
            returned = inspect.signature(value.fget).return_annotation if value.fget else "Any"
            parts.append(f"### `{member}: {returned}`\n\n{inspect.getdoc(value) or ''}")
        elif isinstance(value, classmethod):
            parts.append(entry(member, value.__func__, level=3))
        elif inspect.isfunction(value):
            parts.append(entry(member, value, level=3))
    return "\n\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
