"""Requests to a served memory and its replies, in JSON.

docs/http_memory.openapi.yaml describes them. Replies are read strictly: an invalid part is an error
that names it.
"""

import hashlib
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from memeval.errors import ModelError
from memeval.llm.reply.body import count_of
from memeval.records import MemoryChunk, Query, Retrieved, Role, Usage
from memeval.text.shown import one_line

LONGEST_TEXT = 1_000_000
"""Maximum characters of an answer or of one result."""
MOST_RESULTS = 10_000
"""Maximum results of one search."""
MOST_USAGES = 100
"""Maximum usages of one reply."""
CHANGES = ("forget", "correct")
"""Operations that a service need not offer."""
OPERATIONS = ("reset", "ingest", "ready", "search", "answer", *CHANGES)

Json = Mapping[str, Any]


class WireError(ModelError):
    """A reply that does not fit the schema."""


class SearchResults(Struct, frozen=True):
    results: tuple[Retrieved, ...]
    without_ids: int = 0
    """Results that do not say which turns they cover."""


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
        named = "\0".join((self._namespace, kind, name)).encode("utf-8", "surrogatepass")
        return f"{kind}-{hashlib.sha256(named).hexdigest()[:16]}"


def chunk_json(chunk: MemoryChunk, ids: SentIds) -> dict[str, Any]:
    """A chunk in a request."""
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
    """A search request for a question."""
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


def read_lost(reply: Json, sent: int) -> int | None:
    """How many of the chunks sent to a service it lost; None if it does not say."""
    lost = reply.get("lost")
    if lost is None:
        return None

    # In Python, true is an integer.
    if isinstance(lost, bool) or not isinstance(lost, int) or not 0 <= lost <= sent:
        raise _wrong("lost", f"a whole number from 0 to {sent}", lost)

    return lost


def read_items(reply: Json) -> int | None:
    """How many items an operation removed or changed; None if the service can't do it."""
    if reply.get("items") is None and "items" in reply:
        return None

    items = count_of(reply.get("items"))
    if items is None:
        raise _wrong("items", "a count, or null if it is not supported", reply.get("items"))

    return items


def read_ready(reply: Json) -> bool:
    """Whether everything ingested can be found."""
    ready = reply.get("ready")
    if not isinstance(ready, bool):
        raise _wrong("ready", "true or false", ready)

    return ready


def read_results(reply: Json, turns: Mapping[str, str]) -> SearchResults:
    """The results of a search; `turns` maps the ids that were sent to the data set's own."""
    rows = read_rows(reply, "results")
    results = [_read_result(row, f"results[{at}]", turns) for at, row in enumerate(rows)]
    without = sum(1 for row in rows if row.get("turn_ids") is None)
    return SearchResults(tuple(results), without)


def read_rows(reply: Json, name: str) -> list[Json]:
    """The results in a member of a reply, each an object.

    Raises `WireError` for a reply that says that the search failed, whatever its list contains.
    """
    error = reply.get("error")
    if (isinstance(error, str) and error.strip()) or (isinstance(error, Mapping) and error):
        raise WireError(f"it reports an error: {one_line(str(error), 300)}")

    for member in ("success", "ok"):
        if reply.get(member) is False:
            raise WireError(f"it reports a failure: {member} is false")

    rows = reply.get(name)
    if not isinstance(rows, list):
        raise _wrong(name, "a list", rows)
    if len(rows) > MOST_RESULTS:
        raise WireError(f"{name} has {len(rows):,} members; at most {MOST_RESULTS:,} are allowed")

    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise _wrong(f"{name}[{at}]", "an object", row)

    return rows


def expect_member(reply: Json, name: str, wanted: Any) -> None:
    """Raises `WireError` unless the member `name` of a reply is `wanted`."""
    value = reply.get(name)
    if value is not wanted and (isinstance(wanted, bool) or value != wanted):
        shown = f"'{one_line(wanted, 80)}'"
        if isinstance(wanted, bool):
            shown = str(wanted).lower()

        fault = _wrong(name, shown, value)
        error = reply.get("error") or reply.get("message")
        if isinstance(error, str):
            raise WireError(f"{fault}: {one_line(error, 300)}")

        raise fault


