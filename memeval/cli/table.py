"""`python -m memeval table RUN ...`: finished runs as the table of a paper."""

from collections.abc import Sequence
from pathlib import Path

from memeval.api.comparing import table as table_of
from memeval.cli.parser import LAST, Parser, check_folder_of, one_of
from memeval.comparison.paper.formats import FORMATS
from memeval.errors import UserError
from memeval.results.files import write_atomically, writing

USAGE = f"""
writes finished runs as a table for a paper

words* RUN|FILTER      runs as `compare` takes them: keys, names, or filters such as sweep=NAME
{LAST}
--format {one_of(FORMATS)}  default: markdown
--columns NAMES:names  separated by commas (accuracy,f1): categories, accuracy, f1, bleu1,
    recall@10, session_recall@10, context, cost, latency, or any metric of the records (default:
    those that the runs have)
--rows SETTINGS:names  the settings that name the rows, separated by commas: system,top_k,…
    (default: all that differ)
--caption CAPTION      default: the data set and its questions
--label LABEL          for latex and html (default: tab: and the data set)
-o --output FILE:path  write the table to a file
--force                use one column even for runs that differ in data, questions, labels, judge
    or coverage; the table says so
"""
PARSER = Parser.of("table", USAGE, format="markdown", columns="", rows="", caption="", label="")


def table(arguments: Sequence[str]) -> int:
    """Prints the table, or writes it into a file."""
    options = PARSER.parse_intermixed_args(list(arguments))
    if options.format == "csv" and options.caption:
        raise UserError("--format csv has no place for --caption", "leave it out")
    if options.format in ("csv", "markdown") and options.label:
        raise UserError(f"--format {options.format} has no place for --label", "leave it out")
    if options.output is not None:
        check_folder_of("--output", options.output)

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
    # If it is redirected to a file, opening it again would let the line below overwrite the table.
    if options.output in (None, Path("/dev/stdout")):
        print(text, end="")
        return 0

    with writing(options.output):
        write_atomically(options.output, text)

    print(f"file: {options.output}")
    return 0
