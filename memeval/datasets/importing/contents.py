"""The records of a JSON or JSON Lines file in any encoding."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memeval.datasets.importing.forms import recognise
from memeval.datasets.importing.message import ImportLog, as_dict, as_list
from memeval.datasets.io.fields import parse_json

BAD_LINES = "lines that can't be read as JSON"


def records_of(content: bytes, path: Path, log: ImportLog) -> list[Any]:
    """The items of a list, the values of JSON Lines, or the single value.

    Lines that are not JSON are left out. Raises `UserError` for a file without any JSON, or for a
    single value that is cut off.
    """
    content = _as_utf8(content, log)
    lines = list(filter(bytes.strip, content.splitlines(keepends=True)))
    values, bad = _lines(lines, log)
    # Single lines of an indented file are not JSON, except a few brackets.
    if values and 2 * bad <= len(lines) and isinstance(values[0], dict | list):
        log.leave_out(BAD_LINES, bad)
        return values

    value = parse_json(content, path, partial(_object, log=log))
    if isinstance(value, list):
        return value

    # The list of conversations may be wrapped in an object.
    for name in ("conversations", "data", "chats"):
        inner = as_dict(value).get(name)
        inner = as_list(as_dict(inner).get("list", inner))
        if recognise(inner) is not None:
            return inner

    return [value]


def _object(pairs: Sequence[tuple[str, Any]], log: ImportLog) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        log.note_conversion("objects with a duplicate field, using its last value")

    return fields


def _lines(lines: list[bytes], log: ImportLog) -> tuple[list[Any], int]:
    values: list[Any] = []
    bad = 0
    if len(lines) == 1:
        return values, bad

    made = partial(_object, log=log)
    for number, line in enumerate(lines):
        try:
            values.append(json.loads(line, object_pairs_hook=made))
        except (ValueError, RecursionError):
            bad += 1
            # Give up on an indented file after its first three lines: it may have millions.
            if number == bad - 1 == 2:
                return [], bad

    return values, bad


def _as_utf8(content: bytes, log: ImportLog) -> bytes:
    """The content as UTF-8 without a byte-order mark; it may be UTF-16 or UTF-32."""
    encoding = json.detect_encoding(content[:64])
    if encoding in ("utf-8", "utf-8-sig"):
        return content.removeprefix(b"\xef\xbb\xbf")

    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        # Left to the parser, whose error names the position.
        return content

    log.note_conversion(f"files as {encoding}")
    return text.removeprefix("\ufeff").encode("utf-8", "surrogatepass")
