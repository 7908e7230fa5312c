"""JSON Lines: one value per line."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memeval.datasets.io.entries import Mistakes, Place
from memeval.datasets.io.fields import Fields, parse_json, unique_fields
from memeval.datasets.io.json_stream import MARK
from memeval.errors import UserError


def number_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, numbered from 1.

    A line ends only at \\n: `splitlines` would cut a text at U+2028, which JSON may contain.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, line


def read_lines(path: Path) -> Iterator[Fields]:
    """The objects of a file of JSON Lines, one in memory at a time.

    Raises `UserError` naming line and column.
    """
    with path.open("rb") as file:
        yield from parse_lines(file, path)


def parse_lines(lines: Iterable[bytes], path: Path) -> Iterator[Fields]:
    """The objects of lines of the file `path`, each named `line <number>`."""
    for number, line in number_lines(lines):
        yield Fields.of(path, f"line {number}", parse_json(line, path, line=number))


def json_lines(lines: Iterable[bytes], mistakes: Mistakes) -> Iterator[tuple[str, Any]]:
    """Each line's value with its place, `line 3`; unreadable lines are noted as mistakes."""
    for number, line in number_lines(lines):
        place = Place(f"line {number}", mistakes)
        try:
            text = line.decode("utf-8-sig")
            yield place.location, json.loads(text, object_pairs_hook=unique_fields)
        except UnicodeDecodeError as error:
            place.add(f"is not UTF-8: byte {error.start} can't be decoded")
        except (ValueError, RecursionError) as error:
            place.add(f"is not JSON: {error}")


def located_cases(value: Any, path: Path, *hints: str) -> Iterator[tuple[str, Any]]:
    """Each case of a JSON list, or the only one, with its place. Raises `UserError` without one."""
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not value:
        raise UserError(
            f"{path} contains no cases: it must be a list of cases, or one per line.", *hints
        )

    for number, case in enumerate(value, start=1):
        yield f"case {number}", case


def first_value(lines: Iterable[bytes]) -> Any:
    """The value of the first line that is not blank; None if that line alone is not JSON."""
    first = next((line for line in lines if line.removeprefix(MARK).strip()), b"")
    try:
        return json.loads(first.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
