"""The arguments of a tool call: their JSON, checked against the tool's schema.

The part of JSON Schema that tools use: types, properties, required ones, enumerations, items and
bounds. The tool itself must check other keywords (patterns, references, formats).
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from memeval.results.files import without_halves
from memeval.systems.tools import Tool
from memeval.text.shown import one_line

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
MOST_LEVELS = 100
"""Levels of nesting in a call's arguments; no tool could read or send deeper ones."""
_DEEPEST = 20
"""Levels of a schema that are checked."""


def load_arguments(arguments: str) -> Any:
    """The JSON of some arguments. Raises `ValueError` or `RecursionError` if it is not JSON."""
    value = json.loads(arguments, parse_constant=_refuse_constant)
    if _is_deeper(value, MOST_LEVELS):
        raise ValueError(f"more than {MOST_LEVELS} levels")
    if "\\u" not in arguments:
        return value

    # Removes halves of surrogate pairs, which a tool could neither send nor store.
    return json.loads(without_halves(json.dumps(value, ensure_ascii=False)))


def _is_deeper(value: Any, levels: int) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return False

    return levels == 0 or any(_is_deeper(part, levels - 1) for part in parts)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def mistake(value: Any, schema: Any, path: str = "arguments", depth: int = 0) -> str | None:
    """The first mistake in a value, worded for the model that made it; None if it is valid."""
    # A schema comes from outside, too: an unreadable part of it allows everything.
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None

    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword)
        if isinstance(options, list | tuple) and options:
            mistakes = [mistake(value, option, path, depth + 1) for option in options]
            if None not in mistakes:
                return mistakes[0]

    return (
        _mistake_of_type(value, schema.get("type"), path)
        or _mistake_of_value(value, schema, path)
        or _mistake_of_parts(value, schema, path, depth)
    )


def _mistake_of_type(value: Any, wanted: Any, path: str) -> str | None:
    names = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(names, list | tuple) or not names:
        return None

    known = [name for name in names if isinstance(name, str) and name in _TYPES]
    if len(known) < len(names) or any(_is_of_type(value, name) for name in known):
        return None

    return f"{path} must be of type {' or '.join(known)}, but is {one_line(repr(value), 60)}"


def _is_of_type(value: Any, name: str) -> bool:
    # In Python, a boolean is an integer; in JSON, 5.0 is one.
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if name == "integer" and isinstance(value, float):
        return value.is_integer()

    return isinstance(value, _TYPES[name])


def _mistake_of_value(value: Any, schema: Mapping[str, Any], path: str) -> str | None:
    allowed = schema.get("enum")
    if isinstance(allowed, list | tuple) and value not in allowed:
        shown = ", ".join(one_line(repr(option), 40) for option in allowed[:20])
        return f"{path} must be one of {shown}, but is {one_line(repr(value), 60)}"

    if isinstance(value, int | float) and not isinstance(value, bool):
        least, most = schema.get("minimum"), schema.get("maximum")
        if isinstance(least, int | float) and not value >= least:
            return f"{path} must be at least {least}, but is {value}"
        if isinstance(most, int | float) and not value <= most:
            return f"{path} must be at most {most}, but is {value}"

    return None


def _mistake_of_parts(value: Any, schema: Mapping[str, Any], path: str, depth: int) -> str | None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            part_mistake = mistake(item, schema.get("items"), f"{path}[{index}]", depth + 1)
            if part_mistake is not None:
                return part_mistake

    if not isinstance(value, dict):
        return None

    named, required = schema.get("properties"), schema.get("required")
    if not isinstance(named, Mapping):
        named = {}
    if isinstance(required, list | tuple):
        for name in required:
            if isinstance(name, str) and name not in value:
                return f"{path} lacks '{one_line(name, 60)}'"

    for name in value:
        if name not in named and schema.get("additionalProperties") is False:
            known = ", ".join(map(str, named))
            return f"{path} has an unknown '{one_line(name, 60)}'; known: {known}"

    for name, item in value.items():
        part_mistake = mistake(item, named.get(name), f"{path}.{name}", depth + 1)
        if part_mistake is not None:
            return part_mistake

    return None


def whole_numbers(arguments: Mapping[str, Any], tool: Tool) -> dict[str, Any]:
    """The arguments with 5 instead of 5.0 if an integer is expected."""
    properties = tool.parameters.get("properties")
    converted = dict(arguments)
    if not isinstance(properties, Mapping):
        return converted

    for name, value in arguments.items():
        schema = properties.get(name)
        needs_integer = isinstance(schema, Mapping) and schema.get("type") == "integer"
        if needs_integer and isinstance(value, float):
            converted[name] = int(value)

    return converted
