"""`python -m memeval evaluate ANSWERS.jsonl dataset=… judge=…`: judges answers from a file."""

from collections.abc import Sequence
from pathlib import Path

from memeval.api.judging import JUDGED_BY, ONLY_LISTED, RANKED, imported_run
from memeval.cli.comparison import show_comparison
from memeval.cli.parser import Parser
from memeval.errors import UserError
from memeval.runs.invocation import current_invocation
from memeval.text.shown import one_line

EXAMPLE = "for example:  python -m memeval evaluate ANSWERS.jsonl dataset=locomo judge=keyword"
OPTIONS = (f"options:  {ONLY_LISTED}, {RANKED}, {JUDGED_BY}NAME", EXAMPLE)
USAGE = """
judges the answers of another program

--only-listed
--ranked
--judged-by* NAME
"""
PARSER = Parser.of("evaluate", USAGE)
PARSER.usage = f"{PARSER.prog} FILE [{ONLY_LISTED}] [{RANKED}] [{JUDGED_BY}NAME] [OVERRIDE ...]"
# `--judge=x` is a mistake, not an abbreviation of `--judged-by`.
PARSER.allow_abbrev = False


def evaluate(arguments: Sequence[str]) -> int:
    """Judges a file of answers and logs the run, tagged as imported.

    Exit status 1 if the result is invalid.
    """
    from memeval.runs.cell import run_alone

    options, words = PARSER.parse_known_args(list(arguments))
    file, overrides = split_words(words)
    if len(options.judged_by) > 1:
        raise UserError(f"{JUDGED_BY}NAME takes one name", *OPTIONS)

    job = imported_run(
        file,
        overrides,
        only_listed=options.only_listed,
        judged_by=next(iter(options.judged_by), None),
        ranked=options.ranked,
    )
    invocation = current_invocation()
    summary = run_alone(job.cell, invocation, make_run=job.make_run).complete_summary()
    show_comparison(invocation)

    return int(not summary.valid)


def split_words(words: Sequence[str]) -> tuple[str, list[str]]:
    """The file of answers, and the overrides.

    Raises `UserError` for an unknown option, or if there is not exactly one file.
    """
    for word in words:
        if word.startswith("-"):
            raise UserError(f"unknown option '{one_line(word)}' of evaluate", *OPTIONS)

    # A file may have `=` in its name.
    files = [word for word in words if "=" not in word or Path(word).is_file()]
    if len(files) != 1:
        raise UserError(f"evaluate takes one answer file, not {len(files)}", EXAMPLE)

    return files[0], [word for word in words if word != files[0]]
