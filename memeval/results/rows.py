"""The rows that the stages write, question by question.

They contain no metrics: these are computed from rows.

`from_json` is the only reader of each kind and raises `ValueError` naming the invalid member;
`to_json` is the only writer.
"""

from array import array
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Self

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from memeval.records import Count, Finite, IngestHealth, OperationKind, Status, Usage
from memeval.results.fields import Json, Number, as_plain, read_as
from memeval.results.steps import AgentStep, by_reference

INGEST_PREFIX = "ingest "
"""Prefix of the ids of ingest rows."""
Ranking = Sequence[Count | tuple[Count, ...]]
"""For each chunk, the position of its turn in the case, counted from 0, or a tuple of positions if
it does not cover exactly one turn.
"""


def _no_usage() -> tuple[Usage, ...]:
    return ()


class StepTimes(Struct, frozen=True, omit_defaults=True):
    """Duration of each step. None if the step did not happen or was not measured. A cached reply
    counts with the time that its original request took.
    """

    answer_ms: Number | None = None
    """Retrieval and model calls, without waiting for a request slot or between retries."""
    retrieval_ms: Number | None = None
    """The system's own work and its requests to an embedder, a reranker or its memory service.

    Without queues, locks and other work of the process.
    """
    model_ms: Number | None = None
    """Total time of the calls of language models, without waits."""
    place_ms: Number | None = None
    """Waiting for a request slot at the endpoint."""
    wait_s: Number | None = None
    """Seconds of waiting between retries of the answer's calls."""
    judge_ms: Number | None = None
    judge_wait_s: Number | None = None
    ingest_ms: Number | None = None
    replies_ms: tuple[Number, ...] = ()
    """Time of each reply in `AnswerRow.steps`, or in a writer's session, in order."""
    tools_ms: tuple[Number | None, ...] = ()
    """Time of each tool call in these replies, in order; None for a call that was not run."""
    ready_ms: Number | None = None
    """From the last chunk until memory is searchable, for systems that index in the background."""

    def numbers(self) -> dict[str, float]:
        """Times by name, except those of single replies and tool calls and those not measured."""
        times: dict[str, Any] = as_plain(self)
        return {name: time for name, time in times.items() if isinstance(time, int | float)}

    def join(self, other: Self) -> Self:
        """These times, completed by those of another row for the steps that this one lacks."""
        # Own times win: the rows of an answer and of its verdict each measured their own steps.
        return type(self)(**{**as_plain(other), **as_plain(self)})


NO_TIMES = StepTimes()


class RetrievedChunk(Struct, frozen=True):
    """One chunk that the reader was shown. Its position in the list is its rank."""

    turn_ids: tuple[str, ...] = ()
    """Turns that the chunk covers; empty if the system can't tell."""
    text: str | None = None
    """Reference to the text as shown, see `memeval.results.texts`; None if it is not kept."""
    score: Finite | None = None
    """Higher is better; comparable only within one question."""
    time: datetime | None = None
    """When it was said, if the system knows."""

    def to_json(self) -> Json:
        """The chunk as JSON; a missing score or time is left out."""
        chunk: Json = {"text": self.text, "turn_ids": list(self.turn_ids)}
        if self.score is not None:
            chunk["score"] = self.score
        if self.time is not None:
            chunk["time"] = self.time.isoformat()

        return chunk


class SentMessage(Struct, frozen=True):
    """One message of the prompt that was sent for an answer."""

    role: str
    text: str
    """Reference to its text."""


class AnswerRow(Struct, frozen=True, omit_defaults=True):
    """The answer to one question, or the reason why it is missing. Its file has the members in this
    order.

    A member that equals its default is left out, unless a factory creates the default.
    """

    id: str
    """The question's id."""
    status: Status
    hypothesis: str | None = None
    """The answer, or the part of it that arrived if the reply was cut or withheld."""
    error: str | None = None
    """Why there is no answer to score."""
    raw: str | None = None
    """The model's whole reply, if the answer is only a part of it."""
    finish_reason: str | None = None
    """End reason of the reply with the answer; None if unknown."""
    context: str | None = None
    """Reference to the context as the reader saw it; None if the system answers without the reader.
    """
    context_tokens: Count | None = None
    retrieved: tuple[RetrievedChunk, ...] | None = None
    """Chunks the reader saw, best first; None if the system can't show them, empty if nothing was
    retrieved.
    """
    ranking: Ranking | None = None
    """The whole ranking, best first; an array if each chunk covers one turn."""
    prompt: tuple[SentMessage, ...] = ()
    """The messages that were sent for the answer; empty offline."""
    steps: tuple[AgentStep, ...] = ()
    """Each reply of the model with its tool calls, under `reader=tools`."""
    step_limit: bool = False
    """Whether the model had to answer because its steps or calls were used up."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    usage: tuple[Usage, ...] = field(default_factory=_no_usage)
    """A usage per call."""
    times: StepTimes = field(default_factory=StepTimes)
    origin: str = field(default_factory=str)
    """Key of the run that paid for it."""
    seen: Mapping[str, tuple[str, ...]] | None = None
    """Which of the values that the question is judged by occur in the memory, by depth: `context`,
    `probe`, `store`. A depth that could not be searched is left out.
    """

    def __post_init__(self) -> None:
        if self.ranking is None or isinstance(self.ranking, array):
            return

        # Four bytes a position: an integer object and the reference to it take forty.
        with suppress(TypeError, OverflowError):
            force_setattr(self, "ranking", array("I", self.ranking))

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Reads a row. Raises `ValueError` naming the invalid member."""
        answer = read_as(row, cls)
        # A sound answer must have its text, and a failed one its reason.
        if answer.status is Status.OK and answer.hypothesis is None:
            raise ValueError("an answer without a hypothesis - at `$.hypothesis`")
        if not answer.status.is_complete and answer.error is None:
            raise ValueError("a failed answer without a reason - at `$.error`")

        return answer

    def to_json(self) -> Json:
        """The row as JSON; members without a value are left out."""
        row = as_plain(self)
        if self.retrieved is not None:
            row["retrieved"] = [chunk.to_json() for chunk in self.retrieved]

        return row


