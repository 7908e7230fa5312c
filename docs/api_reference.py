"""Writes docs/api_reference.md from the docstrings: `python docs/api_reference.py`."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import memeval

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Python API: reference

Generated from the docstrings by `python docs/api_reference.py`.
[The guide](python_api.md) shows how the parts are used.
"""


def reference() -> str:
    """The whole page."""
    functions, classes = [], []
    for name in memeval.__all__:
        member = getattr(memeval, name)
        if name.startswith("_"):
            continue

        if inspect.isfunction(member):
            functions.append(entry(name, member))
        elif inspect.isclass(member):
            classes.append(class_entry(name, member))

    parts = [HEAD, "## Functions", *functions, *classes]
    return "\n\n".join(map(str.strip, parts)) + "\n"


def entry(name: str, function: Any) -> str:
    """The signature of a function and its docstring."""
    signature = inspect.signature(function)
    parameters = []
    for parameter in signature.parameters.values():
        annotation = parameter.annotation
        if isinstance(annotation, str):
            annotation = _Unquoted(annotation)

        parameters.append(parameter.replace(annotation=annotation))

    returned = _Unquoted(signature.return_annotation)
    signature = signature.replace(parameters=parameters, return_annotation=returned)
    return f"### `{name}{signature}`\n\n{inspect.getdoc(function) or ''}"


class _Unquoted(str):
    """An annotation, which is a string in the code, as a signature shows a type."""

    __slots__ = ()
    __repr__ = str.__str__


def class_entry(name: str, class_: type[Any]) -> str:
    """The docstring of a class, its fields, and its public members."""
    parts = [f"## `{name}`", inspect.getdoc(class_) or ""]
    if dataclasses.is_dataclass(class_):
        fields = dataclasses.fields(class_)
        parts += [f"### `{field.name}: {field.type}`" for field in fields]

    for member, value in vars(class_).items():
        if member.startswith("_"):
            continue

        if isinstance(value, property):
            returned = inspect.signature(value.fget).return_annotation
            parts.append(f"### `{member}: {returned}`\n\n{inspect.getdoc(value) or ''}")
        elif isinstance(value, classmethod):
            parts.append(entry(member, value.__func__))
        elif inspect.isfunction(value):
            parts.append(entry(member, value))

    return "\n\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
