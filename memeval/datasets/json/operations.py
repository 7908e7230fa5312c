"""What happens to a memory between the sessions of a case: its operations, and the questions that
are asked before the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct

from memeval.datasets.io.entries import EntryKind, FileEntry
from memeval.datasets.io.fields import kind_of, quoted
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

OPERATION_FIELDS: Mapping[str, tuple[str, ...]] = {
    OperationKind.FORGET: ("words", "about", "scope", "values"),
    OperationKind.CORRECT: ("words", "old", "new"),
    OperationKind.CONSOLIDATE: (),
    OperationKind.REINGEST: ("session",),
}
"""Fields of each kind of operation besides `kind` and `after`."""
LIFE_FIELDS = ("asked_after", "forgotten")
"""Fields of a question about what happens between sessions."""


class CaseSessions(Struct, frozen=True):
    """The sessions of a case, by the names that its operations and questions use."""

    names: Mapping[str, int]
    """Position of each session that has an id."""
    of_turn: Mapping[str, int]
    """Position of the session of each turn."""
    turn_texts: Mapping[str, str]
    """Text of each turn."""
    count: int

    def position_of(self, entry: FileEntry, field: str, *, required: bool = False) -> int | None:
        """Position of the session that a field names by its id, or by its index from 0."""
        value = entry.values.get(field)
        is_word = isinstance(value, str | int) and not isinstance(value, bool)
        if value is None and not required:
            return None
        if isinstance(value, str) and value in self.names:
            return self.names[value]
        if isinstance(value, int) and is_word and 0 <= value < self.count:
            return value

        if value is None:
            entry.add_mistake(field, "is missing")
        elif is_word:
            entry.add_mistake(field, f"is {quoted(value)}, which is not a session of the case")
        else:
            entry.add_mistake(field, f"is {kind_of(value)}, not the id or index of a session")

        return None


def session_id(position: int) -> str:
    """The id of a session as systems see it."""
    return f"s{position + 1}"


def read_operations(
    case: FileEntry, sessions: CaseSessions, always: Sequence[str]
) -> tuple[EvalOperation, ...]:
    """The operations of a case; any object may have the fields `always`. Mistakes are noted."""
    operations = []
    for number, value in enumerate(case.items("operations") or []):
        location = f"{case.location}, operation {number}"
        operations.append(_operation(location, value, case, sessions, always))

    return tuple(filter(None, operations))


def _operation(
    location: str, value: Any, case: FileEntry, sessions: CaseSessions, always: Sequence[str]
) -> EvalOperation | None:
    kind = None
    own: tuple[str, ...] = ()
    if isinstance(value, dict):
        named = value.get("kind")
        if named not in list(OperationKind):
            what = "is missing" if named is None else f"is {quoted(named)}"
            kinds = ", ".join(OPERATION_FIELDS)
            case.mistakes.add(location, f"field 'kind' {what}, not one of {kinds}")
            return None

        kind = OperationKind(named)
        own = OPERATION_FIELDS[kind]

    form = EntryKind("operation", ("kind", "after", *own, *always))
    entry = FileEntry.of(location, value, form, case.mistakes)
    if entry is None or kind is None:
        return None

    after = sessions.position_of(entry, "after", required=True)
    operation = EvalOperation(kind=kind, after=session_id(after or 0))
    if kind == OperationKind.FORGET:
        return replace(operation, forget=_forget(entry), values=entry.texts("values"))
    if kind == OperationKind.CORRECT:
        request = CorrectRequest(
            words=entry.text("words", required=True) or "",
            old=entry.text("old", required=True) or "",
            new=entry.text("new", required=True) or "",
        )
        return replace(operation, correct=request)
    if kind == OperationKind.REINGEST:
        again = sessions.position_of(entry, "session", required=True)
        if again is not None and after is not None and again > after:
            entry.add_mistake("session", "comes after the session in 'after'")

        return replace(operation, session_id=session_id(again or 0))

    return operation


def _forget(entry: FileEntry) -> ForgetRequest:
    scope = entry.text("scope") or Scope.FACT
    if scope not in list(Scope):
        entry.add_mistake("scope", f"is {quoted(scope)}, not one of {', '.join(Scope)}")
        scope = Scope.FACT

    return ForgetRequest(
        words=entry.text("words", required=True) or "",
        # With scope `user` no subject is needed: everything that the user said is meant.
        about=entry.text("about", required=scope != Scope.USER) or "",
        scope=Scope(scope),
    )


def with_checkpoint(
    entry: FileEntry, question: EvalQuestion, sessions: CaseSessions, *, changes_memory: bool
) -> EvalQuestion:
    """A question with the session after which it is asked and, if something happens to the memory
    (`changes_memory`), the values that show what is known and what is gone. Mistakes are noted.
    """
    after = sessions.position_of(entry, "asked_after")
    if after is not None:
        question = replace(question, asked_after=session_id(after))
        if any(sessions.of_turn[turn_id] > after for turn_id in question.evidence):
            entry.add_mistake("evidence", "comes after the session in 'asked_after'")

    forgotten, older = entry.texts("forgotten"), entry.texts("stale")
    if forgotten:
        if question.gold:
            entry.add_mistake(
                "forgotten", "needs an empty list as 'answer', because a refusal is right"
            )

        texts = [sessions.turn_texts[turn_id] for turn_id in question.evidence]
        kind = RETURNED if question.category == RETURNED else DELETED
        traces = Traces(kind=kind, deleted=forgotten, probes=(*forgotten, *texts))
        # The turns that contained the value are not evidence: finding them is no merit.
        return replace(question, traces=traces, evidence=())

    if not changes_memory or not question.gold:
        return question

    kind = UPDATED if older else CURRENT
    if question.category == NEIGHBOUR:
        kind = NEIGHBOUR

    return replace(question, traces=Traces(kind=kind, right=question.gold, older=older))


def changes_memory(operations: Sequence[EvalOperation], questions: Sequence[Any]) -> bool:
    """Whether something happens to a memory between the sessions of a case."""
    fields = set().union(*(value for value in questions if isinstance(value, dict)))
    return bool(operations) or not fields.isdisjoint(LIFE_FIELDS)


def checkpoints(questions: Sequence[EvalQuestion], count: int) -> tuple[str, ...]:
    """The sessions after which questions are asked, in order."""
    asked = {question.asked_after for question in questions}
    return tuple(name for name in map(session_id, range(count)) if name in asked)