class OperationDone(Struct, frozen=True):
    """Result of an operation on a memory."""

    kind: OperationKind
    items: Count | None
    """Items reported as removed, changed or ingested again; None if unsupported by the system."""
    ms: Number
    vanished: Count | None = None
    """Search results that contained the old value before the operation and no longer appear; None
    if the system can't be searched, or nothing was to be removed.
    """
    usage: tuple[Usage, ...] = ()
    """Its calls, added up by role and model."""
    number: Count | None = None
    """Position among the operations of its case, in order of time. A memory that can't be saved
    repeats the earlier ones at each checkpoint. None in older rows, which have no numbers.
    """


class WrittenSession(Struct, frozen=True, omit_defaults=True):
    """Work of a model on one session, or a part of it, under `writer=tools`."""

    session_id: str
    steps: Count
    """Replies of the model."""
    calls: Count
    writes: Count
    """Calls that changed the memory."""
    faults: Mapping[str, Count] = field(default_factory=dict)
    """Number of faults in calls and replies, by kind."""
    limited: bool = False
    """Whether it ended at a limit."""
    made: tuple[AgentStep, ...] = ()
    """The replies with their calls. A row refers to their texts; a saved memory, which runs share,
    contains them whole.
    """
    times: StepTimes = field(default_factory=StepTimes)
    """Times of the replies and the calls in `made`."""


class Written(Struct, frozen=True, omit_defaults=True):
    """Figures of the content that a model wrote into the memory of a case, under `writer=tools`."""

    steps: Count
    """Replies of the model."""
    calls: Count
    """Tool calls."""
    faults: Count
    """Tool calls that were not run, or failed."""
    writes: Count
    """Tool calls that changed the memory."""
    limited: Count
    """Sessions, or parts of one, that ended at a limit."""
    read_characters: Count
    items: Count | None = None
    """Final number of items that the memory lists, else of its notes; None if neither is known."""
    characters: Count | None = None
    """Total characters of these items."""
    quoted: tuple[str, ...] | None = None
    """The turns that the items quote."""
    sessions: tuple[WrittenSession, ...] = ()
    """Work on each session, in order."""

    def by_reference(self, put: Callable[[str], str]) -> Self:
        """A copy for a row, texts by reference; `put` stores a text and returns its reference."""
        sessions = (
            replace(session, made=by_reference(session.made, put)) for session in self.sessions
        )
        return replace(self, sessions=tuple(sessions))


class StoredItems(Struct, frozen=True):
    """Counts of the items that a memory lists as stored."""

    turns: Count
    """Turns of the conversation that were ingested."""
    items: Count
    repeated: Count
    """Items with the same text as an earlier one, normalised as by `memeval.text.value_search`."""
    without_fact: Count
    """Items without a rare word of the conversation."""
    placed: Count
    """Items that name the turns that they are based on."""
    late: Count
    """Of these, items that are based on a turn in the second half."""


class IngestRow(Struct, frozen=True, omit_defaults=True):
    """Costs of the ingest of one case."""

    id: str
    """`ingest <case id>`."""
    chunks: Count
    """Chunks that were ingested."""
    compressions: Count
    """Number of cuts of the window."""
    health: IngestHealth | None = None
    """Numbers of stored and lost chunks; None if the ingest failed."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    usage: tuple[Usage, ...] = field(default_factory=_no_usage)
    """Added up by role, model and kind: an ingest may make thousands of calls."""
    times: StepTimes = field(default_factory=StepTimes)
    origin: str = field(default_factory=str)
    """Key of the run that paid for it."""
    operations: tuple[OperationDone, ...] = ()
    """Operations on the memory other than the ingest, in order."""
    written: Written | None = None
    """None if the system ingested the chunks itself, without `writer=tools`."""
    stored: StoredItems | None = None
    """Items that the system lists as stored; None if it lists nothing."""

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Reads a row. Raises `ValueError` naming the invalid member."""
        Status(str(row.get("status")))
        ingest = read_as(row, cls)
        check_health(ingest.health)
        return ingest

    def to_json(self) -> Json:
        # Readers of the file expect a status in each row.
        return {"id": self.id, "status": Status.OK.value, **as_plain(self)}


def case_of_ingest(row_id: str, unasked: Mapping[str, Container[str]]) -> str | None:
    """The case whose ingest a row describes, whole or up to a checkpoint.

    `unasked` has the run's cases, each with the checkpoints after which it asked nothing. The
    result is None for these checkpoints, and for all other cases.
    """
    name = row_id.removeprefix(INGEST_PREFIX)
    if name in unasked:
        return name

    case, _, checkpoint = name.rpartition("@")
    return case if case in unasked and checkpoint not in unasked[case] else None


def check_health(health: IngestHealth | None) -> None:
    """Raises `ValueError` if more chunks were lost than ingested."""
    if health is not None and health.lost > health.asked:
        raise ValueError("more chunks were lost than asked - at `$.health.lost`")


def answer_or_ingest(row: Mapping[str, Any]) -> AnswerRow | IngestRow:
    """Reads a row of a file of answers, which also contains the ingest rows of its cases."""
    if "chunks" in row and str(row.get("id")).startswith(INGEST_PREFIX):
        return IngestRow.from_json(row)

    return AnswerRow.from_json(row)
