"""Reads JSON files and the fields of their records, with errors that name file, record and
field.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from memeval.datasets.grouping import repeated
from memeval.errors import UserError
from memeval.results.files import HALF_CHARACTER
from memeval.text.shown import in_shell, one_line

KINDS: Mapping[str, tuple[type, ...]] = {
    "a string": (str,),
    "an integer": (int,),
    "a string or a number": (str, int, float),
    "a list": (list,),
    "an object": (dict,),
}

MakeObject = Callable[[Sequence[tuple[str, Any]]], dict[str, Any]]
SHOWN = 100
"""Maximum number of characters of a value that a message quotes."""
LONE_SURROGATE = "contains a lone surrogate, which can't be written as UTF-8"
"""The mistake of a string that has a `HALF_CHARACTER`."""


def unique_fields(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The object with these fields. Raises `ValueError` for a duplicate field."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        for name, _ in repeated(name for name, _ in pairs):
            raise ValueError(f"an object has a duplicate field {quoted(name)}")

    return fields


def parse_json(
    content: bytes, path: Path, make_object: MakeObject | None = None, *, line: int | None = None
) -> Any:
    """The JSON value in a file's content, or in one line of it; `make_object` creates each object
    from its fields.

    Raises `UserError` naming the position if it is not UTF-8 or not JSON, or if `make_object`
    refuses an object.
    """
    location, part = str(path), "file"
    if line is not None:
        location, part = f"{path}: line {line}", "line"

    text = decode(content, location)
    try:
        return json.loads(text, object_pairs_hook=make_object)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}"
        if line is None:
            where = f"line {error.lineno}, {where}"

        # An unterminated string takes the rest of the text.
        if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
            where += f" (the {part} ends there: is it cut off?)"

        message = error.msg.removesuffix(" at")
        raise UserError(f"{location} is not JSON: {message} at {where}.", REPLACE) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{location} is not readable JSON: {error}.", REPLACE) from error


def decode(content: bytes, location: object) -> str:
    """The text of a file. Raises `UserError` if it is an archive, or not UTF-8."""
    for mark, archive in ARCHIVES.items():
        # An archive is not damaged: it has to be unpacked.
        if content.startswith(mark):
            raise UserError(
                f"{location} is {archive}, not the file itself", "unpack it, and use the file in it"
            )

    try:
        # Some editors begin a file with a byte-order mark.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{location} is not UTF-8 text: byte {error.start} can't be decoded.", REPLACE
        ) from error


class Fields(Struct, frozen=True):
    """A JSON object of a file, with its place in it."""

    path: Path
    record: str
    """The object as errors name it: `conv-26 qa[12]`."""
    values: Mapping[str, Any]

    @classmethod
    def of(cls, path: Path, record: str, value: Any) -> Self:
        """The object in `value`. Raises `UserError` if it is not an object."""
        if not isinstance(value, dict):
            raise UserError(
                f"{path}: {one_line(record, 3 * SHOWN)} is {kind_of(value)}, not an object."
            )

        return cls(path, record, value)

    def text(self, name: str) -> str:
        """A field that must be a string."""
        return self._whole(name, self.get(name, "a string"))

    def filled(self, name: str) -> str:
        """A field that must be a string, and not blank."""
        text = self.text(name)
        if not text.strip():
            raise self.wrong(name, "is empty")

        return text

    def integer(self, name: str) -> int:
        """A field that must be an integer."""
        number: int = self.get(name, "an integer")
        return number

    def items(self, name: str) -> list[Any]:
        """A field that must be a list."""
        items: list[Any] = self.get(name, "a list")
        return items

    def texts(self, name: str) -> list[str]:
        """A field that must be a list of strings."""
        items = self.items(name)
        if not all(isinstance(item, str) for item in items):
            raise self.wrong(name, "contains something that is not a string")

        return [self._whole(name, item) for item in items]

    def answer(self, name: str) -> str:
        """A field that must be a string or a number, as a string; never empty."""
        value = self.get(name, "a string or a number")
        answer = self._whole(name, str(value))
        if not answer.strip():
            raise self.wrong(name, "is empty")
        # pandas writes NaN where a value is missing; a number like 1e400 is read as infinite.
        if isinstance(value, float) and not isfinite(value):
            raise self.wrong(name, f"is {value}, not a string or a number")

        return answer

    def one_of(self, name: str, known: Collection[str]) -> str:
        """A field that must be one of the known strings."""
        value = self.text(name)
        if value not in known:
            raise self.wrong(name, f"is {quoted(value)}, not one of {', '.join(known)}")

        return value

    def time(
        self,
        name: str,
        parse: Callable[[str], datetime | None],
        example: str,
        *,
        text: str | None = None,
        noun: str = "date",
    ) -> datetime:
        """A field that must be a time; otherwise `parse` returns None or raises ValueError. With
        `text`, the text of an item that `name` names.
        """
        if text is None:
            text = self.text(name)

        try:
            time = parse(text)
        except ValueError:
            time = None

        if time is None:
            raise self.wrong(name, f"is {quoted(text)}, not a {noun} like '{example}'")

        return time

    def check_new(self, name: str, value: str, seen: set[str]) -> None:
        """Adds a field's value, which must be unique. Raises `UserError` if it occurred before."""
        if value in seen:
            raise self.wrong(name, f"is {quoted(value)}, which occurs twice but must be unique")

        seen.add(value)

    def member(self, name: str, record: str) -> Self:
        """A field that must be an object, which errors call `record`."""
        return self.of(self.path, record, self.get(name, "an object"))

    def objects(self, name: str, record: str) -> list[Self]:
        """A field that must be a list of objects; `record` names each by its index: `conv-26
        qa[{}]`.
        """
        # The id of a conversation may contain braces, too: the last pair is the placeholder.
        before, _, after = record.rpartition("{}")
        return [
            self.of(self.path, f"{before}{index}{after}", item)
            for index, item in enumerate(self.items(name))
        ]

    def get(self, name: str, kind: str) -> Any:
        """A field of one of `KINDS`.

        Raises `UserError` if it is missing or of another type; a boolean is not a number.
        """
        if name not in self.values:
            raise self.wrong(name, "is missing")

        value = self.values[name]
        # In Python, a boolean is an integer.
        if not isinstance(value, KINDS[kind]) or isinstance(value, bool):
            raise self.wrong(name, f"is {kind_of(value)}, not {kind}")

        return value

    def wrong(self, name: str, mistake: str) -> UserError:
        """The error for a field: file, record, field, and the mistake."""
        record = one_line(self.record, 3 * SHOWN)
        return UserError(
            f"{self.path}: {record}: field {quoted(name)} {one_line(mistake, 8 * SHOWN)}."
        )

    def _whole(self, name: str, text: str) -> str:
        if HALF_CHARACTER.search(text):
            raise self.wrong(name, LONE_SURROGATE)

        return text


def read_records(content: bytes, path: Path, noun: str) -> list[Fields]:
    """The objects of a file that is a JSON list, each named `record <index>`.

    Raises `UserError` if it is another value, an empty list, or contains anything but objects.
    """
    values = parse_json(content, path)
    if not isinstance(values, list):
        hints = []
        if isinstance(values, dict) and "cases" in values:
            hints.append(f"for your own data:  dataset=json {in_shell(f'dataset.path={path}')}")

        raise UserError(f"{path} contains {kind_of(values)}, not a list of {noun}s.", *hints)
    if not values:
        raise UserError(f"{path} contains no {noun}s.")

    return [Fields.of(path, f"record {index}", value) for index, value in enumerate(values)]


def quoted(value: object) -> str:
    """A value of a file as messages quote it: shortened, and on one line."""
    return f"'{one_line(value, SHOWN)}'"


ARCHIVES = {
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip file",
    b"7z\xbc\xaf": "a 7z archive",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
}
"""First bytes of archives and compressed files."""


REPLACE = "get the file again, or check how it was written"


def kind_of(value: Any) -> str:
    """A JSON value's type in words."""
    names = {
        type(None): "null",
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)
