"""The row of one judged answer, and the verdict in it."""

from collections.abc import Mapping
from typing import Any, Self

from msgspec import Struct, field

from memeval.records import Label, Status, Usage, Verdict
from memeval.results.fields import Json, as_plain, read_as
from memeval.results.rows import StepTimes, _no_usage


class VerdictRow(Struct, frozen=True, omit_defaults=True):
    """The verdict on an answer, or why it is missing. Its file has the members in this order."""

    id: str
    """The question's id."""
    status: Status
    verdict: Verdict | None = None
    error: str | None = None
    judged: str | None = None
    """Digest of the answer that was judged."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    usage: tuple[Usage, ...] = field(default_factory=_no_usage)
    """A usage per call."""
    times: StepTimes = field(default_factory=StepTimes)
    origin: str = field(default_factory=str)
    """Key of the run that paid for it."""

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Reads a row. Raises `ValueError` naming the invalid member."""
        read = read_as(row, cls)
        if read.status not in (Status.OK, Status.UNPARSED):
            if read.error is None:
                raise ValueError("a failed verdict without a reason - at `$.error`")

            return read

        # If the status contradicts the verdict, the row was edited or damaged: no figure may use
        # it.
        is_unscored = read.verdict is not None and read.verdict.label is Label.UNSCORED
        if read.verdict is None or is_unscored != (read.status is Status.UNPARSED):
            raise ValueError("the verdict does not fit its status - at `$.verdict`")

        return read

    def to_json(self) -> Json:
        """The row as JSON; members without a value are left out."""
        row = as_plain(self)
        if self.verdict is not None:
            row["verdict"] = verdict_json(self.verdict)

        return row

    @property
    def tries(self) -> int:
        """Unreadable judge replies, if they left the answer unscored: the next pass gets others. 0
        for all other rows: an unreadable choice is the system's own answer and stays as it is.
        """
        if self.status is not Status.UNPARSED or self.verdict is None:
            return 0

        return self.verdict.tries


def verdict_json(verdict: Verdict) -> Json:
    """A verdict as JSON; members without a value are left out."""
    row: Json = {
        "judge": verdict.judge,
        "label": verdict.label.value,
        "score": verdict.score,
        "reason": verdict.reason,
    }
    if verdict.chosen is not None:
        row["chosen"] = list(verdict.chosen)
    if verdict.votes:
        row["votes"] = [label.value for label in verdict.votes]
    if verdict.tries:
        row["tries"] = verdict.tries
    if verdict.graded:
        row["graded"] = True
    if verdict.parts:
        row["parts"] = {name: list(values) for name, values in verdict.parts.items()}

    return row
