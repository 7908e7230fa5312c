"""Events between the sessions of a case: operations on the memory, and questions asked before the
end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from msgspec import Meta

from memeval.datasets.io.entries import Entry, Place, Text
from memeval.datasets.io.fields import quoted
from memeval.datasets.io.questions import CaseNames, QuestionEntry, SessionName, session_id
from memeval.metrics.lifecycle import CURRENT, DELETED, NEIGHBOUR, RETURNED, UPDATED
from memeval.records import (
    CorrectRequest,
    EvalOperation,
    EvalQuestion,
    ForgetRequest,
    OperationKind,
    Scope,
    Traces,
)


class OperationEntry(Entry, frozen=True, kw_only=True):
    """An operation as the file contains it; those of a kind have more fields."""

    kind: str
    after: SessionName
    meta: Any = None


class ForgetEntry(OperationEntry, frozen=True, kw_only=True):
    words: Text
    about: Text | None = None
    scope: Annotated[str, Meta(pattern=r"^(?:fact|subject|user)\Z")] | None = None
    values: list[Text] | None = None


class CorrectEntry(OperationEntry, frozen=True, kw_only=True):
    words: Text
    old: Text
    new: Text


class ReingestEntry(OperationEntry, frozen=True, kw_only=True):
    session: SessionName


OPERATIONS: Mapping[str, type[OperationEntry]] = {
    OperationKind.FORGET: ForgetEntry,
    OperationKind.CORRECT: CorrectEntry,
    OperationKind.CONSOLIDATE: OperationEntry,
    OperationKind.REINGEST: ReingestEntry,
}
LIFE_FIELDS = ("asked_after", "forgotten")
"""Fields of a question that relate to events between sessions."""


def operation_entries(case: Place, values: Sequence[Any]) -> list[tuple[Place, OperationEntry]]:
    """The operations of a case with their places; those with a mistake are left out."""
    entries = []
    for number, value in enumerate(values):
        place = case.part(f"operation {number}")
        kind = value.get("kind") if isinstance(value, dict) else OperationKind.CONSOLIDATE
        if kind not in list(OPERATIONS):
            mistake = "is missing" if kind is None else f"is {quoted(kind)}"
            place.add(f"{mistake}, not one of {', '.join(OPERATIONS)}", name="kind")
            continue

        entry = place.read(value, OPERATIONS[kind])
        if isinstance(entry, ForgetEntry) and entry.scope != Scope.USER and entry.about is None:
            # With scope `user` no subject is needed: everything that the user said is meant.
            place.add("is missing", name="about")
        if entry is not None:
            entries.append((place, entry))

    return entries


def read_operation(place: Place, entry: OperationEntry, names: CaseNames) -> EvalOperation:
    """An operation; mistakes are noted."""
    after = names.position_of(entry.after, "after", place)
    operation = EvalOperation(kind=OperationKind(entry.kind), after=session_id(after or 0))
    if isinstance(entry, ForgetEntry):
        scope = Scope(entry.scope or Scope.FACT)
        request = ForgetRequest(words=entry.words, about=entry.about or "", scope=scope)
        return replace(operation, forget=request, values=tuple(entry.values or ()))
    if isinstance(entry, CorrectEntry):
        correction = CorrectRequest(words=entry.words, old=entry.old, new=entry.new)
        return replace(operation, correct=correction)
    if isinstance(entry, ReingestEntry):
        again = names.position_of(entry.session, "session", place)
        if again is not None and after is not None and again > after:
            place.add("comes after the session in 'after'", name="session")

        return replace(operation, session_id=session_id(again or 0))

    return operation


class LivingQuestion(QuestionEntry, frozen=True, kw_only=True):
    """A question about a memory that something may happen to between sessions."""

    asked_after: SessionName | None = None
    forgotten: list[Text] | None = None
    stale: list[Text] | None = None


def with_checkpoint(
    place: Place,
    entry: LivingQuestion,
    question: EvalQuestion,
    names: CaseNames,
    *,
    changes_memory: bool,
) -> EvalQuestion:
    """A question with the session after which it is asked and, if operations change the memory
    (`changes_memory`), the values that show what is known and what is gone. Mistakes are noted.
    """
    if entry.asked_after is not None:
        after = names.position_of(entry.asked_after, "asked_after", place) or 0
        question = replace(question, asked_after=session_id(after))
        if any(names.session_of[turn_id] > after for turn_id in question.evidence):
            place.add("comes after the session in 'asked_after'", name="evidence")

    forgotten, older = tuple(entry.forgotten or ()), tuple(entry.stale or ())
    if forgotten:
        if question.gold:
            mistake = "needs an empty list as 'answer', because a refusal is right"
            place.add(mistake, name="forgotten")

        texts = [names.texts[turn_id] for turn_id in question.evidence]
        kind = RETURNED if question.category == RETURNED else DELETED
        traces = Traces(kind=kind, deleted=forgotten, probes=(*forgotten, *texts))
        # The turns that contained the value are not evidence: finding them earns no credit.
        return replace(question, traces=traces, evidence=())

    if not changes_memory or not question.gold:
        return question

    kind = UPDATED if older else CURRENT
    if question.category == NEIGHBOUR:
        kind = NEIGHBOUR

    return replace(question, traces=Traces(kind=kind, right=question.gold, older=older))


def changes_memory(operations: Sequence[EvalOperation], questions: Sequence[Any]) -> bool:
    """Whether a case changes or queries the memory between its sessions."""
    fields = set().union(*(value for value in questions if isinstance(value, dict)))
    return bool(operations) or not fields.isdisjoint(LIFE_FIELDS)


def checkpoints(questions: Sequence[EvalQuestion], count: int) -> tuple[str, ...]:
    """The sessions after which questions are asked, in order."""
    asked = {question.asked_after for question in questions}
    return tuple(name for name in map(session_id, range(count)) if name in asked)
