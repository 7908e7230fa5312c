"""A case as a timeline: sessions, operations and checkpoints in order.

A case whose questions are all asked at the end is one part without operations.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Struct

from memeval.datasets.granularity import Granularity
from memeval.datasets.granularity import chunks as cut
from memeval.errors import UserError
from memeval.llm.metering import Ledger, current_ledger, metered, totals
from memeval.pipeline.isolate.watch import Watched
from memeval.records import (
    EvalCase,
    EvalOperation,
    EvalQuestion,
    MemoryChunk,
    OperationKind,
    OracleForgetRequest,
    Query,
    format_time,
)
from memeval.results.record import TimelineEvent
from memeval.results.rows import OperationDone
from memeval.text.shown import one_line
from memeval.text.value_search import values_in

PROBE_DEPTH = 5
"""Number of search results that a probe looks at."""
USER, OTHER_USER = "user-1", "user-2"
"""The users of a store under `system.tenants=shared`: the user who asks, and another user."""
Write = Callable[[Sequence[MemoryChunk]], Awaitable[None]]
END = "end"
"""Name of the checkpoint after all sessions."""


@dataclass(frozen=True, slots=True)
class CaseUntil(EvalCase):
    """A case up to a checkpoint, with the questions that are asked there."""

    earlier: tuple[tuple[str, str], ...] = ()
    """The checkpoints before it, in order: each session's id, and the id of the case up to it."""
    full_case: EvalCase | None = None
    """The case with all its sessions."""


def has_timeline(case: EvalCase) -> bool:
    """Whether a case has operations, checkpoints, or questions that are asked before its end."""
    asked = any(question.asked_after is not None for question in case.questions)
    return asked or bool(case.operations or case.checkpoints)


def ids_until(case: EvalCase) -> tuple[str, ...]:
    """Ids of a case's memories: its own id, or one id per checkpoint if it has a timeline.

    They follow the order of its questions; the sessions are not needed.
    """
    if not has_timeline(case):
        return (case.case_id,)

    names = dict.fromkeys(question.asked_after for question in case.questions)
    return tuple(_id_until(case, name) for name in names)


def id_until(case: EvalCase, question: EvalQuestion) -> str:
    """The id of the memory that a question is asked of."""
    return _id_until(case, question.asked_after) if has_timeline(case) else case.case_id


def cases_until(case: EvalCase) -> Iterator[EvalCase]:
    """The case at each checkpoint with questions, in order.

    Raises `UserError` for a question or an operation after a session that the case does not have.
    """
    if not has_timeline(case):
        yield case
        return

    order = {session.session_id: number for number, session in enumerate(case.sessions)}
    placed = [question.asked_after for question in case.questions]
    placed += [operation.after for operation in case.operations]
    for name in placed:
        if name is not None and name not in order:
            raise UserError(f"case {one_line(case.case_id, 80)} has no session {one_line(name)}")

    asked: dict[str | None, list[EvalQuestion]] = {}
    for question in case.questions:
        asked.setdefault(question.asked_after, []).append(question)

    last = len(case.sessions)
    for name in sorted(asked, key=lambda name: last if name is None else order[name]):
        count = last if name is None else order[name] + 1
        sessions = case.sessions[:count]
        reached = {session.session_id for session in sessions}
        before = [point for point in case.checkpoints if point in reached and point != name]
        yield CaseUntil(
            case_id=_id_until(case, name),
            sessions=sessions,
            questions=tuple(asked[name]),
            speakers=case.speakers,
            operations=tuple(
                operation for operation in case.operations if operation.after in reached
            ),
            checkpoints=case.checkpoints,
            others=case.others,
            earlier=tuple((point, _id_until(case, point)) for point in before),
            full_case=case,
        )


def without_turns(case: EvalCase) -> EvalCase:
    """The case without its turns; empty sessions are kept if it has a timeline."""
    sessions = case.sessions if has_timeline(case) else ()
    return replace(
        case, sessions=tuple(replace(session, turns=()) for session in sessions), others=()
    )


def timeline_events(
    case: EvalCase, question: EvalQuestion, done: Mapping[int, OperationDone]
) -> Iterator[TimelineEvent]:
    """Events of a case with a timeline, in order; `done` has the results of operations, by
    position.
    """
    if not has_timeline(case):
        return

    last = case.sessions[-1].session_id if case.sessions else None
    for session in case.sessions:
        time = f" · {format_time(session.started_at)}" if session.started_at else ""
        yield TimelineEvent("session", f"{session.session_id}{time}")
        for position, operation in enumerate(case.operations):
            if operation.after == session.session_id:
                yield _operation_event(operation, done.get(position))

        if session.session_id == (question.asked_after or last):
            yield TimelineEvent("asked", "the question is asked")


def _operation_event(operation: EvalOperation, done: OperationDone | None) -> TimelineEvent:
    request = operation.forget or operation.correct
    text = request.words if request else operation.session_id or ""
    result = ""
    if done is not None and request is not None:
        result = "not supported"
        if done.items is not None:
            result = f"{done.items:,} item{'' if done.items == 1 else 's'}"
        if done.items and done.vanished == 0:
            result += ", but a search still finds what it found before"

    return TimelineEvent(operation.kind.value, text, result)


def operations_done(
    case: EvalCase, done_until: Callable[[str], Sequence[OperationDone]]
) -> dict[int, OperationDone]:
    """Results of a case's operations, by position; `done_until` returns the operations of the
    memory with a given id.
    """
    order = {session.session_id: number for number, session in enumerate(case.sessions)}
    asked = {question.asked_after for question in case.questions}
    done: dict[int, OperationDone] = {}
    for name in sorted(asked, key=lambda name: len(order) if name is None else order[name]):
        end = len(order) if name is None else order[name]
        due = [
            position
            for position, operation in enumerate(case.operations)
            if order[operation.after] <= end
        ]
        due.sort(key=lambda position: order[case.operations[position].after])
        # A memory that was continued from a checkpoint did only the last of them.
        latest = done_until(_id_until(case, name))
        done |= dict(zip(due[len(due) - len(latest) :], latest, strict=True))

    return done


