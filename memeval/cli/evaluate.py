"""`python -m memeval evaluate ANSWERS.jsonl dataset=… judge=…`: judges answers that another program
gave.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from memeval.cli.comparison import show_comparison
from memeval.cli.compose import compose_config
from memeval.cli.interrupt import run_loop
from memeval.cli.run import check_writable, is_repeated
from memeval.config.renamed import current_override
from memeval.errors import UserError
from memeval.redaction import redacted
from memeval.results import RunSummary
from memeval.shown import one_line

USAGE = "python -m memeval evaluate ANSWERS.jsonl dataset=locomo judge=keyword"
ONLY_LISTED = "--only-listed"
JUDGED_BY = "--judged-by="


OPTIONS = (
    f"known:  {ONLY_LISTED} (asks only the questions that the file lists)",
    f"        {JUDGED_BY}NAME (under judge=recorded, whose verdicts of the file count)",
    f"for example:  {USAGE}",
)


def evaluate(arguments: Sequence[str]) -> int:
    """Judges a file of answers and logs the run, tagged as imported.

    Exit status 1 if the result is invalid.
    """
    from memeval.cli.cell import Finish, run_cell
    from memeval.judges.recorded import RECORDED
    from memeval.pipeline.cell import Cell, open_cell, open_dataset
    from memeval.pipeline.imported import ImportedAnswers, read_hypotheses
    from memeval.pipeline.imported_source import IMPORTED
    from memeval.pipeline.imported_verdicts import recorded_judge
    from memeval.pipeline.models import Models
    from memeval.pipeline.progress import Progress
    from memeval.pipeline.run import CellRun

    only_listed = ONLY_LISTED in arguments
    judged_by = named_judge(arguments)
    file, overrides = split_words(arguments)
    config = compose_config(overrides)
    if config.num_runs != 1:
        raise UserError(
            "num_runs must be 1 for evaluate: it can't repeat the answers of another program"
        )

    check_writable()
    hypotheses = read_hypotheses(Path(file))
    config.system = {
        "name": IMPORTED,
        "file": file,
        "sha256": hypotheses.sha256,
    }
    if only_listed:
        config.system["only_listed"] = True

    judge_of_file = None
    if config.judge.name == RECORDED:
        judge_of_file = recorded_judge(hypotheses, judged_by)
        config.system["judged_by"] = judge_of_file.judged_by
    elif judged_by is not None:
        raise UserError(f"{JUDGED_BY}{one_line(judged_by)} needs judge=recorded")

    repeated = [
        current_override(word)
        for word in arguments
        if word in (file, ONLY_LISTED) or word.startswith(JUDGED_BY) or is_repeated(word)
    ]
    cell = open_cell(
        config, redacted(shlex.join(["python", "-m", "memeval", "evaluate", *repeated]))
    )
    known = frozenset(
        question.question_id for case in open_dataset(config).read() for question in case.questions
    )
    if only_listed and known.isdisjoint(hypotheses.answers):
        raise UserError(
            f"{one_line(file)} does not list a question of dataset={config.dataset['name']}",
            f"an id of this data set:  {one_line(min(known, default='none'))}",
        )

    def judge(cell: Cell, progress: Progress, finish: Finish) -> RunSummary:
        def source(cell: Cell, _: Models) -> ImportedAnswers:
            return ImportedAnswers(cell, hypotheses, known, only_listed=only_listed)

        return run_loop(CellRun(cell, progress, source, judge_of_file).run(finish))

    summary = run_cell(cell, runner=judge)
    show_comparison()

    return 0 if summary.valid else 1


def named_judge(arguments: Sequence[str]) -> str | None:
    """The judge of `--judged-by=NAME`; None where none is named."""
    names = [word.removeprefix(JUDGED_BY) for word in arguments if word.startswith(JUDGED_BY)]
    if len(names) > 1 or "" in names:
        raise UserError(f"{JUDGED_BY}NAME takes one name", *OPTIONS)

    return names[0] if names else None


def split_words(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The file of answers, and the overrides.

    Raises `UserError` for another option, and unless there is exactly one file.
    """
    words = [word for word in arguments if word != ONLY_LISTED and not word.startswith(JUDGED_BY)]
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