def read_answer(reply: Json, turns: Mapping[str, str]) -> tuple[str, SearchResults | None]:
    """An answer given by a service, and the results of its search if it reports them."""
    text = read_text(reply.get("text"), "text")
    if reply.get("results") is None:
        return text, None

    return text, read_results(reply, turns)


def read_usages(reply: Json, role: Role) -> tuple[Usage, ...]:
    """The model calls that a service reports. If it reports none, the tokens are unknown."""
    given = reply.get("usage")
    if given is None:
        return (Usage(role, "unknown", "unknown", None, None),)

    if not isinstance(given, list):
        return (_read_usage(given, "usage", role),)
    if len(given) > MOST_USAGES:
        raise WireError(f"usage has {len(given):,} members; at most {MOST_USAGES} are allowed")

    return tuple(_read_usage(row, f"usage[{at}]", role) for at, row in enumerate(given))


def _read_usage(row: Any, where: str, role: Role) -> Usage:
    if not isinstance(row, Mapping):
        raise _wrong(where, "an object", row)

    kind = row.get("kind", "chat")
    if kind not in ("chat", "embed"):
        raise _wrong(f"{where}.kind", "chat or embed", kind)
    if kind == "embed":
        role = Role.EMBED

    return Usage(
        role=role,
        model=_name(row.get("model"), f"{where}.model"),
        provider=_name(row.get("provider"), f"{where}.provider"),
        prompt_tokens=_tokens(row.get("prompt_tokens"), f"{where}.prompt_tokens"),
        completion_tokens=_tokens(row.get("completion_tokens"), f"{where}.completion_tokens"),
        cached_tokens=_tokens(row.get("cached_tokens"), f"{where}.cached_tokens") or 0,
        calls=1 if row.get("calls") is None else _tokens(row["calls"], f"{where}.calls") or 0,
    )


def _read_result(row: Json, where: str, turns: Mapping[str, str]) -> Retrieved:
    return Retrieved(
        text=read_text(row.get("text"), f"{where}.text"),
        turn_ids=_turns(row.get("turn_ids"), f"{where}.turn_ids", turns),
        score=read_score(row.get("score"), f"{where}.score"),
        time=_time(row.get("time"), f"{where}.time"),
    )


def read_text(value: Any, where: str) -> str:
    """A string. Raises `WireError` for another value, and for a string that is too long."""
    if not isinstance(value, str):
        raise _wrong(where, "a string", value)
    if len(value) > LONGEST_TEXT:
        raise WireError(
            f"{where} has {len(value):,} characters; at most {LONGEST_TEXT:,} are allowed"
        )

    return value


def _turns(value: Any, where: str, turns: Mapping[str, str]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _wrong(where, "a list of strings", value)

    for at, turn in enumerate(value):
        if not isinstance(turn, str):
            raise _wrong(f"{where}[{at}]", "a string", turn)
        # An id of another case means that the service mixes its namespaces: another case leaks
        # into this one.
        if turn not in turns:
            raise WireError(
                f"{where} names '{one_line(turn, 80)}', which memeval did not send for this case"
            )

    return tuple(map(turns.__getitem__, value))


def read_score(value: Any, where: str) -> float | None:
    """A finite number; None for None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(where, "a number", value)
    # Not `isfinite`, which fails for a larger int.
    if not abs(value) <= sys.float_info.max:
        raise WireError(f"{where} is not a finite number")

    return float(value)


def _time(value: Any, where: str) -> datetime | None:
    if value is None:
        return None

    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _wrong(where, "a time in ISO 8601", value) from None


def _name(value: Any, where: str) -> str:
    if value is None:
        return "unknown"
    if not isinstance(value, str):
        raise _wrong(where, "a string", value)

    return one_line(value, 200) or "unknown"


def _tokens(value: Any, where: str) -> int | None:
    if value is None:
        return None

    count = count_of(value)
    if count is None:
        raise _wrong(where, "a count", value)

    return count


def _wrong(where: str, wanted: str, value: Any) -> WireError:
    if value is None:
        return WireError(f"{where} must be {wanted}, but is missing or null")

    # A short form, which is cheap to show.
    if isinstance(value, str):
        value = value[:100]
    elif isinstance(value, list | Mapping):
        value = type(value).__name__

    return WireError(f"{where} must be {wanted}, but is {one_line(repr(value), 60)}")