def _id_until(case: EvalCase, name: str | None) -> str:
    return f"{case.case_id}@{name or END}"


class TimelinePart(Struct, frozen=True):
    """Sessions that are ingested in one go, and the operations after them."""

    first: int
    """Position of its first chunk."""
    end: int
    """Position after its last chunk."""
    operations: tuple[EvalOperation, ...] = ()
    session_id: str | None = None
    """Its last session."""


def parts_of(case: EvalCase, chunks: Sequence[MemoryChunk]) -> list[TimelinePart]:
    """The parts of a case: each ends before an operation, at a checkpoint or with the case."""
    stops = case.stops
    parts: list[TimelinePart] = []
    first = 0
    for session in case.sessions:
        if session.session_id not in stops:
            continue

        end = first
        reached = _sessions_until(case, session.session_id)
        while end < len(chunks) and chunks[end].session_id in reached:
            end += 1

        due = tuple(
            operation for operation in case.operations if operation.after == session.session_id
        )
        parts.append(TimelinePart(first, end, due, session.session_id))
        first = end

    if first < len(chunks) or not parts:
        parts.append(TimelinePart(first, len(chunks)))

    return parts


def _sessions_until(case: EvalCase, session_id: str) -> frozenset[str]:
    ids = [session.session_id for session in case.sessions]
    others = [session.session_id for session in case.others]
    return frozenset([*others, *ids[: ids.index(session_id) + 1]])


def with_other_user(
    case: EvalCase, chunks: Sequence[MemoryChunk], granularity: Granularity
) -> list[MemoryChunk]:
    """A case's chunks for one user, after the chunks of another user of the same store."""
    others = cut(replace(case, sessions=case.others), granularity)
    # The other user's turns are not part of the case: a ranking can't name them.
    return [
        *(
            replace(chunk, chunk_id=f"other-{chunk.chunk_id}", turn_ids=(), user=OTHER_USER)
            for chunk in others
        ),
        *(replace(chunk, user=USER) for chunk in chunks),
    ]


def parts_after(parts: Sequence[TimelinePart], session_id: str) -> list[TimelinePart]:
    """The parts that follow a checkpoint."""
    ends = [part.session_id for part in parts]
    return list(parts[ends.index(session_id) + 1 :])


async def operate(
    watched: Watched,
    operation: EvalOperation,
    chunks: Sequence[MemoryChunk],
    number: int | None = None,
    write: Write | None = None,
) -> OperationDone:
    """Performs an operation; `number` is its position in the case, `chunks` are the case's chunks.

    `write` has a model write chunks down; without it, the system itself ingests the chunks of a
    session that is imported again.
    """
    before = await _search_results(watched, operation)
    calls = len(current_ledger().usages)
    started = time.perf_counter()
    items = await _operate(watched, operation, chunks, write)
    took_ms = round((time.perf_counter() - started) * 1e3, 3)

    after = await _search_results(watched, operation)
    return OperationDone(
        kind=operation.kind,
        items=items,
        ms=took_ms,
        vanished=None if before is None or after is None else len(before - after),
        usage=totals(current_ledger().usages[calls:]),
        number=number,
    )


async def _search_results(watched: Watched, operation: EvalOperation) -> set[str] | None:
    """Results that contain the fact to be removed, from a separate search; None if the system can't
    be searched.
    """
    values = operation.values
    if operation.correct is not None:
        values = (operation.correct.old,)
    if not values or not hasattr(watched.system, "probe"):
        return None

    texts = await search_for(watched, values)
    return None if texts is None else {text for text in texts if values_in(values, text)}


async def _operate(
    watched: Watched,
    operation: EvalOperation,
    chunks: Sequence[MemoryChunk],
    write: Write | None,
) -> int | None:
    if operation.kind is OperationKind.CONSOLIDATE:
        await watched.call("consolidate")
        return 0

    if operation.kind is OperationKind.REINGEST:
        repeated = [chunk for chunk in chunks if chunk.session_id == operation.session_id]
        if write is not None:
            await write(repeated)
            return len(repeated)

        for chunk in repeated:
            await watched.call("ingest", chunk)

        await watched.call("consolidate")
        return len(repeated)

    request: Any = operation.correct
    if operation.forget is not None:
        request = operation.forget
        if watched.system.wants_evidence:
            request = OracleForgetRequest(
                words=request.words,
                about=request.about,
                scope=request.scope,
                values=operation.values,
            )

    if watched.user:
        request = replace(request, user=watched.user)

    from memeval.pipeline.isolate.returned import NotAnAnswerError, plain_count

    # A class may follow the contract without inheriting from it.
    method = operation.kind.value
    if not hasattr(watched.system, method):
        return None

    items = await watched.call(method, request)
    try:
        return None if items is None else plain_count(items, "the returned value")
    except NotAnAnswerError as error:
        raise watched.misuse(method, str(error)) from error


async def search_for(watched: Watched, probes: Sequence[str]) -> list[str] | None:
    """The first results of each probe; None if the system can't be searched."""
    texts: list[str] = []
    for words in probes:
        with metered(Ledger()):
            query = Query(text=words, user=watched.user)
            results = await watched.call("probe", query, PROBE_DEPTH)

        if results is None:
            return None

        texts += [chunk.text for chunk in results]

    return texts
