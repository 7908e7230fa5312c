"""The rows that the stages leave on disk, question by question.

They hold no metrics: these are computed from rows.

`from_json` is the one reader of each kind and raises `ValueError` naming the invalid member;
`to_json` is the one writer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memeval.records import Count, Finite, IngestHealth, OperationKind, Status, Usage
from memeval.results.fields import Json, Number, as_plain, read_as
from memeval.results.steps import AgentStep, by_reference

INGEST_PREFIX = "ingest "
"""Beginning of the ids of rows with what an ingest took."""
Ranking = tuple[Count | tuple[Count, ...], ...]


def _no_usage() -> tuple[Usage, ...]:
    return ()


class StepTimes(Struct, frozen=True, omit_defaults=True):
    """How long each step took.

    None if the step did not happen or was not measured. A reply from the cache counts with the time
    that it took when it was paid for.
    """

    answer_ms: Number | None = None
    """The retrieval and the model's calls, without waits for a place at the endpoint and between
    retries.
    """
    retrieval_ms: Number | None = None
    """The system's own work and its requests to an embedder, a reranker or its memory service.

    Without queues, locks and other work of the process.
    """
    model_ms: Number | None = None
    """In calls of language models, one after the other, without waits."""
    place_ms: Number | None = None
    """Waiting for a place at the endpoint."""
    wait_s: Number | None = None
    """Seconds of waits between retries of the answer's calls."""
    judge_ms: Number | None = None
    judge_wait_s: Number | None = None
    ingest_ms: Number | None = None
    replies_ms: tuple[Number, ...] = ()
    """Of each reply in `AnswerRow.steps`, or of a writer's session, in order."""
    tools_ms: tuple[Number | None, ...] = ()
    """Of each tool call of these, in order; None for a call that was not run."""
    ready_ms: Number | None = None
    """From the last chunk until the memory could be searched, for systems that index in the
    background.
    """

    def numbers(self) -> dict[str, float]:
        """The times of steps that every answer has, by name, without those not measured."""
        times: dict[str, Any] = as_plain(self)
        return {name: time for name, time in times.items() if isinstance(time, int | float)}

    def join(self, other: StepTimes) -> StepTimes:
        """These times, and those of another row for the steps that this one lacks."""
        # These win: of an answer's row and its verdict's, each measured its own steps.
        return StepTimes(**{**as_plain(other), **as_plain(self)})


NO_TIMES = StepTimes()


class RetrievedChunk(Struct, frozen=True):
    """One chunk that the reader was shown. Its position in the list is its rank."""

    turn_ids: tuple[str, ...] = ()
    """Turns that the chunk covers; empty if the system can't tell."""
    text: str | None = None
    """Reference of the text as shown, see `memeval.results.texts`; None if it is not kept."""
    score: Finite | None = None
    """Higher is better; comparable within one question only."""
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
    """Reference of its text."""


