"""JSON Lines: one value per line, where every line that can't be read is noted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from memeval.datasets.io.entries import Mistakes
from memeval.datasets.io.fields import unique_fields
from memeval.datasets.io.json_stream import MARK


def json_lines(lines: Iterable[bytes], mistakes: Mistakes) -> Iterator[tuple[str, Any]]:
    """Each line's value with its place, `line 3`. Blank lines are passed over."""
    # A line ends only at \n: str.splitlines would cut a text at U+2028, which JSON may hold.
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue

        try:
            text = line.decode("utf-8-sig")
            yield f"line {number}", json.loads(text, object_pairs_hook=unique_fields)
        except UnicodeDecodeError as error:
            mistakes.add(f"line {number}", f"is not UTF-8: byte {error.start} can't be decoded")
        except (ValueError, RecursionError) as error:
            mistakes.add(f"line {number}", f"is not JSON: {error}")


def first_value(lines: Iterable[bytes]) -> Any:
    """The value of the first line that is not blank; None where that line by itself is not JSON."""
    first = next((line for line in lines if line.removeprefix(MARK).strip()), b"")
    try:
        return json.loads(first.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
