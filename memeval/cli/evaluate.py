"""`python -m memeval evaluate ANSWERS.jsonl dataset=… judge=…`: judges answers that another program
gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memeval.api.judging import JUDGED_BY, ONLY_LISTED, RANKED, imported_run
from memeval.cli.comparison import show_comparison
from memeval.errors import UserError
from memeval.runs.session import current_session
from memeval.text.shown import one_line

USAGE = "python -m memeval evaluate ANSWERS.jsonl dataset=locomo judge=keyword"


OPTIONS = (
    f"known:  {ONLY_LISTED}, {RANKED}, {JUDGED_BY}NAME",
    f"for example:  {USAGE}",
)


def evaluate(arguments: Sequence[str]) -> int:
    """Judges a file of answers and logs the run, tagged as imported.

    Exit status 1 if the result is invalid.
    """
    from memeval.runs.cell import run_cell

    arguments = _join_name(arguments)
    file, overrides = split_words(arguments)
    made = imported_run(
        file,
        overrides,
        only_listed=ONLY_LISTED in arguments,
        judged_by=named_judge(arguments),
        ranked=RANKED in arguments,
    )
    session = current_session()
    summary = run_cell(made.cell, session, runner=made.runner)
    show_comparison(session)

    return 0 if summary.valid else 1


def _join_name(arguments: Sequence[str]) -> list[str]:
    """The words, with `--judged-by NAME` written as `--judged-by=NAME`."""
    words = list(arguments)
    option = JUDGED_BY.removesuffix("=")
    if option in words[:-1]:
        index = words.index(option)
        words[index : index + 2] = [f"{JUDGED_BY}{words[index + 1]}"]

    return words


def named_judge(arguments: Sequence[str]) -> str | None:
    """The judge of `--judged-by=NAME`; None if none is named."""
    names = [word.removeprefix(JUDGED_BY) for word in arguments if word.startswith(JUDGED_BY)]
    if len(names) > 1 or "" in names:
        raise UserError(f"{JUDGED_BY}NAME takes one name", *OPTIONS)

    return names[0] if names else None


def split_words(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The file of answers, and the overrides.

    Raises `UserError` for another option, and unless there is exactly one file.
    """
    words = [
        word
        for word in arguments
        if word not in (ONLY_LISTED, RANKED) and not word.startswith(JUDGED_BY)
    ]
    for word in words:
        if word.startswith("-"):
            raise UserError(f"unknown option '{one_line(word)}' of evaluate", *OPTIONS)

    # A file may have `=` in its name.
    files = [word for word in words if "=" not in word or Path(word).is_file()]
    if len(files) != 1:
        raise UserError(
            f"evaluate takes one file of answers, not {len(files)}", f"for example:  {USAGE}"
        )

    return files[0], [word for word in words if word != files[0]]
