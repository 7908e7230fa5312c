"""`python -m memeval evaluate ANSWERS.jsonl dataset=… judge=…`: judges answers that another program
gave.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from memeval.cli.compose import compose_config
from memeval.cli.interrupt import run_loop
from memeval.cli.run import check_writable, is_repeated, show_comparison
from memeval.config.renamed import current_override
from memeval.errors import UserError
from memeval.redaction import redacted
from memeval.results import RunSummary
from memeval.shown import one_line

USAGE = "python -m memeval evaluate ANSWERS.jsonl dataset=locomo judge=keyword"
ONLY_LISTED = "--only-listed"


def evaluate(arguments: Sequence[str]) -> int:
    """Judges a file of answers and logs the run, tagged as imported.

    Exit status 1 where nothing could be scored.
    """
    from memeval.cli.cell import Finish, run_cell
    from memeval.pipeline.cell import Cell, open_cell, open_dataset
    from memeval.pipeline.imported import ImportedAnswers, read_hypotheses
    from memeval.pipeline.imported_source import IMPORTED
    from memeval.pipeline.models import Models
    from memeval.pipeline.progress import Progress
    from memeval.pipeline.run import CellRun

    only_listed = ONLY_LISTED in arguments
    words = [word for word in arguments if word != ONLY_LISTED]

    for word in words:
        if word.startswith("-"):
            hint = f"known:  {ONLY_LISTED} (asks only the questions that the file lists)"
            raise UserError(f"unknown option '{word}' of evaluate", hint, f"for example:  {USAGE}")

    files = [word for word in words if "=" not in word or Path(word).is_file()]
    if len(files) != 1:
        raise UserError(
            f"evaluate takes one file of answers, not {len(files)}", f"for example:  {USAGE}"
        )

    overrides = [word for word in words if word != files[0]]
    config = compose_config(overrides)
    if config.num_runs != 1:
        raise UserError(
            "num_runs must be 1 for evaluate: it can't repeat the answers of another program"
        )

    check_writable()
    hypotheses = read_hypotheses(Path(files[0]))
    config.system = {
        "name": IMPORTED,
        "file": files[0],
        "sha256": hypotheses.sha256,
    }
    if only_listed:
        config.system["only_listed"] = True

    repeated = [
        current_override(word)
        for word in arguments
        if word == files[0] or word == ONLY_LISTED or is_repeated(word)
    ]
    cell = open_cell(
        config, redacted(shlex.join(["python", "-m", "memeval", "evaluate", *repeated]))
    )
    known = frozenset(
        question.question_id for case in open_dataset(config).read() for question in case.questions
    )
    if only_listed and known.isdisjoint(hypotheses.answers):
        raise UserError(
            f"{one_line(files[0])} does not list a question of dataset={config.dataset['name']}",
            f"an id of this data set:  {one_line(min(known, default='none'))}",
        )

    def judge(cell: Cell, progress: Progress, finish: Finish) -> RunSummary:
        def source(cell: Cell, _: Models) -> ImportedAnswers:
            return ImportedAnswers(cell, hypotheses, known, only_listed=only_listed)

        return run_loop(CellRun(cell, progress, source).run(finish))

    summary = run_cell(cell, runner=judge)
    show_comparison()

    return 1 if summary.metrics["coverage"] == 0 else 0
