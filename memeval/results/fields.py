"""Reads JSON objects of our own files into typed records: each field is checked as it enters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields as dataclass_fields
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Any, TypeVar

from memeval.records import Role, Usage

E = TypeVar("E", bound=StrEnum)
Json = dict[str, Any]

MOST = 10**13
"""Upper bound of a count: a million calls of ten million tokens each."""
_USAGE_FIELDS = tuple(field.name for field in dataclass_fields(Usage))


class Fields:
    """The members of one JSON object, read by name and type.

    Every reader raises `ValueError` naming the member that does not fit.
    """

    def __init__(self, members: Mapping[str, Any], prefix: str = "") -> None:
        self._members, self._prefix = members, prefix

    def wrong(self, name: str) -> ValueError:
        """The error for a member that is missing or of another type."""
        return ValueError(f"field '{self._prefix}{name}' is missing, or is not what it should be")

    def string(self, name: str) -> str:
        """A string."""
        value = self._members.get(name)
        if not isinstance(value, str):
            raise self.wrong(name)

        return value

    def string_or_none(self, name: str) -> str | None:
        """A string; None if it is missing or null."""
        value = self._members.get(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name)

        return value

    def boolean(self, name: str, default: bool = False) -> bool:
        """True or false; `default` where it is missing."""
        value = self._members.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name)

        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number of any sign; `default`, where one is given, if it is missing."""
        value = self._members.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(name)

        return value

    def count(self, name: str, default: int | None = None) -> int:
        """A whole number from 0 on; `default`, where one is given, if it is missing."""
        value = self._members.get(name, default)
        if not is_count(value):
            raise self.wrong(name)

        return int(value)

    def count_or_none(self, name: str) -> int | None:
        """A whole number from 0 on; None if it is missing or null."""
        return None if self._members.get(name) is None else self.count(name)

    def number_or_none(self, name: str) -> float | None:
        """A finite number; None if it is missing or null."""
        value = self._members.get(name)
        if value is None:
            return None
        if not is_number(value):
            raise self.wrong(name)

        return float(value)

    def weight(self, name: str) -> float:
        """A weight of a sample, above 0; 1 if it is missing."""
        value = self._members.get(name, 1.0)
        if not is_weight(value):
            raise self.wrong(name)

        return float(value)

    def strings(self, name: str) -> tuple[str, ...]:
        """A list of strings; empty if it is missing."""
        value = self._members.get(name, [])
        if not isinstance(value, list):
            raise self.wrong(name)

        # A loop, as a page reads a hundred thousand of these lists: `all` takes twice as long.
        for item in value:
            if not isinstance(item, str):
                raise self.wrong(name)

        return tuple(value)

    def counts(self, name: str) -> tuple[int, ...] | None:
        """A list of whole numbers from 0 on; None if it is missing or null."""
        value = self._members.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(map(is_count, value)):
            raise self.wrong(name)

        return tuple(value)

    def ranks(self, name: str) -> tuple[int | None, ...] | None:
        """A list of ranks from 1 on, null for what was not found; None if the list is missing or
        null.
        """
        value = self._members.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.wrong(name)

        for rank in value:
            if rank is not None and (not is_count(rank) or rank == 0):
                raise self.wrong(name)

        return tuple(value)

    def mapping(self, name: str) -> dict[str, Any]:
        """An object; empty if it is missing or null."""
        value = self._members.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(name)

        return value

    def numbers(self, name: str) -> dict[str, float | None]:
        """An object of finite numbers and nulls; empty if it is missing."""
        values = self.mapping(name)
        for value in values.values():
            if value is not None and not is_number(value):
                raise self.wrong(name)

        return values

    def member(self, name: str) -> Fields | None:
        """The members of an object within; None if it is missing or null."""
        if self._members.get(name) is None:
            return None

        return Fields(self.mapping(name), f"{self._prefix}{name}.")

    def items(self, name: str) -> Iterator[Fields]:
        """The members of each object in a list; none where the list is missing."""
        value = self._members.get(name, [])
        if not isinstance(value, list):
            raise self.wrong(name)

        for item in value:
            if not isinstance(item, dict):
                raise self.wrong(name)

            yield Fields(item, f"{self._prefix}{name}.")

    def check_names(self, known: tuple[str, ...]) -> None:
        """Raises `ValueError` for a member of another name."""
        for name in self._members:
            if name not in known:
                raise self.wrong(name)

    def raw(self, name: str) -> Any:
        """The member as it is."""
        return self._members.get(name)

    def has(self, name: str) -> bool:
        """Whether there is such a member, and it is not null."""
        return self._members.get(name) is not None

    def choice(self, name: str, of: type[E]) -> E:
        """A member of an enumeration, by its value."""
        try:
            return of(self.string(name))
        except ValueError as error:
            raise self.wrong(name) from error

    def time_or_none(self, name: str) -> datetime | None:
        """An ISO 8601 time; None if it is missing or null."""
        text = self.string_or_none(name)
        try:
            return None if text is None else datetime.fromisoformat(text)
        except ValueError as error:
            raise self.wrong(name) from error

    def usages(self, name: str) -> tuple[Usage, ...]:
        """A list of usages; empty if it is missing."""
        return tuple(map(_usage, self.items(name)))


def _usage(entry: Fields) -> Usage:
    entry.check_names(_USAGE_FIELDS)
    return Usage(
        role=entry.choice("role", Role),
        model=entry.string("model"),
        provider=entry.string("provider"),
        prompt_tokens=entry.count_or_none("prompt_tokens"),
        completion_tokens=entry.count_or_none("completion_tokens"),
        cached_tokens=entry.count("cached_tokens", 0),
        calls=entry.count("calls", 1),
        estimated=entry.boolean("estimated"),
        cached=entry.boolean("cached"),
    )


def usage_json(usage: Usage) -> dict[str, Any]:
    """A usage as JSON."""
    return {name: getattr(usage, name) for name in _USAGE_FIELDS} | {"role": usage.role.value}


def is_count(value: Any) -> bool:
    """Whether a value of JSON is a whole number from 0 to `MOST`."""
    return type(value) is int and 0 <= value <= MOST


def is_weight(value: Any) -> bool:
    """Whether a value of JSON is a number above 0, and not beyond `MOST`."""
    return is_number(value) and 0 < value <= MOST


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a finite number."""
    # `isinstance(value, int | float)` makes a new union each time, and this is asked of each score.
    if type(value) is float:
        return isfinite(value)

    return type(value) is int and abs(value) < 10**300
