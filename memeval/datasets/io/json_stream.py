"""Streams a JSON file that is one long list: only one item is in memory at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memeval.datasets.io.fields import REPLACE
from memeval.errors import UserError

MARK = b"\xef\xbb\xbf"
"""UTF-8's byte-order mark, which some editors put at the start of a file."""
BLOCK = 1 << 16


def stream_list(path: Path) -> Iterator[Any]:
    """Yields the items of the list in a file: integers as int, other numbers as float.

    Raises `UserError` naming file and item if the file is not a list, is empty or is damaged. So
    the items before the damage are never mistaken for the whole list.
    """
    import ijson  # type: ignore[import-untyped]

    count = 0
    try:
        with path.open("rb") as file:
            if file.read(len(MARK)) != MARK:
                file.seek(0)

            for item in ijson.items(file, "item", buf_size=BLOCK, use_float=True):
                yield item
                count += 1
    except (ijson.JSONError, UnicodeDecodeError) as error:
        # ijson quotes bytes that are not UTF-8, and its message is then bytes itself.
        message = error.args[0]
        text = message.decode(errors="replace") if isinstance(message, bytes) else str(error)
        problem = text.splitlines()[0].strip(" .")
        where = f"in record {count}"
        if "premature EOF" in problem or "ncomplete" in problem:
            where += " (the file ends there: is it cut off?)"

        raise UserError(f"{path} is not readable JSON: {problem}, {where}.", REPLACE) from error
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror} in record {count}.") from error

    # For a file that is not a list, ijson yields nothing.
    if not count:
        raise UserError(f"{path} is empty, or not a list of records.", REPLACE)
