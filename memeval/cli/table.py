"""`python -m memeval table RUN ...`: finished runs as the table of a paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memeval.api.tabling import table as table_of
from memeval.cli.parser import Parser
from memeval.comparison.paper import FORMATS
from memeval.errors import UserError
from memeval.results import write_atomically
from memeval.text.shown import one_line


def table(arguments: Sequence[str]) -> int:
    """Prints the table, or writes it into a file."""
    options = parser().parse_intermixed_args(list(arguments))
    if not options.words and options.last is None:
        raise UserError(
            "table needs runs, or a filter such as sweep=…",
            "for example:  python -m memeval table sweep=baselines --rows system --format latex",
        )

    made = table_of(
        *options.words,
        columns=options.columns,
        rows=options.rows,
        caption=options.caption,
        label=options.label,
        last=options.last,
        force=options.force,
    )
    text = made.text(options.format)
    if options.output is None:
        print(text, end="")
        return 0

    try:
        write_atomically(options.output, text)
    except OSError as error:
        raise UserError(
            f"{one_line(options.output)} can't be written: {error.strerror or error}"
        ) from error

    print(f"file: {options.output}")
    return 0


def parser() -> Parser:
    options = Parser.of("table", "writes finished runs as the table of a paper")
    options.add_words(
        "RUN|FILTER",
        "runs as `compare` takes them: keys, names, or filters such as sweep=NAME",
    )
    options.add_last()
    options.add_argument(
        "--format", choices=list(FORMATS), default=next(iter(FORMATS)), help="default: markdown"
    )
    options.add_argument(
        "--columns",
        default="",
        metavar="NAMES",
        help="with commas: categories, accuracy, f1, bleu1, recall@10, session_recall@10, context, "
        "cost, latency, or any metric of the records (default: those that the runs have)",
    )
    options.add_argument(
        "--rows",
        default="",
        metavar="SETTINGS",
        help="the settings that name the rows, with commas: system, top_k, … (default: all that "
        "differ)",
    )
    options.add_argument("--caption", default="", help="default: the data set and its questions")
    options.add_argument("--label", default="", help="default: tab: and the data set")
    options.add_argument("-o", "--output", type=Path, metavar="FILE", help="writes it into a file")
    options.add_argument(
        "--force",
        action="store_true",
        help="one column also for runs that differ in data, questions, labels, judge or coverage; "
        "the table says so",
    )
    return options
