"""A record: one question of one repeat, with its answer, its verdict, its gold and its metrics.

Users read them in `records.jsonl`.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
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

_IF_PRESENT: Mapping[str, tuple[str, ...]] = {
    "choices": ("choice_labels", "right_choices", "chosen"),
    "prompt": (),
    "steps": ("step_limit",),
    "timeline": (),
    "asked_at": (),
    "context": (),
    "finish_reason": (),
    "raw": (),
    "notes": (),
    "error": (),
}
"""The members that only lines with a value have, in order, each with those that accompany it."""
_CONDITIONAL = {*_IF_PRESENT, *chain.from_iterable(_IF_PRESENT.values())}


class TimelineEvent(Struct, frozen=True, omit_defaults=True):
    """One event in the timeline of a case."""

    kind: str
    """`session`, `forget`, `correct`, `consolidate`, `reingest`, or `asked` for the question."""
    text: str
    """For people: a session and its time, or the words of a request."""
    done: str = ""
    """Effect of an operation; empty if there is nothing to report."""


class Record(Struct, frozen=True):
    """One question of one repeat. Only the question's id is required.

    Its line has the members in this order, after them those of `_IF_PRESENT`.
    """

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
    weight: Weight = 1.0
    """Number of questions of its category that it represents in a sample."""
    answerable: bool = True
    asked_at: datetime | None = None
    """Time of the question, if the data set has one."""
    facets: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    """Ids of the turns that contain the answer."""
    hypothesis: str | None = None
    status: Status = Status.OK
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
    does not report them.
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
        members = as_plain(self)
        members["verdict"] = verdict_json(self.verdict) if self.verdict else None
        members["retrieved"] = _retrieved_json(self.retrieved)
        members["chosen"] = self.chosen
        members["asked_at"] = self.asked_at and self.asked_at.isoformat()
        names = [name for name in members if name not in _CONDITIONAL]
        for name, others in _IF_PRESENT.items():
            if members[name] not in (None, (), {}):
                names += [name, *others]

        record: Json = {}
        for name in names:
            value = members[name]
            record[name] = list(value) if isinstance(value, tuple) else value

        if self.weight == 1.0:
            del record["weight"]

        return record


def _retrieved_json(chunks: tuple[RetrievedChunk, ...] | None) -> list[Json] | None:
    if chunks is None:
        return None

    return [chunk.to_json() for chunk in chunks]


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
