"""The arguments of a tool call: their JSON, checked against the tool's schema.

The tool itself must check patterns, formats and references to other documents.
"""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, reduce
from operator import getitem
from typing import Any

from memeval.results.files import without_halves
from memeval.systems.tools import Tool
from memeval.text.shown import one_line

MAX_LEVELS = 100
"""Levels of nesting in a call's arguments; no tool could read or send deeper ones."""
_references: ContextVar[Iterator[int]] = ContextVar("references")
"""Counts the references to follow for one call: nested ones may double at each level."""


def load_arguments(arguments: str) -> Any:
    """The JSON of some arguments. Raises `ValueError` or `RecursionError` if it is not JSON."""
    value = json.loads(arguments, parse_constant=_refuse_constant, parse_float=_finite)
    if _is_deeper(value, MAX_LEVELS):
        raise ValueError(f"more than {MAX_LEVELS} levels")
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


def find_mistake(value: Any, schema: Any) -> str | None:
    """The most relevant mistake in a value, worded for the model that made it; None if there is
    none. A part of the schema that can't be used allows everything, as it comes from outside.
    """
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

    errors: list[Any] = []
    _references.set(iter(range(10_000)))
    # A schema can be wrong in many ways.
    with suppress(Exception):
        errors.extend(_validator(json.dumps(schema, default=dict)).iter_errors(value))

    error = best_match(errors)
    if error is None:
        return None

    return one_line(f"arguments{error.json_path.removeprefix('$')}: {error.message}", 300)


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    """A validator for a schema in JSON, without the schema's invalid keywords."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.validators import extend  # type: ignore[import-untyped]

    checks = Draft202012Validator.VALIDATORS

    def follow_within(validator: Any, reference: str, value: Any, parent: Any) -> Iterator[Any]:
        # A reference to another document would be downloaded.
        if reference.startswith("#") and next(_references.get(), None) is not None:
            yield from checks["$ref"](validator, reference, value, parent)

    def check_others(validator: Any, others: Any, value: Any, parent: Any) -> Iterator[Any]:
        if "patternProperties" not in parent:
            yield from checks["additionalProperties"](validator, others, value, parent)

    # A pattern from outside may take forever to match.
    ignored = dict.fromkeys(
        ("$dynamicRef", "pattern", "patternProperties", "unevaluatedProperties")
    )
    changed = {"$ref": follow_within, "additionalProperties": check_others, **ignored}
    content = json.loads(schema)
    for error in [*Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(content)]:
        _drop_keyword(content, list(error.absolute_path))

    return extend(Draft202012Validator, changed)(content)


def _drop_keyword(schema: Any, path: list[str | int]) -> None:
    # Without one of its members, a keyword such as `anyOf` would allow less.
    while path and isinstance(path[-1], int):
        path.pop()

    with suppress(LookupError, TypeError):  # already dropped
        reduce(getitem, path[:-1], schema).pop(path[-1])


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
