"""A record: one question of one repeat, with its answer, its verdict, its gold and its metrics.

Users read them in `records.jsonl`.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memeval.records import CategoryId, ChoiceLabels, Count, Label, Status, Usage, Verdict
from memeval.results.fields import Json, Number, Rank, Weight, as_plain, decode_as
from memeval.results.rows import NO_TIMES, RetrievedChunk, SentMessage, StepTimes
from memeval.results.steps import AgentStep
from memeval.results.verdict_row import verdict_json

RecordRanks = tuple[Rank | None, ...] | None

TIMES = "times"
"""The only member of a record that differs between an interrupted run and an uninterrupted one."""


class TimelineEvent(Struct, frozen=True, omit_defaults=True):
    """One event in the timeline of a case."""

    kind: str
    """`session`, `forget`, `correct`, `consolidate`, `reingest`, or `asked` for the question."""
    text: str
    """For people: a session and its time, or the words of a request."""
    done: str = ""
    """Effect of an operation; empty if there is nothing to report."""


class Record(Struct, frozen=True):
    """One question of one repeat. Only the question's id is required."""

    question_id: str
    case_id: str = ""
    category: CategoryId = ""
    """The id as the data set stores it."""
    category_name: str = ""
    repeat: Count = 0
    """Counted from 0."""
    seed: int = 0
    question: str = ""
    gold: tuple[str, ...] = ()
    answerable: bool = True
    status: Status = Status.OK
    asked_at: datetime | None = None
    """When the question is asked, if the data set says."""
    facets: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    """Ids of the turns that contain the answer."""
    hypothesis: str | None = None
    verdict: Verdict | None = None
    metrics: Mapping[str, Number | None] = field(default_factory=dict)
    """Metrics by name, computed from the answer, the memory and the gold. Those of the evidence
    ranks are not stored here.
    """
    retrieved: tuple[RetrievedChunk, ...] | None = None
    evidence_ranks: RecordRanks = None
    """For each piece of evidence, the rank of the first chunk that covers it, or None if no chunk
    does; None if there is no ranking.
    """
    session_evidence_ranks: RecordRanks = None
    shown_evidence_ranks: RecordRanks = None
    """Like `evidence_ranks`, but among the chunks that the reader was shown; None if the system
    does not say which.
    """
    shown_session_ranks: RecordRanks = None
    top_k: Count | None = None
    """Maximum number of chunks shown to the reader; None without `shown_evidence_ranks`."""
    context: str | None = None
    """Reference to the context as the reader saw it."""
    prompt: tuple[SentMessage, ...] = ()
    context_tokens: Count | None = None
    usage: tuple[Usage, ...] = ()
    """One usage per call of the answer and of the judge; calls that another run paid for are marked
    `cached`.
    """
    times: StepTimes = NO_TIMES
    finish_reason: str | None = None
    choices: tuple[str, ...] = ()
    choice_labels: ChoiceLabels = ChoiceLabels.DIGITS
    right_choices: tuple[Count, ...] = ()
    raw: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    weight: Weight = 1.0
    """In a sample, how many questions of its category it represents."""
    steps: tuple[AgentStep, ...] = ()
    """Each reply of the model with its tool calls, under `reader=tools`."""
    step_limit: bool = False
    """Whether the model had to answer because its steps or calls were used up."""
    timeline: tuple[TimelineEvent, ...] = ()
    """Events of the memory and the time of the question, for a case with a timeline."""

    @property
    def chosen(self) -> tuple[int, ...] | None:
        """Positions of the choices that the reply named; None if it could not be read."""
        return None if self.verdict is None else self.verdict.chosen

    @property
    def is_whole(self) -> bool:
        """Whether there is an answer that was neither cut nor partly withheld."""
        cut_or_withheld = self.status in (Status.ANSWER_CUT, Status.ANSWER_FILTERED)
        return self.hypothesis is not None and not cut_or_withheld

    @property
    def score(self) -> float | None:
        """The verdict's `credit`; None if the answer could not be scored."""
        if self.status is not Status.OK or self.verdict is None:
            return None

        return self.verdict.credit

    @property
    def is_right(self) -> bool | None:
        """Whether the verdict's label is `correct`; None if the answer could not be scored."""
        if self.score is None or self.verdict is None:
            return None

        return self.verdict.label is Label.CORRECT

    @property
    def tries(self) -> int:
        """Unreadable replies of the judge's model, if they left the answer unscored; else 0."""
        if self.status is not Status.UNPARSED or self.verdict is None:
            return 0

        return self.verdict.tries

    def to_json(self) -> Json:
        """The record as a line of `records.jsonl`."""
        record: Json = {
            "question_id": self.question_id,
            "case_id": self.case_id,
            "category": self.category,
            "category_name": self.category_name,
            "repeat": self.repeat,
            "seed": self.seed,
            "question": self.question,
            "gold": list(self.gold),
            "weight": self.weight,
            "answerable": self.answerable,
            "facets": dict(self.facets),
            "evidence": list(self.evidence),
            "hypothesis": self.hypothesis,
            "status": self.status.value,
            "verdict": verdict_json(self.verdict) if self.verdict else None,
            "metrics": dict(self.metrics),
            "retrieved": _retrieved_json(self.retrieved),
            "evidence_ranks": _list_or_none(self.evidence_ranks),
            "session_evidence_ranks": _list_or_none(self.session_evidence_ranks),
            "shown_evidence_ranks": _list_or_none(self.shown_evidence_ranks),
            "shown_session_ranks": _list_or_none(self.shown_session_ranks),
            "top_k": self.top_k,
            "context_tokens": self.context_tokens,
            "usage": list(map(as_plain, self.usage)),
            TIMES: as_plain(self.times),
            **self._present_members(),
        }
        if self.weight == 1.0:
            del record["weight"]

        return record

    def _present_members(self) -> Json:
        """The members that only lines with a value have."""
        members: Json = {}
        if self.choices:
            members["choices"] = list(self.choices)
            members["choice_labels"] = self.choice_labels.value
            members["right_choices"] = list(self.right_choices)
            members["chosen"] = _list_or_none(self.chosen)
        if self.prompt:
            members["prompt"] = list(map(as_plain, self.prompt))
        if self.steps:
            members["steps"] = list(map(as_plain, self.steps))
            members["step_limit"] = self.step_limit
        if self.timeline:
            members["timeline"] = list(map(as_plain, self.timeline))
        if self.asked_at:
            members["asked_at"] = self.asked_at.isoformat()

        for name in ("context", "finish_reason", "raw"):
            if getattr(self, name) is not None:
                members[name] = getattr(self, name)

        if self.notes:
            members["notes"] = dict(self.notes)
        if self.error is not None:
            members["error"] = self.error

        return members


def _retrieved_json(chunks: tuple[RetrievedChunk, ...] | None) -> list[Json] | None:
    if chunks is None:
        return None

    return [chunk.to_json() for chunk in chunks]


def _list_or_none(
    values: tuple[int | None, ...] | tuple[int, ...] | None,
) -> list[int | None] | None:
    return None if values is None else list(values)


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file, in its order.

    Raises `OSError` if it can't be read, and `ValueError` naming file and line for a line that
    is not a record.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield decode_as(line, Record)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
