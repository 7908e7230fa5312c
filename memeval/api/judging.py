"""Judges answers of other programs, tests judges, and corrects accuracies for a judge's errors."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.api.arguments import check_types
from memeval.api.finished import FinishedRun
from memeval.api.overrides import as_overrides
from memeval.api.selecting import select_run
from memeval.api.threads import composing, in_thread
from memeval.config.overrides import full_override
from memeval.errors import UserError
from memeval.results.files import writing
from memeval.results.run import Run
from memeval.text.redaction import redacted
from memeval.text.shipped import shipped_path
from memeval.text.shown import one_line

if TYPE_CHECKING:
    from memeval.calibration.items import ProbeItem
    from memeval.calibration.probe import ProbeResult
    from memeval.config.schema import RunConfig
    from memeval.judges.recorded import RecordedJudge
    from memeval.pipeline.execute.imported import Hypotheses
    from memeval.pipeline.open.cell import Cell
    from memeval.pipeline.open.models import Models
    from memeval.results.calibration import Calibration
    from memeval.runs.schedule import MakeRun

ONLY_LISTED, JUDGED_BY, RANKED = "--only-listed", "--judged-by=", "--ranked"
"""Options of `evaluate` to keep in the command that repeats a run."""
RANKED_CLASS = "memeval.systems.external.ranked:Ranked"
OF_MEMORIES = (
    *("granularity", "top_k", "context_tokens", "compression_turn", "compression_unit"),
    *("retain_recent", "max_ingest_loss", "prompt", "embedder", "reranker", "reader", "writer"),
)
"""Groups and fields that have no effect on the answers of another program."""
ITEMS_FILE = "data/demo/judge_probe.jsonl"
SHIPPED = "demo"
"""The data set of the built-in items."""


@check_types
def evaluate(
    answers: str | Path,
    *overrides: str,
    only_listed: bool = False,
    judged_by: str | None = None,
    ranked: bool = False,
    progress: bool = True,
    **settings: Any,
) -> FinishedRun:
    """Judges a file of another program's answers, and returns the run.

    `only_listed` asks only the questions that the file lists. Under `judge="recorded"` the verdicts
    in the file count; `judged_by` names the judge, if there are several. With `ranked` the file
    contains a memory's search results: the run's reader answers from them.

    Raises `UserError` for a file or settings that can't be used.
    """
    words = [*overrides, *as_overrides(settings)]

    def work() -> FinishedRun:
        from memeval.runs.cell import run_alone

        job = imported_run(
            str(answers), words, only_listed=only_listed, judged_by=judged_by, ranked=ranked
        )
        outcome = run_alone(job.cell, make_run=job.make_run, quiet=not progress)
        return FinishedRun(job.cell.folder, outcome.complete_summary())

    return in_thread(work)


@dataclass(frozen=True)
class Evaluation:
    """A run whose answers come from a file."""

    cell: Cell
    make_run: MakeRun


def imported_run(
    file: str, overrides: Sequence[str], *, only_listed: bool, judged_by: str | None, ranked: bool
) -> Evaluation:
    """The run that judges a file of answers, or answers from a file of search results (`ranked`).

    Raises `UserError`.
    """
    from memeval.runs.job import check_writable
    from memeval.runs.spending import refuse_confirmation

    options = [ONLY_LISTED] if only_listed else []
    if judged_by is not None:
        options.append(f"{JUDGED_BY}{judged_by}")
    if ranked and options:
        raise UserError(f"{RANKED} takes neither {ONLY_LISTED} nor {JUDGED_BY}NAME")

    config = _compose(overrides, reads=ranked)
    if config.num_runs != 1 and not ranked:
        raise UserError(
            "num_runs must be 1 for evaluate: it can't repeat the answers of another program"
        )

    refuse_confirmation(config, "evaluate")
    check_writable()
    if ranked:
        command = repeated_command([file, *overrides, RANKED], file)
        return _from_rankings(file, config, command)

    command = repeated_command([file, *overrides, *options], file)
    return from_answers(file, config, command, only_listed=only_listed, judged_by=judged_by)


def from_answers(
    file: str, config: RunConfig, command: str, *, only_listed: bool, judged_by: str | None
) -> Evaluation:
    """The run that judges the answers of a file; `command` repeats it."""
    from memeval.pipeline.execute.imported import ImportedAnswers, read_hypotheses
    from memeval.pipeline.execute.run import CellRun
    from memeval.pipeline.open.opening import open_cell

    hypotheses = read_hypotheses(Path(file))
    judge_of_file = _judge_in_file(config, hypotheses, judged_by)
    # The file takes the place of a system: it provides the answers, and is part of the run's key.
    config.system = _system_of_file(file, hypotheses, judge_of_file, only_listed=only_listed)
    cell = open_cell(config, command)
    known = _known_questions(config)
    _check_listed(file, hypotheses.rows, known, config)

    def source(cell: Cell, _: Models) -> ImportedAnswers:
        return ImportedAnswers(cell, hypotheses, known, only_listed=only_listed)

    return Evaluation(cell, partial(CellRun, source=source, judge=judge_of_file))


def _from_rankings(file: str, config: RunConfig, command: str) -> Evaluation:
    """The run whose reader answers from the search results in a file; `command` repeats it."""
    from memeval.pipeline.execute.imported import RankedAnswers
    from memeval.pipeline.execute.run import CellRun
    from memeval.pipeline.open.opening import open_cell
    from memeval.systems.external.ranked import read_rankings

    rankings, known = read_rankings(file), _known_questions(config)
    _check_listed(file, rankings.rows, known, config)
    config.system = {"name": "ranked", "class": RANKED_CLASS, "file": file}

    def source(cell: Cell, models: Models) -> RankedAnswers:
        return RankedAnswers(cell, models, rankings, known)

    return Evaluation(open_cell(config, command), partial(CellRun, source=source))


def _check_listed(
    file: str, listed: Iterable[str], known: frozenset[str], config: RunConfig
) -> None:
    """Raises `UserError` for a file of another data set: its run would have no answers."""
    if known.isdisjoint(listed):
        raise UserError(
            f"{one_line(file)} lists no question of dataset={config.dataset['name']}",
            f"this data set's ids look like:  {one_line(min(known, default='none'))}",
            "for another data set:  dataset=NAME",
        )


def repeated_command(arguments: Sequence[str], file: str) -> str:
    """The command that repeats the run, without options that do not change it."""
    from memeval.runs.job import is_repeated

    words = [
        full_override(word)
        for word in arguments
        if word in (file, ONLY_LISTED, RANKED) or word.startswith(JUDGED_BY) or is_repeated(word)
    ]
    return redacted(shlex.join(["python", "-m", "memeval", "evaluate", *words]))


@check_types
def judge_probe(
    *overrides: str,
    items: str | Path | Sequence[str | Path] = (),
    inject: bool = False,
    progress: bool = True,
    **settings: Any,
) -> ProbeResult:
    """Tests a judge on answers that are known to be right, or wrong in a known way.

    `items` are files of JSON lines `{question_id, kind, answer}` about the questions of `dataset`;
    by default, the items that ship with memeval, about `dataset=demo`. `inject` also attacks the
    judge with instructions to accept wrong answers. Raises `UserError` for files that don't fit.
    """
    if isinstance(items, str | Path):
        items = [items]

    words = [*overrides, *as_overrides(settings)]
    work = partial(probe, words, list(map(str, items)), inject=inject, progress=progress)
    return in_thread(work)


def probe(
    overrides: Sequence[str], files: Sequence[str], *, inject: bool, progress: bool = True
) -> ProbeResult:
    """`judge_probe`, in this thread; `KIND=FILE` sets the kind of a file's rows."""
    from memeval.calibration.probe import probe_judge
    from memeval.pipeline.open.opening import open_cell
    from memeval.runs.display.progress import RunDisplay
    from memeval.runs.job import check_writable
    from memeval.runs.loop import run_loop
    from memeval.runs.spending import refuse_limits

    chosen = _chosen_items(files)
    config = _compose(overrides)
    if not files and config.dataset["name"] != SHIPPED:
        raise UserError(
            f"the shipped items are about dataset={SHIPPED}, not dataset={config.dataset['name']}",
            "to use your own items:  --items FILE",
        )

    check_writable()
    cell = open_cell(config, "")
    refuse_limits(cell, "judge probe")
    with RunDisplay(f"probe {cell.config.judge.name}", quiet=not progress) as shown:
        return run_loop(probe_judge(cell, chosen, shown, inject=inject))


