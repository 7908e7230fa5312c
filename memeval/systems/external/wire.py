"""Requests to a served memory and its replies, in JSON.

docs/http_memory.openapi.yaml describes them. Replies are read strictly: an invalid part is an error
that names it.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from memeval.errors import ModelError
from memeval.llm.reply.body import TokenCount
from memeval.records import Finite, MemoryChunk, Query, Retrieved, Role, Usage
from memeval.text.names import text_digest
from memeval.text.shown import counted, one_line
from memeval.text.typed import convert, fault_in

T = TypeVar("T", bound=Struct)

LONGEST_TEXT = 1_000_000
"""Maximum characters of an answer or of one result."""
MAX_RESULTS = 10_000
"""Maximum results of one search."""
MAX_USAGES = 100
"""Maximum usages of one reply."""
CHANGES = ("forget", "correct")
"""Operations that a service need not offer."""
OPERATIONS = ("reset", "ingest", "ready", "search", "answer", *CHANGES)

Json = Mapping[str, Any]
Row = TypeVar("Row")
Results = Annotated[list[Row], Meta(max_length=MAX_RESULTS)]
ResultText = Annotated[str, Meta(max_length=LONGEST_TEXT)]


class WireError(ModelError):
    """A reply that does not fit the schema."""


class _Result(Struct):
    text: ResultText
    turn_ids: tuple[str, ...] | None = None
    score: Finite | None = None
    time: str | None = None


class _Search(Struct):
    results: Results[_Result]


class _Answer(Struct):
    text: ResultText
    results: Any = None


class _Call(Struct):
    kind: Literal["chat", "embed"] = "chat"
    model: str | None = None
    provider: str | None = None
    prompt_tokens: TokenCount | None = None
    completion_tokens: TokenCount | None = None
    cached_tokens: TokenCount | None = None
    calls: TokenCount | None = None


class _Usages(Struct):
    usage: Annotated[list[_Call], Meta(max_length=MAX_USAGES)] | _Call | None = None


class _Ingested(Struct):
    lost: Annotated[int, Meta(ge=0)] | None = None


class _Changed(Struct):
    items: TokenCount | None


class _Ready(Struct):
    ready: bool


class SearchResults(Struct, frozen=True):
    results: tuple[Retrieved, ...]
    without_ids: int = 0
    """Results that do not name the turns that they cover."""


class SentIds:
    """The ids that a service gets for one case, unique over all cases and runs.

    Data sets number the turns of each conversation from the start: with two cases in one store, the
    data set's own ids would not show which case a result comes from.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.turns: dict[str, str] = {}
        """The data set's own turn ids, by the ids that were sent."""

    def turn(self, turn_id: str) -> str:
        """The id under which a turn is sent."""
        sent = self.of("turn", turn_id)
        self.turns[sent] = turn_id
        return sent

    def of(self, kind: str, name: str) -> str:
        """The id under which a session or a chunk is sent."""
        named = "\0".join((self._namespace, kind, name))
        return f"{kind}-{text_digest(named)[:16]}"


def chunk_json(chunk: MemoryChunk, ids: SentIds) -> dict[str, Any]:
    return {
        "id": ids.of("chunk", chunk.chunk_id),
        "text": chunk.text,
        "content": chunk.content,
        "time": chunk.time.isoformat() if chunk.time else None,
        "turn_ids": list(map(ids.turn, chunk.turn_ids)),
        "speakers": list(chunk.speakers),
        "session_id": ids.of("session", chunk.session_id),
    }


def search_json(query: Query, depth: int) -> dict[str, Any]:
    asked_at = query.asked_at.isoformat() if query.asked_at else None
    return {"query": query.text, "asked_at": asked_at, "top_k": depth}


def answer_json(query: Query, top_k: int) -> dict[str, Any]:
    """A request to a service that gives the answers itself."""
    choices = []
    for position, choice in enumerate(query.choices):
        label = query.choice_labels.label(position)
        choices.append({"label": label, "text": choice})

    return {
        **search_json(query, top_k),
        "instruction": query.instruction,
        "choices": choices,
        "multi_select": query.multi_select,
    }


