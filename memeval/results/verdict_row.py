"""The row of one judged answer, and the verdict in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memeval.records import Label, Status, Usage, Verdict
from memeval.results.fields import Fields, Json, is_number, usage_json
from memeval.results.rows import NO_TIMES, StepTimes


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """The verdict on one answer, or why there is none."""

    id: str
    """The question's id."""
    status: Status
    judged: str | None = None
    """Digest of the answer that was judged."""
    origin: str = ""
    """Key of the run that paid for it."""
    verdict: Verdict | None = None
    error: str | None = None
    usage: tuple[Usage, ...] = ()
    """A usage per call."""
    times: StepTimes = NO_TIMES
    notes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> VerdictRow:
        """Reads a row. Raises `ValueError` naming the field that does not fit."""
        members = Fields(row)
        status = members.choice("status", Status)
        scored = status in (Status.OK, Status.UNPARSED)
        verdict = verdict_from(members) if scored else None
        # A status and a verdict that contradict each other were edited, or damaged: no figure may
        # rest on either.
        if scored and (
            verdict is None or (verdict.label is Label.UNSCORED) != (status is Status.UNPARSED)
        ):
            raise members.wrong("verdict")

        return cls(
            id=members.string("id"),
            status=status,
            judged=members.string_or_none("judged"),
            origin=members.string_or_none("origin") or "",
            verdict=verdict,
            error=members.string_or_none("error") if scored else members.string("error"),
            usage=members.usages("usage"),
            times=StepTimes.from_json(members),
            notes=members.mapping("notes"),
        )

    def to_json(self) -> Json:
        """The row as JSON; members without a value are left out."""
        row: Json = {"id": self.id, "status": self.status.value}
        if self.verdict is not None:
            row["verdict"] = verdict_json(self.verdict)
        if self.error is not None:
            row["error"] = self.error
        if self.judged is not None:
            row["judged"] = self.judged
        if self.notes:
            row["notes"] = dict(self.notes)

        return row | {
            "usage": list(map(usage_json, self.usage)),
            "times": self.times.to_json(),
            "origin": self.origin,
        }

    @property
    def tries(self) -> int:
        """Replies that could not be read, where the answer is unscored for it: the next pass asks
        for others.

        0 for all other rows: a choice that can't be read is what the system answered, and stays so.
        """
        if self.status is not Status.UNPARSED or self.verdict is None:
            return 0

        return self.verdict.tries


def verdict_from(row: Fields) -> Verdict | None:
    """The member `verdict` of a row or a record; None if it is absent."""
    members = row.member("verdict")
    if members is None:
        return None

    return Verdict(
        judge=members.string("judge"),
        label=members.choice("label", Label),
        score=members.number_or_none("score"),
        reason=members.string_or_none("reason") or "",
        chosen=members.counts("chosen"),
        votes=tuple(_vote(vote, members) for vote in members.strings("votes")),
        tries=members.count("tries", 0),
        graded=members.boolean("graded"),
        parts=_parts(members),
    )


def _parts(row: Fields) -> dict[str, tuple[float, ...]]:
    """The member `parts`: lists of numbers by name; empty if it is missing."""
    parts = row.mapping("parts")
    for values in parts.values():
        if not isinstance(values, list) or not all(map(is_number, values)):
            raise row.wrong("parts")

    return {name: tuple(map(float, values)) for name, values in parts.items()}


def _vote(vote: str, row: Fields) -> Label:
    try:
        return Label(vote)
    except ValueError as error:
        raise row.wrong("votes") from error


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
