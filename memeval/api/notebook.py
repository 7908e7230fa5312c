"""How results are displayed in a notebook: short, with external text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memeval.comparison.paper.formats import FORMATS
from memeval.comparison.paper.records import PaperTable
from memeval.errors import unknown
from memeval.report.comparison import by_dataset, cells, judged_by
from memeval.report.escaping import html
from memeval.results import RunSummary
from memeval.text.shown import counted, one_line

MARKDOWN, HTML = "markdown", "html"
MAX_LINES = 3
"""Maximum number of sentences in a `repr`."""
LONGEST_LINE = 160
"""Maximum characters of such a sentence."""
LONGEST_CELL = 40
MAX_COLUMNS = 24
LARGEST_TABLE = 12_000
"""Maximum bytes of a table of runs; the frames of `to_pandas` have all rows."""


@dataclass(frozen=True)
class Table:
    """A table for a paper, displayed by notebooks."""

    content: PaperTable
    """The table's figures, unrounded."""

    def text(self, format: str = MARKDOWN) -> str:
        """The table as `latex`, `markdown`, `html` or `csv`. Raises `UserError` for any other."""
        if format not in FORMATS:
            raise unknown("format", format, FORMATS)

        return FORMATS[format](self.content)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        rows, columns = len(self.content.names), len(self.content.columns)
        return f"<Table of {counted(rows, 'row')}, {counted(columns, 'column')}>"

    def _repr_html_(self) -> str:
        return self.text(HTML)


def first_lines(lines: Sequence[str], rest: str) -> list[str]:
    """The first sentences, shortened, and a count of the others with the hint `rest`."""
    kept = [one_line(line, LONGEST_LINE) for line in lines[:MAX_LINES]]
    if left := len(lines) - len(kept):
        kept.append(f"… {left:,} more: {rest}")

    return kept


def list_html(lines: Sequence[str]) -> str:
    """Sentences, if any, as an HTML list."""
    if not lines:
        return ""

    items = [f"<li>{html(line)}</li>" for line in lines]
    return f"<ul>{''.join(items)}</ul>"


def runs_html(summaries: Sequence[RunSummary]) -> str:
    """The figures of some runs, a table for each data set, invalid runs last."""
    groups = by_dataset(summaries)
    parts = []
    for name, group in groups.items():
        _, header, rows = cells(group)
        title = "; ".join(filter(None, [one_line(name), judged_by(group)]))
        parts.append(table_html(title, header, rows, LARGEST_TABLE // len(groups)))

    return "".join(parts[:MAX_LINES])


def table_html(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], largest: int = LARGEST_TABLE
) -> str:
    """A table of at most about `largest` bytes; it says what it leaves out."""
    lines = [f"<caption>{html(one_line(title, LONGEST_LINE))}</caption>", _row_html("th", header)]
    size = sum(map(_size, lines))
    shown = 0
    for row in rows:
        line = _row_html("td", row)
        size += _size(line)
        if shown and size > largest:
            break

        lines.append(line)
        shown += 1

    left_out = []
    if shown < len(rows):
        left_out.append(f"{counted(len(rows) - shown, 'more row')}: to_pandas()")
    if len(header) > MAX_COLUMNS:
        left_out.append(f"{counted(len(header) - MAX_COLUMNS, 'more column')}: to_pandas()")

    return f"<table>{''.join(lines)}</table>{list_html(left_out)}"


def paper_cells(table: PaperTable) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a table for a paper, as plain text."""
    rows = []
    for names, figures in table.rows:
        rows.append([*names, *(f"{cell.text} {cell.interval}".strip() for cell in figures)])

    return list(table.titles), rows


def _row_html(element: str, row: Sequence[str]) -> str:
    kept = list(row)
    if len(kept) > MAX_COLUMNS:
        # The last column has the flags: it is never left out.
        kept = [*kept[: MAX_COLUMNS - 1], kept[-1]]

    shown = [f"<{element}>{html(one_line(cell, LONGEST_CELL))}</{element}>" for cell in kept]
    return f"<tr>{''.join(shown)}</tr>"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
