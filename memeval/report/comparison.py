"""Cells side by side, one per row: for the terminal, for Markdown and as CSV."""

from collections import Counter
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from memeval.metrics.accuracy import corrected_text
from memeval.metrics.formats import NONE, count, coverage_percent, percent
from memeval.metrics.metric import TABLE, with_interval_of
from memeval.metrics.registry import texts_at
from memeval.report.categories import Titles, columns_of, rows_of, titles_of
from memeval.report.differences import differing_settings, setting_value, system_of
from memeval.report.escaping import inline
from memeval.report.fitting import (
    ACCURACY,
    CORRECTED,
    COVERAGE,
    QUESTIONS,
    RERUN_STD,
    Fitted,
    fit,
)
from memeval.report.flags import asked_flags, flags
from memeval.report.tables import bullets, csv_text
from memeval.results import RunSummary, judge_shown
from memeval.statistics.frontier import Point, frontier_area
from memeval.text.redaction import redacted
from memeval.text.shown import natural_order, one_line, some_of

if TYPE_CHECKING:
    from rich.table import Table

Row = list[str]
ABILITY = "ability"
CONTEXT_TOKENS = "context_tokens"
"""Name of the setting, and of the metric with the tokens that the reader was actually shown."""
ABILITIES = ("IE", "MR", "TR", "KU", "CR", "ABS")
"""The values of the facet `ability` that have columns, in the order of these."""
LONGEST_CELL = 200
"""Characters of a name or a setting in a table; the CSV has all of them."""
LONGEST_TITLE = 1_000
"""Maximum length of the line above a table, in characters."""
MAX_NAMED = 30
"""Maximum columns that the lines below a table name; a data set may have hundreds of categories."""
LONGEST_WORD = 9
"""Length of the longest word in a header that is not broken: `questions`, `retrieval`."""
OTHER_COLUMNS = (QUESTIONS, ACCURACY, CORRECTED, RERUN_STD, COVERAGE, "flags")
"""Columns of a table that are neither of a metric nor of a category."""
REFUSALS = {"adversarial": "refusals right"}
"""Headers of categories whose right answer is a refusal, by the names that data sets give them."""


def comparison_table(summaries: Sequence[RunSummary], width: int) -> "Table":
    """A table for the terminal.

    A selection of questions that all cells share is named once, above them. Figures are never cut.
    If `width` is too small, settings and flags fold, and then columns are left out and named below
    the table, those that are equal in all rows first.
    """
    from rich.table import Table
    from rich.text import Text

    shared = shared_flags(summaries)
    settings, header, rows = cells(summaries, left_out=shared)
    header, rows = _cut(header), list(map(_cut, rows))
    fitted = fit(header, rows, settings=settings, width=width, fold=fold)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.title_justify = table.caption_justify = "left"
    title = "; ".join(filter(None, [judged_by(summaries), *shared]))
    if title:
        table.title = Text(one_line(title, LONGEST_TITLE), style="default not bold not italic")

    left_out = _left_out(fitted, width)
    if left_out:
        table.caption = Text(left_out, style="default not italic")

    for column, size in zip(fitted.columns, fitted.widths, strict=True):
        holds_words = column < settings or header[column] == "flags"
        table.add_column(
            Text(fold(header[column])),
            justify="left" if holds_words else "right",
            no_wrap=not holds_words,
            overflow="fold",
            vertical="bottom",
            width=size,
        )

    for row, summary in zip(rows, summaries, strict=True):
        shown = [Text(row[column]) for column in fitted.columns]
        table.add_row(*shown, style=None if summary.valid else "red")

    return table


def _left_out(fitted: Fitted, width: int) -> str:
    """Columns missing from a table, and their location; empty if none is missing."""
    lines = []
    if fitted.equal:
        shown = [f"{name} {value}" for name, value in fitted.equal.items()]
        lines.append(f"Equal in all rows: {some_of(shown, MAX_NAMED)}")
    if fitted.dropped:
        hidden = some_of(fitted.dropped, MAX_NAMED)
        lines.append(f"Hidden to fit {width} columns: {hidden} (all columns in comparison.csv)")

    return "\n".join(lines)


def shared_flags(summaries: Sequence[RunSummary]) -> list[str]:
    """Flags on the choice of questions that all cells share."""
    if not summaries:
        return []

    first, *others = map(asked_flags, summaries)
    shared = set(first).intersection(*others)
    return [flag for flag in first if flag in shared]


def by_dataset(summaries: Sequence[RunSummary]) -> dict[str, list[RunSummary]]:
    """The cells of each data set, in the sweep's order, invalid ones last.

    Figures of different data sets never share a column.
    """
    groups: dict[str, list[RunSummary]] = {}
    for summary in sorted(summaries, key=lambda summary: not summary.valid):
        groups.setdefault(summary.dataset, []).append(summary)

    return groups