class AnswerRow(Struct, frozen=True, omit_defaults=True):
    """The answer to one question, or the reason why it is missing. Its file has the members in this
    order.

    A member with its default is left out, unless its default is made by a function.
    """

    id: str
    """The question's id."""
    status: Status
    hypothesis: str | None = None
    """The answer, or the part of it that arrived if the reply was cut or withheld."""
    error: str | None = None
    """Why there is no answer to score."""
    raw: str | None = None
    """The model's whole reply if the answer is less of it."""
    finish_reason: str | None = None
    """How the reply behind the answer ended; None if unknown."""
    context: str | None = None
    """Reference of the context as the reader saw it; None if the system answers without the
    reader.
    """
    context_tokens: Count | None = None
    retrieved: tuple[RetrievedChunk, ...] | None = None
    """Chunks the reader saw, best first; None if the system can't show them, empty if nothing was
    retrieved.
    """
    ranking: Ranking | None = None
    """The whole ranking, best first: for each chunk the position of its turn among those of the
    case, from 0, or the positions if it has not one turn.
    """
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
    `probe`, `store`. A depth that could not be looked at is left out.
    """

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> AnswerRow:
        """Reads a row. Raises `ValueError` naming the member that does not fit."""
        answer = read_as(row, cls)
        # A sound answer must have its text, and a failed one its reason.
        if answer.status is Status.OK and answer.hypothesis is None:
            raise ValueError("an answer without a hypothesis - at `$.hypothesis`")
        if answer.status not in (Status.OK, Status.RETRIEVED) and answer.error is None:
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
    """Items that the system says it removed, changed or took in again; None if it can't do it."""
    ms: Number
    vanished: Count | None = None
    """Of the first results for the old value itself, those that gave it before and are gone; None
    if the system can't be searched, or nothing was to be removed.
    """
    usage: tuple[Usage, ...] = ()
    """The calls that it made, added up by role and model."""
    number: Count | None = None
    """Position among the operations of its case, in order of time. A memory that can't be saved
    repeats the earlier ones at each checkpoint. None in rows from before there were numbers.
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
    """Faults of calls and replies, by kind, and how often each occurred."""
    limited: bool = False
    """Whether it ended at a limit."""
    made: tuple[AgentStep, ...] = ()
    """The replies with their calls. Their texts are by reference in a row, and whole in a saved
    memory, which runs share.
    """
    times: StepTimes = field(default_factory=StepTimes)
    """Of the replies and the calls in `made`."""


class Written(Struct, frozen=True, omit_defaults=True):
    """Content that a model wrote into the memory of a case, under `writer=tools`."""

    steps: Count
    """Replies of the model."""
    calls: Count
    """Tool calls."""
    faults: Count
    """Those that were not run, or failed."""
    writes: Count
    """Those that changed the memory."""
    limited: Count
    """Sessions, or parts of one, that ended at a limit."""
    read_characters: Count
    items: Count | None = None
    """Final number of items that the memory lists, else of the notes; None if neither is known."""
    characters: Count | None = None
    """Of these items."""
    quoted: tuple[str, ...] | None = None
    """The turns that the items quote."""
    sessions: tuple[WrittenSession, ...] = ()
    """Work on each session, in order."""

    def by_reference(self, put: Callable[[str], str]) -> Written:
        """With the texts of a saved memory as a row keeps them; `put` stores a text."""
        sessions = (replace(one, made=by_reference(one.made, put)) for one in self.sessions)
        return replace(self, sessions=tuple(sessions))


class StoredItems(Struct, frozen=True):
    """Counts of the items that a memory lists as stored."""

    turns: Count
    """Turns of the conversation that were ingested."""
    items: Count
    repeated: Count
    """Items whose text an earlier one has, normalised as by `memeval.text.given`."""
    without_fact: Count
    """Items without a rare word of the conversation."""
    placed: Count
    """Items that name turns that they rest on."""
    late: Count
    """Those of them that rest on a turn of the second half."""


class IngestRow(Struct, frozen=True, omit_defaults=True):
    """Costs of the ingest of one case."""

    id: str
    """`ingest <case id>`."""
    chunks: Count
    """Chunks that were ingested."""
    compressions: Count
    """How often the window was cut."""
    health: IngestHealth | None = None
    """How many chunks were stored or lost; None if the ingest failed."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    usage: tuple[Usage, ...] = field(default_factory=_no_usage)
    """Added up by role, model and kind: an ingest may make thousands of calls."""
    times: StepTimes = field(default_factory=StepTimes)
    origin: str = field(default_factory=str)
    """Key of the run that paid for it."""
    operations: tuple[OperationDone, ...] = ()
    """Operations on the memory other than the ingest, in order."""
    written: Written | None = None
    """None if the system was given the chunks."""
    stored: StoredItems | None = None
    """Items that the system lists as stored; None if it lists nothing."""

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> IngestRow:
        """Reads a row. Raises `ValueError` naming the member that does not fit."""
        Status(str(row.get("status")))
        ingest = read_as(row, cls)
        check_health(ingest.health)
        return ingest

    def to_json(self) -> Json:
        """The row as JSON."""
        # Readers of the file expect a status in each row.
        return {"id": self.id, "status": Status.OK.value, **as_plain(self)}


def case_of_ingest(row_id: str, cases: Container[str]) -> str | None:
    """Which of the cases a row tells the ingest of, whole or until a checkpoint; None for none."""
    name = row_id.removeprefix(INGEST_PREFIX)
    for case in (name, name.rpartition("@")[0]):
        if case in cases:
            return case

    return None


def check_health(health: IngestHealth | None) -> None:
    """Raises `ValueError` if more chunks were lost than there were."""
    if health is not None and health.lost > health.asked:
        raise ValueError("more chunks were lost than asked - at `$.health.lost`")


def answer_or_ingest(row: Mapping[str, Any]) -> AnswerRow | IngestRow:
    """Reads a row of a file of answers, which holds the ingests of its cases, too."""
    if "chunks" in row and str(row.get("id")).startswith(INGEST_PREFIX):
        return IngestRow.from_json(row)

    return AnswerRow.from_json(row)
