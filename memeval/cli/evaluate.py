"""`python -m memeval evaluate ANSWERS.jsonl dataset=… judge=…`: judges answers that another program
gave.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.cli.comparison import show_comparison
from memeval.config.overrides import full_override
from memeval.errors import UserError
from memeval.redaction import redacted
from memeval.results import RunSummary
from memeval.runs.compose.config import compose_config
from memeval.runs.interrupt import run_loop
from memeval.runs.job import check_writable, is_repeated
from memeval.shown import one_line

if TYPE_CHECKING:
    from memeval.config.schema import RunConfig
    from memeval.judges.recorded import RecordedJudge
    from memeval.pipeline.cell import Cell
    from memeval.pipeline.imported import Hypotheses
    from memeval.pipeline.models import Models
    from memeval.pipeline.progress import Progress
    from memeval.runs.cell import Finish, Runner

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
    from memeval.pipeline.imported import read_hypotheses
    from memeval.pipeline.opening import open_cell
    from memeval.runs.cell import run_cell

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
    judge_of_file = judge_in_file(config, hypotheses, judged_by)
    # In place of a system: the file is what gives the answers, and part of the run's key.
    config.system = system_of_file(file, hypotheses, judge_of_file, only_listed=only_listed)
    cell = open_cell(config, repeated_command(arguments, file))
    known = known_questions(config)
    # Without this check a file for another data set would be a run in which nothing was answered.
    if only_listed and known.isdisjoint(hypotheses.answers):
        raise UserError(
            f"{one_line(file)} does not list a question of dataset={config.dataset['name']}",
            f"an id of this data set:  {one_line(min(known, default='none'))}",
        )

    runner = runner_of(hypotheses, known, judge_of_file, only_listed=only_listed)
    summary = run_cell(cell, runner=runner)
    show_comparison()

    return 0 if summary.valid else 1


def judge_in_file(
    config: RunConfig, hypotheses: Hypotheses, judged_by: str | None
) -> RecordedJudge | None:
    """The judge whose verdicts the file records, under `judge=recorded`; else None.

    Raises `UserError` where the file records no verdict of that judge, and for `--judged-by` under
    another judge.
    """
    from memeval.judges.recorded import RECORDED
    from memeval.pipeline.imported_verdicts import recorded_judge

    if config.judge.name == RECORDED:
        return recorded_judge(hypotheses, judged_by)
    if judged_by is not None:
        raise UserError(f"{JUDGED_BY}{one_line(judged_by)} needs judge=recorded")

    return None


def system_of_file(
    file: str,
    hypotheses: Hypotheses,
    judge_of_file: RecordedJudge | None,
    *,
    only_listed: bool,
) -> dict[str, Any]:
    """The system of the run: the file, and what of it is used. It is part of the run's key."""
    from memeval.pipeline.imported_source import IMPORTED

    system: dict[str, Any] = {"name": IMPORTED, "file": file, "sha256": hypotheses.sha256}
    if only_listed:
        system["only_listed"] = True
    if judge_of_file is not None:
        system["judged_by"] = judge_of_file.judged_by

    return system


def repeated_command(arguments: Sequence[str], file: str) -> str:
    """The command that makes the same run, without options that do not change it."""
    words = [
        full_override(word)
        for word in arguments
        if word in (file, ONLY_LISTED) or word.startswith(JUDGED_BY) or is_repeated(word)
    ]
    return redacted(shlex.join(["python", "-m", "memeval", "evaluate", *words]))


def known_questions(config: RunConfig) -> frozenset[str]:
    """The ids of all questions of the data set, those that are not asked included."""
    from memeval.pipeline.opening import open_dataset

    cases = open_dataset(config).read()
    return frozenset(question.question_id for case in cases for question in case.questions)


def runner_of(
    hypotheses: Hypotheses,
    known: frozenset[str],
    judge_of_file: RecordedJudge | None,
    *,
    only_listed: bool,
) -> Runner:
    """Runs a cell whose answers are those of the file."""
    from memeval.pipeline.imported import ImportedAnswers
    from memeval.pipeline.run import CellRun

    def source(cell: Cell, _: Models) -> ImportedAnswers:
        return ImportedAnswers(cell, hypotheses, known, only_listed=only_listed)

    def judge(cell: Cell, progress: Progress, finish: Finish) -> RunSummary:
        return run_loop(CellRun(cell, progress, source, judge_of_file).run(finish))

    return judge


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
