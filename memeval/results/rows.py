"""The rows that the stages leave on disk: what happened, question by question.

Metrics are not among it: they are made from rows.

`from_json` is the one reader of each kind and raises `ValueError` naming the field that does not
fit; `to_json` is the one writer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from memeval.records import IngestHealth, Status, Usage
from memeval.results.fields import Fields, Json, usage_json
from memeval.results.retrieved import RetrievedChunk, ranking_from, retrieved_from, short_positions

INGEST_PREFIX = "ingest "
"""Beginning of the ids of rows with what an ingest took."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """How long each step took.

    None if the step did not happen or was not measured. A reply from the cache counts with the time
    that it took when it was paid for.
    """

    answer_ms: float | None = None
    """The retrieval and the model's calls, without waits for a place at the endpoint and between
    retries.
    """
    retrieval_ms: float | None = None
    """The system's own work and its requests to an embedder, a reranker or its memory service.

    Without queues, locks and whatever else the process does meanwhile.
    """
    model_ms: float | None = None
    """In calls of language models, one after the other, without waits."""
    place_ms: float | None = None
    """Waiting for a place at the endpoint."""
    wait_s: float | None = None
    """Seconds of waits between retries of the answer's calls."""
    judge_ms: float | None = None
    judge_wait_s: float | None = None
    ingest_ms: float | None = None
    ready_ms: float | None = None
    """From the last chunk until the memory could be searched, for systems that index in the
    background.
    """

    @classmethod
    def from_json(cls, row: Fields) -> StepTimes:
        """The times of a row; a member that this version does not know is ignored."""
        times = row.numbers("times")
        return cls(**{name: times[name] for name in _TIMES if name in times})

    def to_json(self) -> Json:
        """The times that were taken."""
        return {name: value for name in _TIMES if (value := getattr(self, name)) is not None}

    def join(self, other: StepTimes) -> StepTimes:
        """These times, and those of another row for the steps that this one lacks."""
        # These win: of an answer's row and its verdict's, each measured its own steps.
        return StepTimes(**{**other.to_json(), **self.to_json()})


_TIMES = tuple(field.name for field in fields(StepTimes))
NO_TIMES = StepTimes()


@dataclass(frozen=True, slots=True)
class SentMessage:
    """One message of the prompt that was sent for an answer."""

    role: str
    text: str
    """Reference of its text."""

    @classmethod
    def from_json(cls, message: Fields) -> SentMessage:
        return cls(role=message.string("role"), text=message.string("text"))

    def to_json(self) -> Json:
        return {"role": self.role, "text": self.text}


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """The answer to one question, or why there is none."""

    id: str
    """The question's id."""
    status: Status
    origin: str = ""
    """Key of the run that paid for it."""
    hypothesis: str | None = None
    """The answer, or the part of it that arrived if the reply was cut or withheld."""
    error: str | None = None
    """Why there is not an answer to score."""
    raw: str | None = None
    """The model's whole reply where the answer is less of it."""
    finish_reason: str | None = None
    """How the reply that the answer rests on ended; None if nobody said."""
    retrieved: tuple[RetrievedChunk, ...] | None = None
    """What the reader was shown, best first; None if the system can't show it."""
    ranking: tuple[tuple[int, ...], ...] | None = None
    """The whole ranking, best first: for each chunk the positions of its turns among those of the
    case, from 0.
    """
    context: str | None = None
    """Reference of the context as the reader saw it; None if the system answers without the
    reader.
    """
    prompt: tuple[SentMessage, ...] = ()
    """The messages that were sent for the answer; empty offline, where none are."""
    context_tokens: int | None = None
    usage: tuple[Usage, ...] = ()
    """A usage per call."""
    times: StepTimes = NO_TIMES
    notes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> AnswerRow:
        """Reads a row. Raises `ValueError` naming the field that does not fit."""
        members = Fields(row)
        status = members.choice("status", Status)
        answered = status is Status.OK
        has_failed = status not in (Status.OK, Status.RETRIEVED)
        return cls(
            id=members.string("id"),
            status=status,
            origin=members.string_or_none("origin") or "",
            # A sound answer must have its text, and a failed one its reason.
            hypothesis=members.string("hypothesis")
            if answered
            else members.string_or_none("hypothesis"),
            error=members.string("error") if has_failed else members.string_or_none("error"),
            raw=members.string_or_none("raw"),
            finish_reason=members.string_or_none("finish_reason"),
            retrieved=retrieved_from(members),
            ranking=ranking_from(members),
            context=members.string_or_none("context"),
            prompt=tuple(map(SentMessage.from_json, members.items("prompt"))),
            context_tokens=members.count_or_none("context_tokens"),
            usage=members.usages("usage"),
            times=StepTimes.from_json(members),
            notes=members.mapping("notes"),
        )

    def to_json(self) -> Json:
        """The row as JSON; members without a value are left out."""
        row: Json = {
            "id": self.id,
            "status": self.status.value,
            "hypothesis": self.hypothesis,
            "error": self.error,
            "raw": self.raw,
            "finish_reason": self.finish_reason,
            "context": self.context,
            "context_tokens": self.context_tokens,
        }
        row = {name: value for name, value in row.items() if value is not None}
        # An empty list is kept: nothing was retrieved, which is not the same as not known.
        if self.retrieved is not None:
            row["retrieved"] = [chunk.to_json() for chunk in self.retrieved]
        if self.ranking is not None:
            row["ranking"] = [short_positions(positions) for positions in self.ranking]
        if self.prompt:
            row["prompt"] = [message.to_json() for message in self.prompt]
        if self.notes:
            row["notes"] = dict(self.notes)

        row["usage"] = list(map(usage_json, self.usage))
        row["times"] = self.times.to_json()
        row["origin"] = self.origin
        return row


