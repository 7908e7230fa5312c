"""A comparison for the terminal, in 80 columns."""

import re
import textwrap
from collections.abc import Iterable, Sequence

from memeval.comparison.records import (
    ComparedRun,
    Comparison,
    Difference,
    compared_keys,
    pair_labels,
)
from memeval.comparison.sentences import details, lead_sentences, sentence, with_interval
from memeval.comparison.words import (
    caveats,
    corrections,
    describe_counts,
    headline,
    legend,
)
from memeval.metrics.formats import NONE, figure, probability

WIDTH = 80
CATEGORIES_A_TABLE = 4
NARROWEST_LABEL = 12
NO_BREAK = "\u00a0"
Cells = list[list[str]]
CATEGORIES_TITLE = "By category, Δ with its 95 % interval: described, not tested one by one."
SAME = "same"
"""Shown instead of a difference between runs that sent the same prompts."""
HEADER = ["run", "n", "value\n[95 %]", "re-run\nstd", "Δ\n[95 %]", "p", "adj.", "MDE", ""]


def sentences_text(comparison: Comparison, most: int) -> str:
    """Words before any figure: the lead, and up to `most` sentences if a difference is shown."""
    lines = _wrap(filter(None, [*lead_sentences(comparison), comparison.warning]))
    # Of the corrections, only the line that differences are not corrected: the table has the rest.
    uncorrected = corrections(comparison)[-1:]
    lines_of_text = [
        *details(comparison, most),
        *caveats(comparison),
        *uncorrected,
    ]
    if lines_of_text:
        lines += ["", *_wrap(lines_of_text)]

    return "\n".join(lines) + "\n"


def comparison_text(comparison: Comparison) -> str:
    """A comparison without its refusals: sentences, figures, categories, and their meaning."""
    lines = [*_wrap(headline(comparison)), ""]
    for difference in comparison.differences:
        lines += _wrap([sentence(comparison, difference)])
        if len(comparison.differences) == 1 or difference.only_first or difference.only_second:
            lines += _wrap([describe_counts(comparison, difference)], indent="  ")

    for table in result_tables(comparison):
        lines += ["", *align(table)]

    lines += ["", *category_lines(comparison)]
    lines += _wrap(legend(comparison))

    return "\n".join(lines) + "\n"


def result_tables(comparison: Comparison) -> list[Cells]:
    """One table of the runs against the baseline; or one of the runs, and one of all pairs."""
    keys, to_baseline = compared_keys(comparison), {}
    if comparison.baseline:
        to_baseline = {difference.first: difference for difference in comparison.differences}

    compared = [run for run in comparison.runs if run.key in keys]
    runs = [HEADER, *(_run_row(comparison, run, to_baseline.get(run.key)) for run in compared)]
    if comparison.baseline:
        return [runs]

    pairs = [_pair_row(comparison, difference) for difference in comparison.differences]
    return [without_empty(runs), without_empty([["pair", *HEADER[1:]], *pairs])]


def _run_row(comparison: Comparison, run: ComparedRun, difference: Difference | None) -> list[str]:
    number, value = "0", NONE
    if run.result:
        number = f"{run.result.count:,}"
        value = _break_interval(with_interval(run.result, comparison.unit))

    std = figure(run.rerun_std, comparison.unit)
    # "baseline" is in the headline; here its row has no difference.
    cells = _difference_cells(comparison, difference)
    return [run.label, number, value, std, *cells, run.letters]


def _pair_row(comparison: Comparison, difference: Difference) -> list[str]:
    label = " − ".join(pair_labels(comparison, difference))
    cells = _difference_cells(comparison, difference)
    return [label, f"{difference.result.count:,}", "", "", *cells, ""]


def _difference_cells(comparison: Comparison, difference: Difference | None) -> list[str]:
    if difference is None:
        return [""] * 4

    # 0.0 would look like a measurement.
    if difference.same_prompts:
        return [SAME, *[NONE] * 3]

    unit, result = comparison.unit, difference.result
    mark = "*" if result.mde_from_independent else ""
    return [
        _break_interval(with_interval(result, unit, signed=True)),
        probability(difference.p),
        probability(difference.adjusted_p),
        figure(result.mde, unit) + mark,
    ]


