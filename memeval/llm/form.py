"""A form that a model fills: headings, fields `- Name:`, and lines below each field."""

import re
from collections.abc import Mapping, Sequence

_FIELD = re.compile(r"\s*[-*]\s*(?:\*\*)?(?P<name>[^:*\n]+?)(?:\*\*)?:(?:\*\*)?(?P<rest>.*)")

Filled = Mapping[str, Sequence[str]]
"""The lines below each field, by the field's name in lower case."""


def field_names(template: str) -> list[str]:
    """The names of a template's fields in lower case, in order."""
    return list(filter(None, map(_name, template.splitlines())))


def read_form(template: str, text: str) -> dict[str, list[str]]:
    """The lines below each field of a text; lines outside of all fields are left out."""
    known = set(field_names(template))
    filled: dict[str, list[str]] = {}
    below: list[str] | None = None

    for line in text.splitlines():
        name = _name(line)
        if name in known:
            below = filled.setdefault(name, [])
            # Models often write the value on the line of the field's name.
            line = _FIELD.sub(r"\g<rest>", line)  # noqa: PLW2901
        elif line.lstrip().startswith("#"):
            below = None

        if below is not None and line.strip():
            below.append(line.strip())

    return filled


def write_form(template: str, filled: Filled) -> str:
    """The template with the filled-in lines below its fields."""
    lines: list[str] = []
    for line in template.splitlines():
        lines += [line, *filled.get(_name(line), ())]

    return "\n".join(lines)


def _name(line: str) -> str:
    """The name of the field on a line, in lower case; empty if the line has no field."""
    if ":" not in line:
        return ""

    field = _FIELD.fullmatch(line)
    return field["name"].strip().lower() if field else ""
