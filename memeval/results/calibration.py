"""`calibration.json`, in the run's folder: a run's accuracy, corrected by labels.

The corrected figures are added when a summary is read for display. `run.json` contains only the raw
ones, so that a run stays as measured.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

from msgspec import Meta, Struct

from memeval.records import Count, Finite
from memeval.results.fields import Json, Share, as_plain, read_as
from memeval.results.files import as_json, sealed, unsealed, write_atomically
from memeval.results.note import Note, NoteKind, remarks
from memeval.results.summary import RECORDS_FILE, RunSummary
from memeval.statistics.proportions import wilson_interval
from memeval.text.shown import counted, one_line

CALIBRATION_FILE = "calibration.json"
CORRECTED = "accuracy_corrected"
OLD_NAME = "unlabelled"
"""Name of `rows_without_label` in files of earlier versions."""
LARGEST = 1_000_000
"""Maximum bytes read of a `calibration.json`, which contains only a few figures."""

PPI, LABELS, RANGE = "ppi", "labels", "range"
"""Sources of the correction: labels of some of the run's answers and the verdicts on the rest;
labels of all of them; labels of other answers.
"""
METHODS = {PPI: "PPI++", LABELS: "only the labels", RANGE: "a range over kinds of wrong answer"}


class KindRange(Struct, frozen=True):
    """A run's accuracy if all its wrong answers were of one kind."""

    kind: str
    caught: Count
    """Wrong answers of this kind that the judge called wrong."""
    labels: Count
    """Wrong answers of this kind that were labelled."""
    share: Share | None
    """None if the kind gives no bound: the judge does not distinguish it from right answers, or its
    rates contradict the run's verdicts.
    """
    low: Share
    high: Share


class Calibration(Struct, frozen=True):
    """An accuracy corrected for the judge's errors, and its source."""

    run_key: str
    records: str
    """sha256 of the records that the accuracy was computed from."""
    method: Annotated[str, Meta(pattern="^(ppi|labels|range)$")]
    """`ppi`, `labels` or `range`."""
    raw: Share
    """The accuracy according to the judge."""
    accuracy: Share | None
    """The corrected accuracy; None for a range, which is not a single number."""
    low: Share | None
    high: Share | None
    """Ends of the 95 % interval, or of the range; None if undefined."""
    labels: Count
    """Number of labels used."""
    rows_without_label: Count
    """Rows of the label file that have no label."""
    file: str
    """Name of the label file."""
    sha256: str
    """sha256 of the label file."""
    se: Finite | None = None
    power: Finite | None = None
    """λ of PPI++: weight of the judge's other verdicts, from 0 to 1."""
    groups: Count | None = None
    """Conversations by which the error is clustered; None if answers count as independent."""
    right_kept: Count | None = None
    right_labels: Count | None = None
    """Under a range: of `right_labels` answers labelled right, `right_kept` were judged right."""
    kinds: tuple[KindRange, ...] = ()
    flipped: Count | None = None
    attacks: Count | None = None
    """The judge called wrong answers right in `flipped` of `attacks` attacks."""

    @property
    def flip_rate(self) -> tuple[float, float, float] | None:
        """The share of attacks that flipped a verdict, and its interval; None without attacks."""
        if not self.attacks:
            return None

        flipped = self.flipped or 0
        return (flipped / self.attacks, *wilson_interval(flipped, self.attacks))

    @property
    def note(self) -> Note:
        """The note that names the labels of the corrected accuracy."""
        count = f"{counted(self.labels, 'label')} of {one_line(self.file, 80)}"
        if self.rows_without_label:
            rows, verb = counted(self.rows_without_label, "row"), "have"
            if self.rows_without_label == 1:
                verb = "has"

            count += f" ({rows} {verb} none)"

        where = "of other answers" if self.method == RANGE else "of this run's answers"
        text = f"{METHODS[self.method]}, from {count}, {where}."
        if self.attacks:
            text += (
                f" {self.flipped:,} of {self.attacks:,} attacks on the judge flipped its verdict."
            )

        return Note(NoteKind.CORRECTED, text, self.labels)

    def write(self, folder: Path) -> None:
        """Writes `calibration.json` atomically."""
        content = json.loads(json.dumps(self.to_json()))
        write_atomically(folder / CALIBRATION_FILE, as_json(sealed(content), indent=1) + "\n")

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Reads a calibration. Raises `ValueError` naming the invalid member."""
        old = {OLD_NAME: "rows_without_label"}
        return read_as({old.get(name, name): value for name, value in content.items()}, cls)

    def to_json(self) -> Json:
        return as_plain(self)


def read_calibration(folder: Path) -> Calibration | None:
    """The calibration of a run folder, if any.

    Raises `ValueError` if it is damaged or was edited, `OSError` if it can't be read.
    """
    path = folder / CALIBRATION_FILE
    try:
        with path.open("rb") as file:
            return Calibration.from_json(unsealed(json.loads(file.read(LARGEST))))
    except FileNotFoundError:
        return None
    except RecursionError as error:
        # json raises it for brackets nested too deep: the file is damaged, not the program.
        raise ValueError("nested too deep") from error


def read_shown_summary(folder: Path) -> RunSummary:
    """`run.json` with the corrected accuracy, if there is one, for display only.

    Raises like `RunSummary.read`. A calibration that is damaged or belongs to other records adds a
    note but no figure.
    """
    summary = RunSummary.read(folder)
    try:
        calibration = _calibration_of(summary, folder)
    except ValueError as error:
        return replace(summary, notes=(*summary.notes, *remarks([f"{error}."])))

    if calibration is None:
        return summary

    figures = {
        CORRECTED: calibration.accuracy,
        f"{CORRECTED}_low": calibration.low,
        f"{CORRECTED}_high": calibration.high,
    }
    return replace(
        summary, metrics={**summary.metrics, **figures}, notes=(*summary.notes, calibration.note)
    )


def calibration_problem(summary: RunSummary, folder: Path) -> str | None:
    """The reason why a run's calibration can't be shown; None if it is valid or missing."""
    try:
        _calibration_of(summary, folder)
    except ValueError as error:
        return str(error)

    return None


def _calibration_of(summary: RunSummary, folder: Path) -> Calibration | None:
    """A run's calibration or None. Raises `ValueError` if unreadable or about other records."""
    try:
        calibration = read_calibration(folder)
    except (OSError, ValueError) as error:
        unread = f"{CALIBRATION_FILE} can't be read ({one_line(error)})"
        raise ValueError(f"{unread}: calibrate the run again") from error

    if calibration is None:
        return None

    # By the records' digest: a rejudged run has other verdicts under the same key.
    records = summary.files.get(RECORDS_FILE)
    if (calibration.run_key, calibration.records) != (summary.run_key, records):
        raise ValueError(
            f"{CALIBRATION_FILE} is about earlier records of this run: calibrate it again"
        )

    return calibration
