"""Streams a JSON file that is one long list: only one item is in memory at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from memeval.datasets.io.fields import REPLACE
from memeval.errors import UserError

MARK = b"\xef\xbb\xbf"
"""UTF-8's byte-order mark, which some editors put at the start of a file."""
BLOCK = 1 << 16


def stream_list(path: Path) -> Iterator[Any]:
    """Yields the items of the list in a file: integers as int, other numbers as float.

    Raises `UserError` naming file and item if the file is not a list or is damaged, so the items
    before the damage are never mistaken for the whole list.
    """
    import ijson  # type: ignore[import-untyped]

    count = 0
    try:
        with path.open("rb") as file:
            # For a file that is not a list, ijson yields nothing, as for an empty list.
            _check_list(file, path)
            for item in ijson.items(file, "item", buf_size=BLOCK, use_float=True):
                yield item
                count += 1
    except (ijson.JSONError, UnicodeDecodeError) as error:
        what = str(error).splitlines()[0].strip()
        where = f"in record {count}"
        if "premature EOF" in what or "ncomplete" in what:
            where += " (the file ends there: is it cut off?)"

        raise UserError(f"{path} is not readable JSON: {what}, {where}.", REPLACE) from error
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror} in record {count}.") from error


def _check_list(file: BinaryIO, path: Path) -> None:
    """Moves to the start of the list. Raises `UserError` if the file contains something else."""
    start = len(MARK) if file.read(len(MARK)) == MARK else 0
    file.seek(start)
    first = b""
    while (block := file.read(BLOCK)) and not (first := block.lstrip()[:1]):
        pass

    if first != b"[":
        what = "is not a list of records" if first else "is empty"
        raise UserError(f"{path} {what}.", REPLACE)

    file.seek(start)
