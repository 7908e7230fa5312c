"""A case as a timeline: sessions, operations and checkpoints in order.

A case whose questions are all asked at the end is one part without operations.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from msgspec import Struct

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks as cut
from memeval.errors import UserError
from memeval.llm.metering import Ledger, current_ledger, metered, totals
from memeval.pipeline.isolate.returned import NotAnAnswerError, plain_count
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
from memeval.results.record import Record, TimelineEvent
from memeval.results.rows import OperationDone
from memeval.text.shown import counted, one_line
from memeval.text.value_search import values_in

PROBE_DEPTH = 5
"""Number of search results that a probe looks at."""
USER, OTHER_USER = "user-1", "user-2"
"""The users of a store under `system.tenants=shared`: the user who asks, and another user."""
Write = Callable[[Sequence[MemoryChunk]], Awaitable[None]]
END = "end"
"""Name of the checkpoint after all sessions."""
_BEFORE_TIME = " · "
"""Between a session and its time in the text of an event."""


@dataclass(frozen=True, slots=True)
class CaseUntil(EvalCase):
    """A case up to a checkpoint, with the questions that are asked there."""

    earlier: tuple[tuple[str, str], ...] = ()
    """The checkpoints before it, in order: each session's id, and the id of the case up to it."""
    full_case: EvalCase | None = None
    """The case with all its sessions."""


def ids_until(case: EvalCase) -> tuple[str, ...]:
    """Ids of a case's memories: its own id, or one id per checkpoint if it has a timeline.

    They follow the order of its questions; the sessions are not needed.
    """
    if not case.has_timeline:
        return (case.case_id,)

    names = dict.fromkeys(question.asked_after for question in case.questions)
    return tuple(_id_until(case, name) for name in names)


def id_until(case: EvalCase, question: EvalQuestion) -> str:
    """The id of the memory that a question is asked of."""
    if not case.has_timeline:
        return case.case_id

    return _id_until(case, question.asked_after)


def cases_until(case: EvalCase) -> Iterator[EvalCase]:
    """The case at each checkpoint with questions, in order.

    Raises `UserError` for a question or an operation after a session that the case does not have.
    """
    if not case.has_timeline:
        yield case
        return

    order = _order(case)
    asked: dict[str | None, list[EvalQuestion]] = {}
    for question in case.questions:
        asked.setdefault(question.asked_after, []).append(question)

    for name in (*asked, *(operation.after for operation in case.operations)):
        if name not in order:
            raise UserError(f"case {one_line(case.case_id, 80)} has no session {one_line(name)}")

    for name in sorted(asked, key=order.__getitem__):
        sessions = case.sessions[: order[name] + 1]
        reached = {session.session_id for session in sessions}
        operations = [operation for operation in case.operations if operation.after in reached]
        before = reached - {name}
        earlier = [(point, _id_until(case, point)) for point in case.checkpoints if point in before]
        yield CaseUntil(
            case_id=_id_until(case, name),
            sessions=sessions,
            questions=tuple(asked[name]),
            speakers=case.speakers,
            operations=tuple(operations),
            checkpoints=case.checkpoints,
            others=case.others,
            earlier=tuple(earlier),
            full_case=case,
        )


def _order(case: EvalCase) -> dict[str | None, int]:
    """The position of each session; that of None is the end of the case."""
    order: dict[str | None, int] = {None: len(case.sessions)}
    for number, session in enumerate(case.sessions):
        order[session.session_id] = number

    return order


def without_turns(case: EvalCase) -> EvalCase:
    """The case without its turns; empty sessions are kept if it has a timeline."""
    if not case.has_timeline:
        return replace(case, sessions=(), others=())

    sessions = tuple(replace(session, turns=()) for session in case.sessions)
    return replace(case, sessions=sessions, others=())


def timeline_events(
    case: EvalCase, question: EvalQuestion, done: Mapping[int, OperationDone]
) -> Iterator[TimelineEvent]:
    """Events of a case with a timeline, in order; `done` has the operations by position."""
    if not case.has_timeline or not case.sessions:
        return

    last = question.asked_after or case.sessions[-1].session_id
    for session in case.sessions:
        shown = session.session_id
        if session.started_at:
            shown += f"{_BEFORE_TIME}{format_time(session.started_at)}"

        yield TimelineEvent("session", shown)
        for position, operation in enumerate(case.operations):
            if operation.after == session.session_id:
                yield _operation_event(operation, done.get(position))

        if session.session_id == last:
            yield TimelineEvent("asked", "the question is asked")