def check_done(reply: Json) -> None:
    """Raises `WireError` for a reply that reports a failure, even if it has results."""
    error = reply.get("error")
    if str(error or "").strip():
        raise WireError(f"it reports an error: {one_line(str(error), 300)}")

    for member in ("success", "ok"):
        if reply.get(member) is False:
            raise WireError(f"it reports a failure: {member} is false")


def read(reply: Json, wanted: type[T]) -> T:
    """The reply to an operation as a typed record. Raises `WireError` that names what is wrong."""
    check_done(reply)
    return _read_members(reply, wanted)


def _read_members(reply: Json, wanted: type[T]) -> T:
    try:
        return convert(reply, wanted)
    except ValueError as error:
        raise WireError(one_line(fault_in(error), 300)) from error


def read_lost(reply: Json, sent: int) -> int | None:
    """How many of the chunks sent to a service it lost; None if it does not say."""
    lost = read(reply, _Ingested).lost
    if lost is not None and lost > sent:
        raise WireError(f"lost is {lost:,}, but the request had only {counted(sent, 'chunk')}")

    return lost


def read_items(reply: Json) -> int | None:
    """How many items an operation removed or changed; None if the service can't do it."""
    return read(reply, _Changed).items


def read_ready(reply: Json) -> bool:
    """Whether everything ingested can be found."""
    # `ok` or `success` may say the same: a service that is still indexing has not failed.
    if reply.get("ready") is False and not reply.get("error"):
        return False

    return read(reply, _Ready).ready


def read_results(reply: Json, turns: Mapping[str, str]) -> SearchResults:
    """The results of a search; `turns` maps the ids that were sent to the data set's own."""
    rows = read(reply, _Search).results
    results = [_retrieved(row, f"results[{at}]", turns) for at, row in enumerate(rows)]
    without = sum(1 for row in rows if row.turn_ids is None)
    return SearchResults(tuple(results), without)


def expect_member(reply: Json, name: str, wanted: Any) -> None:
    """Raises `WireError` unless the member `name` of a reply is `wanted`."""
    value = reply.get(name)
    # In Python, 1 equals true.
    if value == wanted and type(value) is type(wanted):
        return

    error = reply.get("error") or reply.get("message")
    reason = f": {one_line(error, 300)}" if isinstance(error, str) else ""
    shown, expected = one_line(json.dumps(value), 60), one_line(json.dumps(wanted), 80)
    raise WireError(f"{name} must be {expected}, but is {shown}{reason}")


def read_answer(reply: Json, turns: Mapping[str, str]) -> tuple[str, SearchResults | None]:
    """An answer given by a service, and the results of its search if it reports them."""
    answer = read(reply, _Answer)
    return answer.text, None if answer.results is None else read_results(reply, turns)


def read_usages(reply: Json, role: Role) -> tuple[Usage, ...]:
    """The model calls that a service reports. If it reports none, the tokens are unknown."""
    # A tool's reply may report an error, and the usage behind it.
    calls = _read_members(reply, _Usages).usage
    if calls is None:
        return (Usage(role, model="unknown", provider="unknown"),)

    if not isinstance(calls, list):
        calls = [calls]

    return tuple(_usage(call, role) for call in calls)


def _usage(call: _Call, role: Role) -> Usage:
    return Usage(
        role=Role.EMBED if call.kind == "embed" else role,
        model=one_line(call.model or "", 200) or "unknown",
        provider=one_line(call.provider or "", 200) or "unknown",
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        cached_tokens=call.cached_tokens or 0,
        calls=1 if call.calls is None else call.calls,
    )


def _retrieved(row: _Result, where: str, turns: Mapping[str, str]) -> Retrieved:
    sent = row.turn_ids or ()
    for at, turn in enumerate(sent):
        # An id of another case means that the service mixes its namespaces: another case leaks
        # into this one.
        if turn not in turns:
            raise WireError(
                f"{where}.turn_ids[{at}] names '{one_line(turn, 80)}', which memeval did not send "
                "for this case"
            )

    try:
        time = None if row.time is None else datetime.fromisoformat(row.time)
    except ValueError as error:
        raise WireError(f"{where}.time: {one_line(error, 80)}") from error

    return Retrieved(
        text=row.text, turn_ids=tuple(turns[turn] for turn in sent), score=row.score, time=time
    )
