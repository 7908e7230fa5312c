"""Corrects a run's accuracy for its judge's errors, with labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memeval.calibration.label_file import read_labels
from memeval.calibration.other_labels import by_other_labels, with_verdicts
from memeval.calibration.own_labels import by_own_labels
from memeval.calibration.scored import scored_answers, weights_of
from memeval.calibration.source import LabelSource
from memeval.errors import UserError
from memeval.results.calibration import Calibration
from memeval.results.run import Run
from memeval.statistics.clusters import weighted_mean
from memeval.text.shown import one_line


def calibrate_run(
    run: Run, path: Path, known: Sequence[Run], *, partial: bool = False
) -> Calibration:
    """The accuracy of a run, corrected by a file of labels.

    Labels of the run's own answers give PPI++, labels of other answers a range over kinds of wrong
    answer. `known` contains the runs that rows may refer to; `partial` accepts a file with
    unlabelled rows. Raises `UserError` for a file that does not fit, with a line per row.
    """
    answers = scored_answers(run)
    rows = read_labels(path)
    labelled = [row for row in rows if row.label is not None]
    unlabelled = len(rows) - len(labelled)
    if not labelled:
        raise UserError(
            f"{one_line(path)} has no labels yet: its {len(rows):,} rows are unlabelled",
            f"label them:  python -m memeval label {run.key} --terminal --out {one_line(path)}",
        )

    if unlabelled and not partial:
        raise UserError(
            f"{one_line(path)} is half done: {unlabelled:,} of {len(rows):,} rows have no label",
            f"label the rest:  python -m memeval label {run.key} --terminal --out {one_line(path)}",
            "or use the existing labels, which every table mentions:  --partial",
        )

    raw = weighted_mean([float(bool(answer.right)) for answer in answers], weights_of(answers))
    source = LabelSource(run=run, path=path, raw=raw, rows_without_label=unlabelled)
    own = [row for row in labelled if row.run == run.key]
    if own and len(own) < len(labelled):
        raise UserError(
            f"{one_line(path)} mixes labels of run {one_line(run.key)} with labels of other "
            "answers",
            "put them into two files, and calibrate by one at a time",
        )

    if own:
        return by_own_labels(source, answers, own)

    return by_other_labels(source, answers, with_verdicts(run, path, labelled, known))