def _break_interval(value: str) -> str:
    """A value with its interval on the next line: side by side, they are too wide."""
    return value.replace(" ", "\n", 1)


def category_lines(comparison: Comparison) -> list[str]:
    """Δ and interval of each category, described and not tested, a few categories per table."""
    names = category_names(comparison)
    if len(names) < 2:
        return []

    lines = [CATEGORIES_TITLE, *_wrap([comparison.warning])]
    for start in range(0, len(names), CATEGORIES_A_TABLE):
        some = names[start : start + CATEGORIES_A_TABLE]
        rows = [["run", *some]]
        for pair in comparison.differences:
            cells = map(_break_interval, category_cells(comparison, pair, some))
            rows.append([pair_label(comparison, pair), *cells])

        lines += ["", *align(rows)]

    return [*lines, ""]


def category_names(comparison: Comparison) -> list[str]:
    """Names of the categories of all differences, in their order."""
    names: dict[str, None] = {}
    for difference in comparison.differences:
        names |= dict.fromkeys(row.category for row in difference.categories)

    return list(names)


def category_cells(
    comparison: Comparison, difference: Difference, names: Sequence[str]
) -> list[str]:
    """`+4.1 [0.9, 7.3]` for each category; a dash if not measured."""
    cells = {}
    for row in difference.categories:
        cells[row.category] = SAME
        if not difference.same_prompts:
            cells[row.category] = with_interval(row.result, comparison.unit, signed=True)

    return [cells.get(name, NONE) for name in names]


def pair_label(comparison: Comparison, difference: Difference) -> str:
    """The label of the run, if all are compared with one baseline; else the labels of both."""
    if comparison.baseline:
        return comparison.run(difference.first).label

    return " − ".join(pair_labels(comparison, difference))


def align(rows: Cells) -> list[str]:
    """Rows as aligned lines: the first column left-aligned and wrapped, the others right-aligned.

    Columns that are empty in all rows but the header are left out. Figures are never cut.
    """
    rows = without_empty(rows)
    # Only the first column shrinks: names can be wrapped, figures can't.
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    room = max(WIDTH - sum(widths[1:]) - 2 * len(widths[1:]), NARROWEST_LABEL)
    widths[0] = min(widths[0], room)

    lines = []
    for number, row in enumerate(rows):
        name = _wrap_name(row[0], widths[0])
        columns = [name, *(cell.split("\n") for cell in row[1:])]
        height = max(map(len, columns))
        for column in columns:
            missing = [""] * (height - len(column))
            # Headers are aligned to the bottom of their row, all other cells to the top.
            if number == 0:
                column[:0] = missing
            else:
                column.extend(missing)

        for first, *others in zip(*columns, strict=True):
            right = map(str.rjust, others, widths[1:])
            lines.append("  ".join([first.ljust(widths[0]), *right]).rstrip())

    return lines


def _wrap_name(name: str, width: int) -> list[str]:
    """A name in lines, at least one; a setting that is longer than a line ends after its `=`."""
    if max(map(len, name.split()), default=0) <= width:
        return textwrap.wrap(name, width, break_on_hyphens=False) or [""]

    lines = textwrap.wrap(name.replace("=", "= "), width, break_on_hyphens=False)
    return [line.replace("= ", "=") for line in lines]


def _width(cell: str) -> int:
    """Width of the longest line of a cell, in characters; at least 1."""
    return max(1, *map(len, cell.split("\n")))


def without_empty(rows: Cells) -> Cells:
    """The rows without the columns that are empty in all of them but the header."""
    columns = list(zip(*rows, strict=True))
    # The first column names the rows, so it is never left out.
    kept = [column for column in columns if column is columns[0] or any(column[1:])]
    return list(map(list, zip(*kept, strict=True)))


def _wrap(paragraphs: Iterable[str], indent: str = "") -> list[str]:
    lines = []
    for paragraph in paragraphs:
        # `textwrap` never breaks a line at a non-breaking space: a figure stays with its unit, a p
        # with its value.
        joined = re.sub(r"(?<=\d) (?=%)|(?<=\(p) ", NO_BREAK, paragraph)
        lines += textwrap.wrap(
            joined, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  "
        )

    return [line.replace(NO_BREAK, " ") for line in lines]
