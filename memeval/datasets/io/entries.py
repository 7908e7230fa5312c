"""Reads the objects of a user's own JSON file as typed records. Mistakes are listed, not only the
first.
"""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from msgspec import Meta, Struct, ValidationError, field

from memeval.datasets.io.fields import LONE_SURROGATE, kind_of, quoted
from memeval.errors import UserError
from memeval.results.files import HALF_CHARACTER
from memeval.text.typed import convert

MAX_SHOWN = 20
"""Maximum number of mistakes that one message lists; the others are counted."""
TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2})?)?"
)
"""The times of a strict schema: 8/5/2024 is May in one country and August in another."""
TIMES = "2024-05-08, 2024-05-08T13:56 or 2024-05-08T13:56:00+02:00"
Text = Annotated[str, Meta(pattern=r"\A(?=\s*\S)[^\ud800-\udfff]+\Z")]
"""A string that is not blank, and can be written."""
Items = Annotated[list[Any], Meta(min_length=1)]
Name = Text | int
"""An id or a name, which is used as a string."""
KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
}
"""msgspec's names of types, in words."""


class Mistakes(Struct):
    """The mistakes of a file, and the fields that were not read."""

    path: Path
    schema: str
    """Location of the page that documents the schema."""
    strict: bool = False
    """Whether unknown fields, and times in another form than `TIME`, are mistakes. If not, unknown
    fields are counted, and any ISO 8601 time is accepted.
    """
    messages: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    """Fields that the schema does not know, such as `question.difficulty`, and their counts."""
    aliases_used: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Aliases of fields: the field that each was read as, and how often."""

    def refuse(self) -> None:
        """Raises `UserError` if there are mistakes, and lists up to `MAX_SHOWN` of them."""
        if not self.messages:
            return

        first, *others = self.messages
        if not others:
            raise UserError(f"{self.path}: {first}.", f"the schema:  {self.schema}")

        shown = others[: MAX_SHOWN - 1]
        left = len(others) - len(shown)
        hints = [f"{mistake}." for mistake in shown]
        if left:
            hints.append(f"and {left:,} more")

        raise UserError(
            f"{self.path} has {len(self.messages):,} mistakes. {first}.",
            *hints,
            f"the schema:  {self.schema}",
        )


class Entry(Struct, frozen=True, kw_only=True):
    """An object of the file. Optional fields may be null."""

    aliases: ClassVar[Mapping[str, str]] = {}
    """The field that each alias stands for."""

    @classmethod
    def noun(cls) -> str:
        """The word for the object in messages: `turn` for a `TurnEntry`."""
        return cls.__name__.removesuffix("Entry").lower()


E = TypeVar("E", bound=Entry)


class Place(Struct, frozen=True):
    """A position in the file. Its mistakes are noted in `mistakes`."""

    location: str
    """As messages name it: `case 3 'north', question 'q7'`."""
    mistakes: Mistakes
    aliases: dict[str, str] = field(default_factory=dict)
    """The alias that the object here has for a field, by field: messages name the alias."""

    def part(self, name: str) -> Self:
        """The place of a part of the object here."""
        return type(self)(f"{self.location}, {name}", self.mistakes)

    def add(self, mistake: str, *, name: str = "") -> None:
        """Notes a mistake of the object here, or of its field `name`."""
        if name:
            mistake = f"field {quoted(self.aliases.get(name, name))} {mistake}"

        self.mistakes.messages.append(f"{self.location}: {mistake}")

    def read(self, value: Any, wanted: type[E]) -> E | None:
        """The object here as a record; None if it has a mistake."""
        if not isinstance(value, dict):
            self.add(f"is {kind_of(value)}, not an object")
            return None

        before = len(self.mistakes.messages)
        self.aliases.update(
            (wanted.aliases[name], name) for name in value if name in wanted.aliases
        )
        for name, other in self.aliases.items():
            self.mistakes.aliases_used[other, name] += 1
            if name in value:
                self.add(f"is an alias of '{name}': use only one of them", name=other)

        fields = {wanted.aliases.get(name, name): item for name, item in value.items()}
        self._note_unknown(fields, wanted)
        try:
            entry = convert(fields, wanted)
        except ValidationError as error:
            name, mistake = _mistake(fields, error)
            self.add(mistake, name=name)
            return None
        except UnicodeEncodeError:
            # In a field that can't be a string.
            self.add(LONE_SURROGATE)
            return None

        return entry if len(self.mistakes.messages) == before else None

    def check_text(self, value: str, name: str) -> None:
        """Notes a mistake if a field's string is no `Text`."""
        if HALF_CHARACTER.search(value):
            self.add(LONE_SURROGATE, name=name)
        elif not value.strip():
            self.add("is empty", name=name)

    def _note_unknown(self, fields: Mapping[str, Any], wanted: type[Entry]) -> None:
        known = wanted.__struct_encode_fields__
        for name in fields:
            if name in known:
                continue
            if not self.mistakes.strict:
                self.mistakes.unread[f"{wanted.noun()}.{name}"] += 1
                continue

            near = get_close_matches(name, [*known, *wanted.aliases], n=1, cutoff=0.6)
            hint = f"did you mean '{near[0]}'?" if near else f"the fields are {', '.join(known)}"
            self.add(f"is not in the schema ({hint})", name=name)

    def time(self, value: Any, name: str = "time") -> datetime | None:
        """The time or date in ISO 8601 of a field, with its zone if it has one; None for null, and
        for a mistake.
        """
        if value is None:
            return None

        text = value.strip() if isinstance(value, str) else ""
        has_form = TIME.fullmatch(text) or not self.mistakes.strict
        if has_form and (time := parse_iso(text)):
            return time

        shown = quoted(value) if isinstance(value, str | int | float) else kind_of(value)
        self.add(f"is {shown}, not a time like {TIMES}", name=name)
        return None


def parse_iso(text: str) -> datetime | None:
    """A time or a date in ISO 8601, with its zone if it has one; None for anything else."""
    try:
        time = datetime.fromisoformat(text)
        # A time near the year 1 or 9999 may have no equivalent in UTC.
        time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None

    return time


def _mistake(fields: Mapping[str, Any], error: ValidationError) -> tuple[str, str]:
    """The path of an invalid field, and its mistake in words."""
    message, _, path = str(error).partition(" - at `$.")
    path = path.rstrip("`")
    if message.startswith("Object missing"):
        return message.split("`")[1], "is missing"

    value: Any = fields
    for step in re.findall(r"\w+", path):
        value = value[int(step) if isinstance(value, list) else step]

    expected, _, got = message.removeprefix("Expected ").partition(", got ")
    if isinstance(value, str) and HALF_CHARACTER.search(value):
        mistake = LONE_SURROGATE
    elif isinstance(value, str) and value.strip() and "(?:" in expected:
        known = expected.partition("(?:")[2].partition(")")[0]
        mistake = f"is {quoted(value)}, not one of {known.replace('|', ', ')}"
    elif got:
        kinds = [words for kind, words in KINDS.items() if re.search(rf"\b{kind}\b", expected)]
        mistake = f"is {kind_of(value)}, not {' or '.join(kinds)}"
    elif isinstance(value, str | list):
        mistake = "is empty"
    else:
        mistake = f"is {quoted(value)}, which is out of range"

    return path, mistake
