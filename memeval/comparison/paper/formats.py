"""Writes the table of a paper: LaTeX with booktabs, Markdown, HTML and CSV."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import wrap

from memeval.comparison.paper.records import PaperCell, PaperColumn, PaperTable
from memeval.report.escaping import html, inline, tex, tex_row
from memeval.report.tables import bullets, csv_text
from memeval.report.tables import table as markdown_table
from memeval.text.redaction import redacted

TITLE_WIDTH = 11
"""Characters after which a LaTeX heading is broken: columns are narrow."""


def latex(table: PaperTable) -> str:
    """A float that needs `booktabs` and `graphicx`, with the figures explained below."""
    leading = len(table.headings)
    # LaTeX does not allow these characters in a label.
    label = re.sub(r'[^\x00-\x7f]|[\\{}%#~^$&_" ]', "", table.label)
    lines = [
        r"\begin{table}[t]",
        r"  \centering\small\setlength{\tabcolsep}{3pt}",
        rf"  \caption{{{tex(redacted(table.caption))}}}",
        rf"  \label{{{label}}}",
        # Shrunk if it is wider than a line, and never enlarged.
        r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"  \begin{{tabular}}{{{'l' * leading}{'r' * len(table.columns)}}}",
        r"    \toprule",
    ]
    lines += _latex_groups(table)
    titles = [*map(tex, table.headings), *map(_latex_title, table.columns)]
    lines += [f"    {tex_row(titles)}", r"    \midrule"]
    for names, cells in table.rows:
        lines.append(f"    {tex_row([*map(tex, names), *map(_latex_cell, cells)])}")
        below = list(map(_latex_interval, cells))
        if any(below):
            lines.append(f"    {tex_row([*[''] * leading, *below])}")

    notes = " ".join(map(tex, table.notes))
    lines += [r"    \bottomrule", r"  \end{tabular}}"]
    lines += [r"  \par\smallskip", rf"  \parbox{{\linewidth}}{{\footnotesize {notes}}}"]
    return "\n".join([*lines, r"\end{table}", ""])


def _latex_groups(table: PaperTable) -> Iterator[str]:
    """The headings that several columns share, with a rule below each."""
    cells, rules = [""] * len(table.headings), []
    start = len(table.headings) + 1
    for group, members in groupby(table.columns, key=lambda column: column.group):
        size = len(list(members))
        if group:
            cells.append(rf"\multicolumn{{{size}}}{{c}}{{{tex(group)}}}")
            rules.append(rf"\cmidrule(lr){{{start}-{start + size - 1}}}")
        else:
            cells += [""] * size

        start += size

    if rules:
        yield f"    {tex_row(cells)}"
        yield f"    {' '.join(rules)}"


def _latex_title(column: PaperColumn) -> str:
    lines = wrap(column.title, TITLE_WIDTH, break_long_words=False, break_on_hyphens=False)
    stacked = r" \\ ".join(map(tex, lines))
    return rf"\shortstack[r]{{{stacked}}}"


def _latex_cell(cell: PaperCell) -> str:
    value = tex(cell.text)
    if cell.is_best:
        value = rf"\textbf{{{value}}}"
    if cell.letters:
        value += rf"\textsuperscript{{{tex(cell.letters)}}}"

    return value


def _latex_interval(cell: PaperCell) -> str:
    """An interval, below its value: side by side, a table of ten columns is wider than a page."""
    return rf"{{\tiny {tex(cell.interval)}}}" if cell.interval else ""


def markdown(table: PaperTable) -> str:
    rows = [[*map(inline, names), *map(_markdown_cell, cells)] for names, cells in table.rows]
    lines = markdown_table(list(map(inline, table.titles)), rows, leading=len(table.headings))
    caption = inline(redacted(table.caption))
    return "\n".join([caption, "", *lines, "", *bullets(table.notes), ""])


def _markdown_cell(cell: PaperCell) -> str:
    value = f"**{cell.text}**" if cell.is_best else cell.text
    return " ".join(filter(None, [value, cell.interval, inline(cell.letters)]))


def as_html(table: PaperTable) -> str:
    """A table element with a caption and a list of notes; it runs and loads nothing."""
    lines = [
        f'<table id="{html(table.label)}">',
        f"<caption>{html(redacted(table.caption))}</caption>",
        f"<tr>{_elements('th', table.titles)}</tr>",
    ]
    for names, cells in table.rows:
        lines.append(f"<tr>{_elements('th', names)}{''.join(map(_html_cell, cells))}</tr>")

    return "\n".join([*lines, "</table>", f"<ul>{_elements('li', table.notes)}</ul>", ""])


def _elements(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{html(text)}</{tag}>" for text in texts)


def _html_cell(cell: PaperCell) -> str:
    value = html(cell.text)
    if cell.is_best:
        value = f"<b>{value}</b>"
    if cell.letters:
        value += f"<sup>{html(cell.letters)}</sup>"
    if cell.interval:
        value += f" <small>{html(cell.interval)}</small>"

    return f"<td>{value}</td>"


def as_csv(table: PaperTable) -> str:
    """A row per run, unrounded, shares in [0, 1]; empty if not measured.

    `_low`, `_high`, `_letters` and `_best` follow each column; `notes` is the same in each row.
    """
    header: list[object] = list(table.headings)
    for column in table.columns:
        header += [f"{column.name}{part}" for part in ("", "_low", "_high", "_letters", "_best")]

    rows = [[*header, "flags", "notes"]]
    for (names, cells), flags in zip(table.rows, table.flags, strict=True):
        figures: list[object] = []
        for cell in cells:
            figures += [cell.value, cell.low, cell.high, cell.letters, cell.is_best]

        rows.append([*names, *figures, ", ".join(flags), " ".join(table.notes)])

    return csv_text(rows)


FORMATS: Mapping[str, Callable[[PaperTable], str]] = {
    "markdown": markdown,
    "latex": latex,
    "html": as_html,
    "csv": as_csv,
}
"""Writers of a table, by format; the first one is the default."""