@check_types
def calibrate(run: Run | str | Path, labels: str | Path, *, partial: bool = False) -> Calibration:
    """A run's accuracy, corrected for the judge's errors with a person's labels, and written to the
    run folder. Reports and comparisons then show it.

    `labels` is what `memeval label` wrote for this run, or labels of other answers with the judge's
    verdicts. `partial` accepts a file with unlabelled rows. Raises `UserError` for a file that does
    not fit, `StorageError` if the run folder can't be written.
    """
    from memeval.calibration.correcting import calibrate_run

    finished, known = select_run(run, "calibrate")
    calibration = calibrate_run(finished, Path(labels), known, partial=partial)
    with writing(finished.folder):
        calibration.write(finished.folder)

    return calibration


def _compose(words: Sequence[str], *, reads: bool = False) -> RunConfig:
    """The config of a command without a system, but a reader if `reads`. Raises `UserError`."""
    from memeval.runs.compose.config import compose_config

    unused = ("system",) if reads else ("system", *OF_MEMORIES)
    for word in words:
        if re.split("[=.]", word.lstrip("+"))[0] in unused:
            raise UserError(f"{one_line(word, 60)} has no effect: no system is run", "leave it out")

    with composing():
        return compose_config(words)


def _judge_in_file(
    config: RunConfig, hypotheses: Hypotheses, judged_by: str | None
) -> RecordedJudge | None:
    """The judge of the file's recorded verdicts, under `judge=recorded`; otherwise None.

    Raises `UserError` if the file records no verdict of that judge, and for `judged_by` under
    another judge.
    """
    from memeval.pipeline.execute.imported_verdicts import recorded_judge
    from memeval.results.judge import RECORDED

    if config.judge.name == RECORDED:
        return recorded_judge(hypotheses, judged_by)
    if judged_by is not None:
        raise UserError(f"recorded verdicts of '{one_line(judged_by)}' need judge=recorded")

    return None


