"""Reads tables of comma-separated values. Each mistake is named by file, line and column."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from memeval.datasets.io.fields import REPLACE, SHOWN, Fields, decode, quoted
from memeval.errors import UserError
from memeval.text.shown import one_line


def header(content: bytes, path: Path) -> tuple[str, ...]:
    """The column names. Raises `UserError` if the file is empty or not text."""
    return tuple(next(_rows(content, path))[1])


def read_table(content: bytes, path: Path, columns: Sequence[str]) -> list[Fields]:
    """Rows by column name, each named by its last line, `line 12`; rows without cells are skipped.

    Raises `UserError` if the file is not UTF-8, contains NUL bytes, has broken quoting, repeats a
    column, lacks one of `columns` or has no row, or if a row has more or fewer cells than the
    header.
    """
    lines = _rows(content, path)
    _, names = next(lines)
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

    rows = []
    for number, cells in lines:
        if cells:
            rows.append(named_cells(names, cells, path, f"line {number}"))

    if not rows:
        raise UserError(f"{path} contains no rows below its header.")

    return rows


def named_cells(names: Sequence[str], cells: Sequence[str], path: Path, record: str) -> Fields:
    """A row by column name. Raises `UserError` if it has more or fewer cells than the header."""
    if len(cells) != len(names):
        raise UserError(
            f"{path}: {record}: {len(cells)} cells, but the header has {len(names)} columns: is "
            "the file cut off?"
        )

    return Fields(path=path, record=record, values=dict(zip(names, cells, strict=True)))


def _rows(content: bytes, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells, the header first."""
    text = decode(content, path)
    if not text.strip():
        raise UserError(f"{path} is empty.", REPLACE)

    # Since Python 3.11, `csv` reads NUL bytes without an error.
    before, nul, _ = text.partition("\0")
    if nul:
        line = before.count("\n") + 1
        raise UserError(f"{path}: line {line} contains a NUL byte.", REPLACE)

    # `newline=""` keeps line breaks within a cell as they are. Without `strict`, a quote that is
    # never closed would take the rest of the file into one cell.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num}: {error}.", REPLACE) from error
