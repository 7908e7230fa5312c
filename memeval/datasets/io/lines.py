"""JSON Lines: one value per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memeval.datasets.io.entries import Mistakes
from memeval.datasets.io.fields import REPLACE, Fields, unique_fields
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
        yield Fields.of(path, f"line {number}", _parse(line, f"{path}: line {number}"))


def _parse(line: bytes, location: str) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(
            f"{location} is not UTF-8 text: its byte {error.start} can't be decoded.", REPLACE
        ) from error
    except json.JSONDecodeError as error:
        end = ""
        if error.pos >= len(error.doc.rstrip()) or not line.endswith(b"\n"):
            end = " (is the file cut off there?)"

        raise UserError(
            f"{location} is not JSON: {error.msg} at column {error.colno}{end}.", REPLACE
        ) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{location} is not readable JSON: {error}.", REPLACE) from error


def json_lines(lines: Iterable[bytes], mistakes: Mistakes) -> Iterator[tuple[str, Any]]:
    """Each line's value with its place, `line 3`; unreadable lines are noted as mistakes."""
    for number, line in number_lines(lines):
        try:
            text = line.decode("utf-8-sig")
            yield f"line {number}", json.loads(text, object_pairs_hook=unique_fields)
        except UnicodeDecodeError as error:
            mistakes.add(f"line {number}", f"is not UTF-8: byte {error.start} can't be decoded")
        except (ValueError, RecursionError) as error:
            mistakes.add(f"line {number}", f"is not JSON: {error}")


def first_value(lines: Iterable[bytes]) -> Any:
    """The value of the first line that is not blank; None if that line alone is not JSON."""
    first = next((line for line in lines if line.removeprefix(MARK).strip()), b"")
    try:
        return json.loads(first.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