@dataclass(frozen=True, slots=True)
class IngestRow:
    """What the ingest of one case took."""

    id: str
    """`ingest <case id>`."""
    chunks: int
    """Chunks that were ingested."""
    compressions: int
    """How often the window was cut."""
    origin: str = ""
    """Key of the run that paid for it."""
    health: IngestHealth | None = None
    """What became of the chunks; None if the system does not say."""
    usage: tuple[Usage, ...] = ()
    """Added up by role, model and kind: an ingest may make thousands of calls."""
    times: StepTimes = NO_TIMES
    notes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> IngestRow:
        """Reads a row. Raises `ValueError` naming the field that does not fit."""
        members = Fields(row)
        members.choice("status", Status)
        health = members.member("health")
        return cls(
            id=members.string("id"),
            chunks=members.count("chunks"),
            compressions=members.count("compressions"),
            origin=members.string_or_none("origin") or "",
            health=health_from(health) if health else None,
            usage=members.usages("usage"),
            times=StepTimes.from_json(members),
            notes=members.mapping("notes"),
        )

    def to_json(self) -> Json:
        """The row as JSON."""
        row: Json = {
            "id": self.id,
            "status": Status.OK.value,
            "chunks": self.chunks,
            "compressions": self.compressions,
        }
        if self.health is not None:
            row["health"] = health_json(self.health)
        if self.notes:
            row["notes"] = dict(self.notes)

        return row | {
            "usage": list(map(usage_json, self.usage)),
            "times": self.times.to_json(),
            "origin": self.origin,
        }


def health_from(members: Fields) -> IngestHealth:
    """Reads what became of an ingest's chunks."""
    health = IngestHealth(
        asked=members.count("asked"), stored=members.count("stored"), lost=members.count("lost")
    )
    if health.lost > health.asked:
        raise members.wrong("lost")

    return health


def health_json(health: IngestHealth) -> Json:
    """What became of an ingest's chunks, as JSON."""
    return {"asked": health.asked, "stored": health.stored, "lost": health.lost}


def answer_or_ingest(row: Mapping[str, Any]) -> AnswerRow | IngestRow:
    """Reads a row of a file of answers, which holds the ingests of its cases, too."""
    if "chunks" in row and str(row.get("id")).startswith(INGEST_PREFIX):
        return IngestRow.from_json(row)

    return AnswerRow.from_json(row)