def unasked_checkpoints(records: Iterable[Record]) -> dict[str, set[str]]:
    """For each case of some records, the checkpoints at which none of them asks.

    Another run with more questions may have the same file of answers, with the ingests up to these.
    """
    checkpoints: dict[str, set[str]] = defaultdict(set)
    asked: dict[str, set[str]] = defaultdict(set)
    for record in records:
        latest: set[str] = set()
        checkpoints[record.case_id].add(END)
        for event in record.timeline:
            if event.kind == "session":
                # With its time or without: an event only has both together.
                latest = {event.text, event.text.rpartition(_BEFORE_TIME)[0]}
                checkpoints[record.case_id] |= latest
            elif event.kind == "asked":
                asked[record.case_id] |= latest

        if not record.timeline or record.timeline[-1].kind == "asked":
            asked[record.case_id].add(END)

    return {case: names - asked[case] for case, names in checkpoints.items()}


def _operation_event(operation: EvalOperation, done: OperationDone | None) -> TimelineEvent:
    request = operation.forget or operation.correct
    if request is None:
        return TimelineEvent(operation.kind.value, operation.session_id or "")

    result = ""
    if done is not None:
        result = "not supported" if done.items is None else counted(done.items, "item")
        if done.items and done.vanished == 0:
            result += ", but none vanished from a search's results"

    return TimelineEvent(operation.kind.value, request.words, result)


def operations_done(
    case: EvalCase, done_until: Callable[[str], Sequence[OperationDone]]
) -> dict[int, OperationDone]:
    """Results of a case's operations, by position; `done_until` returns the operations of the
    memory with a given id.
    """
    order = _order(case)
    asked = {question.asked_after for question in case.questions}
    done: dict[int, OperationDone] = {}
    for name in sorted(asked, key=order.__getitem__):
        due = [
            position
            for position, operation in enumerate(case.operations)
            if order[operation.after] <= order[name]
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
    reached = {session.session_id for session in case.others}
    parts: list[TimelinePart] = []
    first = 0
    for session in case.sessions:
        name = session.session_id
        reached.add(name)
        if name not in stops:
            continue

        end = first
        while end < len(chunks) and chunks[end].session_id in reached:
            end += 1

        due = tuple(operation for operation in case.operations if operation.after == name)
        parts.append(TimelinePart(first, end, due, name))
        first = end

    if first < len(chunks) or not parts:
        parts.append(TimelinePart(first, len(chunks)))

    return parts


def with_other_user(
    case: EvalCase, chunks: Sequence[MemoryChunk], granularity: GranularityConfig
) -> list[MemoryChunk]:
    """A case's chunks for one user, after the chunks of another user of the same store."""
    both = []
    for chunk in cut(replace(case, sessions=case.others), granularity):
        other_id = f"other-{chunk.chunk_id}"
        # The other user's turns are not part of the case: a ranking can't name them.
        both.append(replace(chunk, chunk_id=other_id, turn_ids=(), user=OTHER_USER))

    return both + [replace(chunk, user=USER) for chunk in chunks]


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
    vanished = None
    if before is not None and after is not None:
        vanished = len(before - after)

    return OperationDone(
        kind=operation.kind,
        items=items,
        ms=took_ms,
        vanished=vanished,
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
    if not values:
        return None

    texts = await search_for(watched, values)
    if texts is None:
        return None

    return {text for text in texts if values_in(values, text)}


async def _operate(
    watched: Watched, operation: EvalOperation, chunks: Sequence[MemoryChunk], write: Write | None
) -> int | None:
    if operation.kind is OperationKind.CONSOLIDATE:
        await watched.call("consolidate")
        return 0

    if operation.kind is OperationKind.REINGEST:
        repeated = [chunk for chunk in chunks if chunk.session_id == operation.session_id]
        if write is not None:
            await write(repeated)
        else:
            for chunk in repeated:
                await watched.call("ingest", chunk)

            await watched.call("consolidate")

        return len(repeated)

    return await _request(watched, operation, operation.kind.value)


async def _request(watched: Watched, operation: EvalOperation, method: str) -> int | None:
    """Asks a memory to forget or to correct something; the number of items that it reports."""
    request: Any = operation.correct
    if operation.forget is not None:
        request = operation.forget
        if watched.system.wants_evidence:
            request = OracleForgetRequest(**asdict(request), values=operation.values)

    if watched.user:
        request = replace(request, user=watched.user)

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