def _system_of_file(
    file: str, hypotheses: Hypotheses, judge_of_file: RecordedJudge | None, *, only_listed: bool
) -> dict[str, Any]:
    """The system of the run, part of its key: the file, and the part of it that is used."""
    from memeval.pipeline.open.system_source import IMPORTED

    system: dict[str, Any] = {"name": IMPORTED, "file": file, "sha256": hypotheses.sha256}
    if only_listed:
        system["only_listed"] = True
    if judge_of_file is not None:
        system["judged_by"] = judge_of_file.judged_by

    return system


def _known_questions(config: RunConfig) -> frozenset[str]:
    """The ids of all questions of the data set, including those that are not asked."""
    from memeval.pipeline.open.opening import open_dataset

    ids: set[str] = set()
    for case in open_dataset(config).read():
        ids.update(question.question_id for question in case.questions)

    return frozenset(ids)


def _chosen_items(words: Sequence[str]) -> list[ProbeItem]:
    from memeval.calibration.items import read_items

    if not words:
        return read_items(shipped_path(ITEMS_FILE))

    items = []
    for word in words:
        kind, equals, file = word.partition("=")
        # A file's name may contain `=`.
        if equals and file and not Path(word).exists():
            items += read_items(Path(file), kind)
        else:
            items += read_items(Path(word))

    return items
