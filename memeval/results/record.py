"""A record: one question of one repeat, with its answer, its verdict, its gold and its metrics.

What a user reads in `records.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memeval.records import CategoryId, ChoiceLabels, Label, Status, Usage, Verdict
from memeval.results.fields import Fields, Json, usage_json
from memeval.results.retrieved import RetrievedChunk, retrieved_from
from memeval.results.rows import NO_TIMES, SentMessage, StepTimes
from memeval.results.verdict_row import verdict_from, verdict_json

TIMES = "times"
"""The one member of a record that differs between an interrupted run and an uninterrupted one."""


@dataclass(frozen=True, slots=True)
class Record:
    """One question of one repeat."""

    question_id: str
    case_id: str
    category: CategoryId
    """The id as the data set stores it."""
    category_name: str
    repeat: int
    """From 0."""
    seed: int
    question: str
    gold: tuple[str, ...]
    answerable: bool
    status: Status
    asked_at: datetime | None = None
    """When the question is asked, where the data set says."""
    facets: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    """Ids of the turns that hold the answer."""
    hypothesis: str | None = None
    verdict: Verdict | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """Answer and ranking metrics, made from the answer and the gold; empty if there is no
    answer.
    """
    retrieved: tuple[RetrievedChunk, ...] | None = None
    evidence_ranks: tuple[int | None, ...] | None = None
    """For each piece of evidence the rank of the first chunk that covers it, None if no chunk
    does; None without a ranking.
    """
    session_evidence_ranks: tuple[int | None, ...] | None = None
    shown_evidence_ranks: tuple[int | None, ...] | None = None
    """As `evidence_ranks`, among the chunks that the reader was shown; None if the system does not
    say which.
    """
    shown_session_ranks: tuple[int | None, ...] | None = None
    top_k: int | None = None
    """Chunks that the reader may be shown; None without `shown_evidence_ranks`."""
    context: str | None = None
    """Reference of the context as the reader saw it."""
    prompt: tuple[SentMessage, ...] = ()
    context_tokens: int | None = None
    usage: tuple[Usage, ...] = ()
    """A usage per call of the answer and of the judge; calls that another run paid for are marked
    `cached`.
    """
    times: StepTimes = NO_TIMES
    finish_reason: str | None = None
    choices: tuple[str, ...] = ()
    choice_labels: ChoiceLabels = ChoiceLabels.DIGITS
    right_choices: tuple[int, ...] = ()
    raw: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    weight: float = 1.0
    """How many questions of its category it represents, in a sample."""

    @property
    def chosen(self) -> tuple[int, ...] | None:
        """Positions that a reply to a question with choices was read as; None if it could not be
        read.
        """
        return self.verdict.chosen if self.verdict else None

    @property
    def is_whole(self) -> bool:
        """Whether there is an answer that was neither cut nor withheld in part."""
        cut_or_withheld = self.status in (Status.ANSWER_CUT, Status.ANSWER_FILTERED)
        return self.hypothesis is not None and not cut_or_withheld

    @property
    def score(self) -> float | None:
        """1.0 for a right answer, 0.0 for a wrong or abstained one, what a graded verdict gives;
        None if it could not be scored.
        """
        scored = self.status is Status.OK and self.verdict is not None
        if not scored or self.verdict is None or self.verdict.label is Label.UNSCORED:
            return None

        if self.verdict.graded:
            return self.verdict.score

        # By the label, not by the score: a score of 0.7 is not seven tenths of a right answer
        # unless the protocol says so, which `graded` does.
        return float(self.verdict.label is Label.CORRECT)

    @property
    def is_right(self) -> bool | None:
        """Whether the verdict's label says so; None if the answer could not be scored."""
        if self.score is None or self.verdict is None:
            return None

        return self.verdict.label is Label.CORRECT

    @property
    def tries(self) -> int:
        """Replies of the judge's model that could not be read, if the answer is unscored for it."""
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
            # Before the answer, with what the records of a question share: see compare/scores.py.
            **({} if self.weight == 1.0 else {"weight": self.weight}),
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
            "usage": list(map(usage_json, self.usage)),
            TIMES: self.times.to_json(),
        }
        if self.choices:
            record["choices"] = list(self.choices)
            record["choice_labels"] = self.choice_labels.value
            record["right_choices"] = list(self.right_choices)
            record["chosen"] = _list_or_none(self.chosen)

        if self.prompt:
            record["prompt"] = [message.to_json() for message in self.prompt]

        optional = {
            "asked_at": self.asked_at.isoformat() if self.asked_at else None,
            "context": self.context,
            "finish_reason": self.finish_reason,
            "raw": self.raw,
            "notes": dict(self.notes) or None,
            "error": self.error,
        }
        return record | {name: value for name, value in optional.items() if value is not None}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Record:
        """Reads a line of `records.jsonl`. Only the question's id must be there.

        Raises `ValueError` naming a member of another type.
        """
        members = Fields(record)
        category = members.raw("category")
        if not isinstance(category, str | int | None):
            raise members.wrong("category")

        facets = members.mapping("facets")
        return cls(
            question_id=members.string("question_id"),
            case_id=members.string_or_none("case_id") or "",
            category="" if category is None else category,
            category_name=members.string_or_none("category_name") or "",
            repeat=members.count("repeat", 0),
            seed=members.integer("seed", 0),
            question=members.string_or_none("question") or "",
            gold=members.strings("gold"),
            answerable=members.boolean("answerable", True),
            status=members.choice("status", Status) if members.has("status") else Status.OK,
            asked_at=members.time_or_none("asked_at"),
            facets={name: str(value) for name, value in facets.items()},
            evidence=members.strings("evidence"),
            hypothesis=members.string_or_none("hypothesis"),
            verdict=verdict_from(members),
            metrics=members.numbers("metrics"),
            retrieved=retrieved_from(members),
            evidence_ranks=members.ranks("evidence_ranks"),
            session_evidence_ranks=members.ranks("session_evidence_ranks"),
            shown_evidence_ranks=members.ranks("shown_evidence_ranks"),
            shown_session_ranks=members.ranks("shown_session_ranks"),
            top_k=members.count_or_none("top_k"),
            context=members.string_or_none("context"),
            prompt=tuple(map(SentMessage.from_json, members.items("prompt"))),
            context_tokens=members.count_or_none("context_tokens"),
            usage=members.usages("usage"),
            times=StepTimes.from_json(members),
            finish_reason=members.string_or_none("finish_reason"),
            choices=members.strings("choices"),
            choice_labels=members.choice("choice_labels", ChoiceLabels)
            if members.has("choice_labels")
            else ChoiceLabels.DIGITS,
            right_choices=members.counts("right_choices") or (),
            raw=members.string_or_none("raw"),
            notes=members.mapping("notes"),
            error=members.string_or_none("error"),
            weight=members.weight("weight"),
        )


def _retrieved_json(chunks: tuple[RetrievedChunk, ...] | None) -> list[Json] | None:
    return None if chunks is None else [chunk.to_json() for chunk in chunks]


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
                content = json.loads(line)
                if not isinstance(content, dict):
                    raise ValueError("not an object")

                yield Record.from_json(content)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
