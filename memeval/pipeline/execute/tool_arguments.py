"""The arguments of a tool call: their JSON, checked against the tool's schema.

The tool itself must check patterns, formats and references to other documents.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from memeval.results.files import without_halves
from memeval.systems.tools import Tool
from memeval.text.shown import one_line

MOST_LEVELS = 100
"""Levels of nesting in a call's arguments; no tool could read or send deeper ones."""


def load_arguments(arguments: str) -> Any:
    """The JSON of some arguments. Raises `ValueError` or `RecursionError` if it is not JSON."""
    value = json.loads(arguments, parse_constant=_refuse_constant, parse_float=_finite)
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


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large")

    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def mistake(value: Any, schema: Any) -> str | None:
    """The most relevant mistake in a value, worded for the model that made it; None if there is
    none, or if the schema, which comes from outside, is not valid.
    """
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

    try:
        error = best_match(_validator(json.dumps(schema)).iter_errors(value))
    except Exception:  # noqa: BLE001 - a schema can be wrong in many ways
        return None

    if error is None:
        return None

    return one_line(f"arguments{error.json_path.removeprefix('$')}: {error.message}", 300)


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    """A validator for a schema in JSON. Raises `SchemaError` if the schema is not valid."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.validators import extend  # type: ignore[import-untyped]

    follow = Draft202012Validator.VALIDATORS["$ref"]

    def follow_within(validator: Any, reference: str, value: Any, around: Any) -> Iterator[Any]:
        # Others would be downloaded.
        if reference.startswith("#"):
            yield from follow(validator, reference, value, around)

    def leave_to_tool(*_: Any) -> Iterator[Any]:
        return iter(())

    # A pattern from outside may take forever.
    changed = {"$ref": follow_within, "$dynamicRef": leave_to_tool, "pattern": leave_to_tool}
    content = json.loads(schema)
    Draft202012Validator.check_schema(content)
    return extend(Draft202012Validator, changed)(content)


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
