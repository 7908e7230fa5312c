"""Tables of Markdown and of CSV, and the content of their cells."""

import csv
import io
from collections.abc import Iterable, Sequence

from memeval.metrics.formats import NONE, dollars
from memeval.report.escaping import csv_cell, inline
from memeval.text.shown import one_line

LONGEST_CELL = 1000
"""Maximum length of a cell; the whole value is in the records, or in `config.yaml`."""


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    figures: bool = True,
    *,
    leading: int = 1,
) -> list[str]:
    """A Markdown table. Columns of figures, after the `leading` ones, are aligned to the right."""
    alignment = "---:" if figures else "---"
    rule = [*["---"] * leading, *[alignment] * (len(header) - leading)]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def bullets(lines: Iterable[str]) -> list[str]:
    """A Markdown list, an item per line."""
    return [f"- {inline(line)}" for line in lines]


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV, in cells that a spreadsheet shows and does not evaluate; None is empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")  # not \r\n, which is csv's own choice
    writer.writerows(map(csv_cell, row) for row in rows)
    return file.getvalue()


def text(value: object) -> str:
    """Any value in one cell of a table, cut if it is very long.

    Anything that looks like a secret is removed: errors may quote one.
    """
    if value is None:
        return NONE

    return inline(one_line(value, LONGEST_CELL))


def money(value: float | None) -> str:
    """A cost with its unit, if it is known."""
    return dollars(value) if value is None else f"${dollars(value)}"
