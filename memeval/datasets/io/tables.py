"""Reads tables of comma-separated values. Each mistake is named by file, line and column."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from memeval.datasets.io.fields import REPLACE, SHOWN, Fields, decode, quoted
from memeval.errors import UserError
from memeval.text.shown import counted, one_line

LONGEST_CELL = 1 << 26
QUOTING = 'in a cell with quotes, double them, and quote the cell:  "say ""hi"""'
Row = tuple[int, Sequence[str]]
"""The number of the line on which a row ends, or of the row in a sheet, and its cells."""


def header(content: bytes, path: Path) -> tuple[str, ...]:
    """The column names. Raises `UserError` if the file is empty or not text."""
    return tuple(next(csv_rows(decode(content, path), path), (0, ()))[1])


def read_table(
    content: bytes, path: Path, columns: Sequence[str], delimiter: str = ","
) -> list[Fields]:
    """Rows by column name, each named by its last line, `line 12`; rows without cells are skipped.

    Raises `UserError` if the file is not UTF-8, has NUL bytes or broken quoting, or lacks rows; if
    a column is repeated or missing; and if a row has more or fewer cells than the header.
    """
    lines = csv_rows(decode(content, path), path, delimiter)
    _, names = next(lines, (0, ()))
    for name in names:
        # Columns without a name may be several.
        if name and names.count(name) > 1:
            raise UserError(
                f"{path}: line 1: column {quoted(name)} occurs {names.count(name)} times."
            )

    for name in columns:
        if name not in names:
            raise UserError(
                f"{path}: line 1: column '{name}' is missing; the columns are "
                f"{one_line(', '.join(names), 4 * SHOWN)}."
            )

    rows = [named_cells(names, cells, path, f"line {number}") for number, cells in lines]
    if not rows:
        raise UserError(f"{path} contains no rows below its header.")

    return rows


def named_cells(names: Sequence[str], cells: Sequence[str], path: Path, record: str) -> Fields:
    """A row by column name. Raises `UserError` if it has more or fewer cells than the header."""
    if len(cells) != len(names):
        raise UserError(
            f"{path}: {record}: {counted(len(cells), 'cell')}, but the header has "
            f"{counted(len(names), 'column')}: is the file cut off?"
        )

    return Fields(path=path, record=record, values=dict(zip(names, cells, strict=True)))


def csv_rows(text: str, path: Path, delimiter: str = ",", above: int = 0) -> Iterator[Row]:
    """The rows with cells; `above` is the number of lines of the file above the text.

    Raises `UserError` if the text is empty, contains NUL bytes or has broken quoting.
    """
    if not text.strip():
        raise UserError(f"{path} is empty.", REPLACE)

    # Since Python 3.11, `csv` reads NUL bytes without an error.
    before, nul, _ = text.partition("\0")
    if nul:
        line = above + before.count("\n") + 1
        raise UserError(f"{path}: line {line} contains a NUL byte.", REPLACE)

    # `newline=""` keeps line breaks within a cell as they are. Without `strict`, a quote that is
    # never closed would take the rest of the file into one cell.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    ends = 0
    # A message may be longer than the default limit of `csv`, 131,072 characters.
    usual = csv.field_size_limit(LONGEST_CELL)
    try:
        for row in reader:
            ends = reader.line_num
            if row:
                yield above + ends, row
    except csv.Error as error:
        # Report the line below the last good row: an unclosed quote swallows all lines after it.
        line = above + ends + 1
        raise UserError(f"{path}: line {line}: {one_line(error)}.", QUOTING) from error
    finally:
        csv.field_size_limit(usual)