def comparison_markdown(summaries: Sequence[RunSummary]) -> str:
    """The same tables in Markdown, one per data set, under its name if there are several."""
    groups, parts = by_dataset(summaries), []
    if len(groups) > 1:
        for name, group in groups.items():
            parts += [f"## {inline(name)}", "", comparison_markdown(group)]

        return "\n".join(parts)

    summaries = sorted(summaries, key=lambda summary: not summary.valid)
    settings, header, rows = cells(summaries)
    rule = []
    for column, name in enumerate(header):
        holds_words = column < settings or name == "flags"
        rule.append("---" if holds_words else "---:")

    judged = judged_by(summaries)
    if judged:
        parts += [inline(one_line(judged)), ""]
    for line in (escape(header), rule, *map(escape, rows)):
        parts.append(f"| {' | '.join(line)} |")
    if lines_of_area := area_lines(summaries):
        parts += ["", *bullets(lines_of_area)]

    return "\n".join([*parts, ""])


def area_lines(summaries: Sequence[RunSummary]) -> list[str]:
    """The benefit of `context_tokens` for each configuration, if the runs differ in them: the area
    below its frontier, from the lowest budget at which all have a run to the highest.
    """
    columns = differing_settings(summaries)
    if CONTEXT_TOKENS not in columns:
        return []

    points: dict[str, list[Point]] = {}
    for summary in summaries:
        tokens, accuracy = summary.metrics.get(CONTEXT_TOKENS), summary.metrics.get("accuracy")
        if summary.valid and tokens and accuracy is not None:
            values = [setting_value(summary, key) for key in columns if key != CONTEXT_TOKENS]
            name = " ".join(filter(None, values)) or system_of(summary)
            points.setdefault(name, []).append((tokens, 100 * accuracy))

    low = high = 0.0
    for reached in points.values():
        low = max(low, min(reached)[0])
        # Beyond a configuration's most expensive run, more tokens don't improve it.
        high = max(high, max(reached)[0])

    if not low < high:
        return []

    lines = []
    for name, reached in points.items():
        area = f"area below the frontier, {one_line(name, LONGEST_CELL)}"
        share = f"{frontier_area(reached, low, high):.1f} %"
        lines.append(f"{area}: {share} on average over {low:,.0f} to {high:,.0f} tokens of context")

    return lines


def judged_by(summaries: Sequence[RunSummary]) -> str:
    """The head of a table: which judge the accuracies come from.

    Empty if no cell names a judge. Accuracies of different judges must not be compared without a
    warning.
    """
    judges = dict.fromkeys(judge_shown(summary.judge) for summary in summaries)
    judges.pop("", None)
    if len(judges) > 1:
        return f"judges: {', '.join(judges)}; accuracies by different judges can't be compared"

    return f"judge: {next(iter(judges))}" if judges else ""


def _cut(row: Row) -> Row:
    return [one_line(cell, LONGEST_CELL) for cell in row]


def escape(row: Row) -> Row:
    """A row whose cells Markdown shows literally."""
    return list(map(inline, _cut(row)))


def comparison_csv(summaries: Sequence[RunSummary]) -> str:
    """All settings that differ and all figures, unrounded, by their names in MLflow.

    A figure that was not measured is empty.
    """
    columns = differing_settings(summaries)
    titles = titles_of(summaries)
    measured = [_metrics_by_title(summary, titles) for summary in summaries]
    metrics = sorted(set().union(*measured), key=natural_order)
    rows: list[list[object]] = [["run_key", "name", "dataset", *columns, *metrics, "flags"]]
    for summary, figures in zip(summaries, measured, strict=True):
        row: list[object] = [summary.run_key, summary.name, summary.dataset]
        for key in columns:
            value = ""
            if key in summary.params:
                value = redacted(setting_value(summary, key))

            row.append(value)

        rows.append([*row, *map(figures.get, metrics), ", ".join(flags(summary))])

    return csv_text(rows)


def _metrics_by_title(summary: RunSummary, titles: Titles) -> dict[str, float | None]:
    """The metrics of a run, those of a category under its title."""
    title_of = {row.name: titles[summary.dataset, row.category] for row in summary.categories}
    named = {}
    for name, value in summary.metrics.items():
        head, slash, tail = name.partition("/")
        named[f"{head}{slash}{title_of.get(tail, tail)}"] = value

    return named


