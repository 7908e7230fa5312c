"""`python -m memeval data stats NAME`: a data set as a table like the published ones."""

import io
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from memeval.api.overrides import as_word
from memeval.cli.data_settings import chosen_dataset
from memeval.datasets.contract import Dataset
from memeval.datasets.registry import has_adapter
from memeval.datasets.stats import Stats, StatsRow, measure
from memeval.errors import UserError
from memeval.metrics.formats import NONE, count
from memeval.records import CategoryId
from memeval.runs.display.terminal import drawing_stream
from memeval.text.redaction import redacted
from memeval.text.shown import natural_order, one_line, printable, some_of

MAX_CASES = 40
"""Up to this many cases have a row each. With more cases, or with one question per case, each
category has a row.
"""
PIPED = 300
"""Width of the table, in columns, if the output is not a terminal."""
MAX_VALUES = 12
"""Maximum number of listed values of a facet."""


def show_stats(chosen: Namespace) -> int:
    """Reads a data set with the given settings and prints its table."""
    name = chosen.name
    if not has_adapter(name) and Path(name).is_file():
        raise UserError(
            f"data stats takes the name of a data set, but '{one_line(name)}' is a file",
            f"use:  python -m memeval data stats json {as_word('dataset.path', name)}",
        )

    dataset = chosen_dataset(name, chosen.settings)
    loaded = dataset.load()
    stats = measure(dataset.cases(), MAX_CASES)
    categories = sorted(stats.by_category, key=lambda category: natural_order(str(category)))
    names = dataset.category_names or dict(zip(categories, map(str, categories), strict=True))
    print(f"{name}: {dataset.info.title}\n")
    print_table(header(stats, names), list(rows(stats, names)))
    print()
    for line in [
        *footer_lines(dataset, stats, names),
        *dict.fromkeys((*loaded.notes, *dataset.notes())),
    ]:
        print(line)

    return 0


def print_table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Prints a table: a plain Markdown one if the output is piped."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=drawing_stream(sys.stdout))
    form = box.SIMPLE_HEAD if console.is_terminal else box.MARKDOWN
    table = Table(box=form)
    for index, title in enumerate(titles):
        table.add_column(Text(printable(title)), justify="right" if index else "left")

    for line in lines:
        cells = [Text(printable(redacted(cell))) for cell in line]
        style = "bold" if line[0] == "all" else None
        table.add_row(*cells, style=style)

    if console.is_terminal:
        console.print(table)
        return

    # rich pads every line with blanks to its width, and adds empty lines around the table.
    written = io.StringIO()
    Console(width=PIPED, file=written).print(table)
    print("\n".join(filter(None, map(str.rstrip, written.getvalue().splitlines()))))


def header(stats: Stats, names: Mapping[CategoryId, str]) -> list[str]:
    """Titles of the columns; if each case has a row, categories are shown by id."""
    last = ["evidence", "answerable", "first", "last"]
    if not stats.by_case:
        means = ["category", "cases", "sessions", "turns", "tokens", "most tokens"]
        return [*means, "questions", *last]

    titles = ["case", "sessions", "turns", "tokens", "questions"]
    for category in names:
        title = f"c{category}" if isinstance(category, int) else category
        titles.append(title)

    return [*titles, *last]


def rows(stats: Stats, names: Mapping[CategoryId, str]) -> Iterator[list[str]]:
    """The table's rows: one per case, or one per category with the means over the cases that have
    questions of it.

    The last row is for all of them.
    """
    if stats.by_case:
        for title, row in [*stats.by_case.items(), ("all", stats.whole)]:
            counts = [row.sessions, row.turns, row.tokens, row.questions]
            counts += [row.categories[category] for category in names]
            yield [title, *map(count, counts), *last_columns(row)]

        return

    by_name = []
    for category, name in names.items():
        if category in stats.by_category:
            title = name if str(category) == name else f"{category} {name}"
            by_name.append((title, stats.by_category[category]))

    for title, row in [*by_name, ("all", stats.whole)]:
        yield [
            title,
            f"{row.cases:,}",
            f"{row.sessions / row.cases:,.1f}",
            f"{row.turns / row.cases:,.1f}",
            f"{row.tokens / row.cases:,.0f}",
            f"{row.most_tokens:,}",
            f"{row.questions:,}",
            *last_columns(row),
        ]


def last_columns(row: StatsRow) -> list[str]:
    """Evidence turns per question with evidence, share of answerable ones, first and last day."""
    evidence = share = first = last = NONE
    if row.with_evidence:
        evidence = f"{row.evidence / row.with_evidence:.2f}"
    if row.questions:
        share = f"{100 * row.answerable / row.questions:.0f} %"
    if row.first:
        first = f"{row.first:%Y-%m-%d}"
    if row.last:
        last = f"{row.last:%Y-%m-%d}"

    return [evidence, share, first, last]


def footer_lines(dataset: Dataset, stats: Stats, names: Mapping[CategoryId, str]) -> Iterator[str]:
    """Meaning of the columns, and the spread of questions over the facets."""
    if stats.by_case:
        named = [f"{category} {name}" for category, name in names.items() if str(category) != name]
        if named:
            yield f"categories: {', '.join(named)}"

        mean = stats.whole.tokens / max(1, stats.whole.cases)
        size = f"tokens per case: {mean:,.0f} on average, {stats.whole.most_tokens:,} at most"
    else:
        size = "sessions, turns and tokens are means per case"

    yield f"{size}, counted offline; evidence: turns per question with evidence"
    for facet, counts in stats.facets.items():
        values = sorted(counts, key=natural_order)
        listed = some_of([f"{value} {counts[value]:,}" for value in values], MAX_VALUES)
        yield f"{dataset.facet_names.get(facet, facet)}: {listed}"
