"""Reads the objects of a JSON file so that every mistake is listed, and not only the first."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memeval.datasets.io.fields import LONE_SURROGATE, kind_of, quoted
from memeval.errors import UserError
from memeval.results.files import HALF_CHARACTER

MOST_SHOWN = 20
"""Maximum number of mistakes that one message lists; the others are counted."""
TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2})?)?"
)
"""The times of a strict schema: 8/5/2024 is May in one country and August in another."""
TIMES = "write it as 2024-05-08, 2024-05-08T13:56 or 2024-05-08T13:56:00+02:00"


class Mistakes(Struct):
    """The mistakes of a file, and the fields that were not read."""

    path: Path
    schema: str
    """Location of the page that documents the schema."""
    strict: bool = False
    """Whether unknown fields, and times in another form than `TIME`, are mistakes. If not, unknown
    fields are counted, and all of ISO 8601 is read.
    """
    messages: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    """Fields that the schema does not know, such as `question.difficulty`, and their counts."""
    aliases_used: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Aliases of fields, the field that each was taken for, and how often."""

    def add(self, location: str, what: str) -> None:
        self.messages.append(f"{location}: {what}")

    def refuse(self) -> None:
        """Raises `UserError` if there are mistakes, and lists up to `MOST_SHOWN` of them."""
        if not self.messages:
            return

        first, *others = self.messages
        if not others:
            raise UserError(f"{self.path}: {first}.", f"the schema:  {self.schema}")

        shown = others[: MOST_SHOWN - 1]
        left = len(others) - len(shown)
        hints = [f"{mistake}." for mistake in shown]
        if left:
            hints.append(f"and {left:,} more")

        raise UserError(
            f"{self.path} has {len(self.messages):,} mistakes. {first}.",
            *hints,
            f"the schema:  {self.schema}",
        )


class EntryKind(Struct, frozen=True):
    """A kind of objects: its name in messages, and its fields."""

    noun: str
    fields: tuple[str, ...]
    aliases: Mapping[str, str] = {}
    """The field that each alias stands for."""


class FileEntry(Struct, frozen=True):
    """An object of the file. A field that is wrong is noted, and read as None."""

    location: str
    """Position in the file, as messages name it: `case 3 'north', question 'q7'`."""
    values: Mapping[str, Any]
    mistakes: Mistakes
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The alias that the file uses for a field, by field."""

    @classmethod
    def of(cls, location: str, value: Any, kind: EntryKind, mistakes: Mistakes) -> FileEntry | None:
        """The object at a position; None if the value is not an object."""
        if not isinstance(value, dict):
            mistakes.add(location, f"is {kind_of(value)}, not an object")
            return None

        aliases = {kind.aliases[name]: name for name in value if name in kind.aliases}
        for name, other in aliases.items():
            mistakes.aliases_used[other, name] += 1
            if name in value:
                mistakes.add(
                    location, f"field '{other}' is an alias of '{name}': use only one of them"
                )

        if aliases:
            value = {kind.aliases.get(name, name): item for name, item in value.items()}

        unread = [name for name in value if name not in kind.fields]
        if mistakes.strict:
            for name in unread:
                mistakes.add(location, _unknown_field(name, kind))
        else:
            mistakes.unread.update(f"{kind.noun}.{name}" for name in unread)

        return cls(location=location, values=value, mistakes=mistakes, aliases=aliases)

    @classmethod
    def of_case(
        cls, location: str, value: Any, kind: EntryKind, mistakes: Mistakes
    ) -> tuple[FileEntry, str | None] | None:
        """A case's object, with the case id in its location, and that id; None if not an object."""
        entry = cls.of(location, value, kind, mistakes)
        if entry is None:
            return None

        case_id = entry.name("case_id", required=True)
        if case_id is not None:
            entry = replace(entry, location=f"{location} {quoted(case_id)}")

        return entry, case_id

    def add_mistake(self, name: str, what: str) -> None:
        self.mistakes.add(self.location, f"field '{self.aliases.get(name, name)}' {what}")

    def text(self, name: str, *, required: bool = False) -> str | None:
        """A string that is not empty."""
        value = self._value(name, required=required)
        return None if value is None else self.check_text(name, value)

    def name(self, name: str, *, required: bool = False) -> str | None:
        """A string or an integer, as a string."""
        value = self._value(name, required=required)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)

        return None if value is None else self.check_text(name, value)

    def items(self, name: str, *, required: bool = False) -> list[Any] | None:
        value = self._value(name, required=required)
        if value is None or isinstance(value, list):
            return value

        self.add_mistake(name, f"is {kind_of(value)}, not a list")
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings; wrong items are noted and left out."""
        texts = map(partial(self.check_text, name), self.items(name) or [])
        return tuple(filter(None, texts))

    def required_items(self, name: str) -> list[Any]:
        """A list that must exist and must not be empty; otherwise a mistake is noted."""
        values = self.items(name, required=True)
        if values == []:
            self.add_mistake(name, "is empty")

        return values or []

    def boolean(self, name: str) -> bool:
        """A boolean; False if it is missing."""
        value = self._value(name)
        if value is None or isinstance(value, bool):
            return bool(value)

        self.add_mistake(name, f"is {kind_of(value)}, not true or false")
        return False

    def time(self, name: str) -> datetime | None:
        """A time or a date in ISO 8601, with its zone if it has one."""
        if self.mistakes.strict and not self._has_plain_time(name):
            return None

        text = self.text(name)
        if text is None:
            return None

        try:
            time = datetime.fromisoformat(text.strip())
            # A time near the year 1 or 9999 may have no equivalent in UTC; this line finds out.
            time.astimezone(UTC)
        except (ValueError, OverflowError):
            self.add_mistake(name, f"is {quoted(text)}, not a time like 2024-05-08T13:56")
            return None

        return time

    def _has_plain_time(self, name: str) -> bool:
        """Whether a field is missing or a time in a strict schema's form; else notes a mistake."""
        value = self.values.get(name)
        if value is None or (isinstance(value, str) and TIME.fullmatch(value.strip())):
            return True

        what = quoted(value) if isinstance(value, str | int | float) else kind_of(value)
        self.add_mistake(name, f"is {what}; {TIMES}")
        return False

    def answer(self, name: str, value: Any) -> str | None:
        """A string or a number, as a string."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            # An integer may be too large to convert to a float.
            if isinstance(value, int) or math.isfinite(value):
                return str(value)

            self.add_mistake(name, "is a number that is not finite")
            return None

        return self.check_text(name, value)

    def check_text(self, name: str, value: Any) -> str | None:
        """The value if a non-blank string that can be written; otherwise notes a mistake."""
        if not isinstance(value, str):
            self.add_mistake(name, f"is {kind_of(value)}, not a string")
        elif not value.strip():
            self.add_mistake(name, "is empty")
        elif HALF_CHARACTER.search(value):
            self.add_mistake(name, LONE_SURROGATE)
        else:
            return value

        return None

    def _value(self, name: str, *, required: bool = False) -> Any:
        """A field's value. An optional field that is null counts as missing."""
        value = self.values.get(name)
        if value is None and required:
            self.add_mistake(name, "is null" if name in self.values else "is missing")

        return value


def _unknown_field(name: str, kind: EntryKind) -> str:
    """The mistake of an unknown field, in words."""
    near = get_close_matches(name, [*kind.fields, *kind.aliases], n=1, cutoff=0.6)
    hint = f"did you mean '{near[0]}'?" if near else f"the fields are {', '.join(kind.fields)}"
    return f"field {quoted(name)} is not in the schema; {hint}"
