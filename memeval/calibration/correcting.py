"""Corrects a run's accuracy for its judge's errors, with labels."""

from collections.abc import Sequence
from pathlib import Path

from memeval.calibration.label_file import read_labels
from memeval.calibration.other_labels import by_other_labels, with_verdicts
from memeval.calibration.own_labels import by_own_labels
from memeval.calibration.scored import JudgedAnswer, scored_answers, verdicts_of, weights_of
from memeval.errors import UserError
from memeval.results import RECORDS_FILE
from memeval.results.calibration import RANGE, Calibration
from memeval.results.files import file_digest
from memeval.results.run import Run
from memeval.statistics.clusters import weighted_mean
from memeval.text.shown import counted, in_shell, one_line


def calibrate_run(
    run: Run, path: Path, known: Sequence[Run], *, partial: bool = False
) -> Calibration:
    """The accuracy of a run, corrected by a file of labels; shares are clipped to [0, 1].

    Labels of the run's own answers give PPI++, labels of other answers a range over kinds of wrong
    answer. `known` contains the runs that rows may refer to; `partial` accepts a file with
    unlabelled rows. Raises `UserError` for a file that does not fit, with a line per row.
    """
    answers = scored_answers(run)
    rows = read_labels(path)
    labelled = [row for row in rows if row.label is not None]
    _check_labelled(run, path, len(rows), len(labelled), partial=partial)

    run_labels = [row for row in labelled if row.run == run.key]
    if run_labels and len(run_labels) < len(labelled):
        raise UserError(
            f"{one_line(path)} mixes labels of run {one_line(run.key)} with labels of other "
            "answers",
            "put them into two files, and calibrate by one at a time",
        )

    uncorrected = _uncorrected(run, path, answers, len(rows) - len(labelled))
    if run_labels:
        return by_own_labels(uncorrected, path, answers, run_labels)

    others = with_verdicts(run, path, labelled, known)
    return by_other_labels(uncorrected, path, answers, others)


def _check_labelled(run: Run, path: Path, rows: int, labelled: int, *, partial: bool) -> None:
    command = f"python -m memeval label {run.key} --terminal --output {in_shell(path)}"
    if not labelled:
        raise UserError(
            f"{one_line(path)} has no labels yet, for {counted(rows, 'row')}",
            f"label them:  {command}",
        )

    if labelled < rows and not partial:
        raise UserError(
            f"{one_line(path)} is half done: {rows - labelled:,} of {rows:,} rows have no label",
            f"label the rest:  {command}",
            "or use the existing labels, which every table mentions:  --partial",
        )


def _uncorrected(
    run: Run, path: Path, answers: Sequence[JudgedAnswer], rows_without_label: int
) -> Calibration:
    return Calibration(
        run_key=run.key,
        records=file_digest(run.folder / RECORDS_FILE),
        method=RANGE,
        raw=weighted_mean(verdicts_of(answers), weights_of(answers)),
        accuracy=None,
        low=None,
        high=None,
        labels=0,
        rows_without_label=rows_without_label,
        file=path.name,
        sha256=file_digest(path),
    )