def cells(
    summaries: Sequence[RunSummary], left_out: Sequence[str] = ()
) -> tuple[int, Row, list[Row]]:
    """The number of columns with settings, the header, and the rows, as strings.

    Columns of figures that no cell has are left out, and so are the flags in `left_out`.
    """
    columns = differing_settings(summaries)
    leading = list(columns.values()) or ["run"]
    categories = titles_of(summaries)
    abilities = abilities_of(summaries)
    measured, always = [], {QUESTIONS}
    for summary in summaries:
        shown = [flag for flag in flags(summary) if flag not in left_out]
        measured.append({**figures(summary, categories, abilities), "flags": ", ".join(shown)})
        if not summary.only_retrieves:
            always.add(ACCURACY)

    names = list(measured[0]) if measured else []
    kept = [name for name in names if name in always or is_measured(name, measured)]
    rows = []
    for summary, row in zip(summaries, measured, strict=True):
        settings = [setting_value(summary, key) for key in columns] or [summary.name]
        rows.append([*settings, *map(row.__getitem__, kept)])

    return len(leading), [*leading, *kept], rows


def is_measured(name: str, rows: Sequence[dict[str, str]]) -> bool:
    """Whether any cell has a figure of this name."""
    return any(row[name] not in {"", NONE} for row in rows)


def figures(
    summary: RunSummary, categories: Titles, abilities: Sequence[str] = ()
) -> dict[str, str]:
    """The figures of one cell by their short headers, shares in per cent."""
    get = summary.metrics.get
    shares: dict[str, float | None] = {}
    by_title, of_metrics = rows_of(summary, categories), texts_at(TABLE, summary)
    taken = {*OTHER_COLUMNS, *of_metrics, *abilities}
    for title, short in shorten(columns_of(categories), taken).items():
        shares[short] = None
        if title in by_title:
            shares[short] = by_title[title].accuracy

    by_ability = {row.category: row.accuracy for row in summary.facets.get(ABILITY, ())}
    for ability in abilities:
        shares[ability] = by_ability.get(ability)

    return {
        QUESTIONS: count(summary.asked),
        ACCURACY: with_interval_of("accuracy", summary),
        # Next to the raw accuracy, never in its place.
        CORRECTED: corrected_text(summary) or NONE,
        RERUN_STD: "0 det" if repeats_itself(summary) else percent(get("accuracy_std")),
        **{name: percent(share) for name, share in shares.items()},
        **of_metrics,
        COVERAGE: coverage_percent(get("coverage"), digits=0 if get("coverage") == 1 else 1),
    }


def repeats_itself(summary: RunSummary) -> bool:
    """Whether the std is 0 because the reader always gives the same answer."""
    if not summary.has_deterministic_reader:
        return False

    # The accuracies of the repeats are compared as well: a deviation may be 0 because of rounding.
    accuracies = {repeat.metrics.get("accuracy") for repeat in summary.repeats}
    return summary.metrics.get("accuracy_std") == 0 and len(accuracies) <= 1


def abilities_of(summaries: Sequence[RunSummary]) -> list[str]:
    """The abilities by which a data set groups its questions besides the categories.

    LongMemEval's IE, MR, TR, KU and ABS, which are not its question types. Empty for others.
    """
    values: dict[str, None] = {}
    for summary in summaries:
        values |= dict.fromkeys(row.category for row in summary.facets.get(ABILITY, ()))

    known = filter(values.__contains__, ABILITIES)
    return list(dict.fromkeys([*known, *values]))


def shorten(names: Sequence[str], taken: Container[str] = ()) -> dict[str, str]:
    """Headers of categories, without the words that all of them begin with.

    `factconsolidation_mh_6k` and similar names become `mh 6k`, and `adversarial` becomes `refusals
    right`. No two are equal, and none is in `taken`.
    """
    words = {}
    for name in names:
        spaced = name.replace("_", " ").replace("-", " ")
        words[name] = REFUSALS.get(name, spaced).split()

    shared = 0
    if len(words) > 1:
        # The last word of each is not compared: a header must keep one, even if names are equal.
        for column in zip(*(parts[:-1] for parts in words.values()), strict=False):
            if len(set(column)) > 1:
                break

            shared += 1

    headers = {name: " ".join(parts[shared:]) for name, parts in words.items()}
    counts = Counter(headers.values())
    for name, header in headers.items():
        if counts[header] > 1 or header in taken:
            headers[name] = f"category {name}"

    return headers


def fold(header: str) -> str:
    """A header on short lines: `adver-sarial`, `open domain` and `num_ runs` have two."""
    if len(header) > 6:
        header = header.replace("_", "_ ")

    lines = []
    for word in header.split():
        rest = word
        if len(word) > LONGEST_WORD and not word.endswith("_"):
            # In parts of five letters, the last of at most seven: `contr-`, `adict-`, `ion`.
            while len(rest) > 7:
                lines.append(f"{rest[:5]}-")
                rest = rest[5:]

        lines.append(rest)

    return "\n".join(lines)
