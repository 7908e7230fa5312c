"""Contracts of other benchmarks that some memories already support: `system.contract`."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, ClassVar

from msgspec import Struct, field

from memeval.metrics.quotation import Quotations, lines_of_turns
from memeval.records import Finite, format_time
from memeval.systems.external import wire
from memeval.text.names import text_digest

Post = Callable[[str, Mapping[str, Any]], Awaitable[wire.Json]]
Chunk = Mapping[str, Any]
"""A chunk as built by `wire.chunk_json`."""

OWN = "memeval"
"""The contract of docs/http_memory.openapi.yaml."""
ROLES = ("user", "assistant")


class _Memory(Struct):
    text: wire.ResultText = field(name="memory")
    id: Any = None
    score: Finite | None = None
    created_at: Any = None


class _Content(_Memory, kw_only=True):
    text: wire.ResultText = field(name="content")


class _Memories(Struct):
    rows: wire.Results[_Memory] = field(name="results")


class _Data(Struct):
    rows: wire.Results[_Content] = field(name="data")


class Contract(ABC):
    """Turns the operations on one case's memory into requests of a contract.

    No contract can empty the memory of a single case, so each reset begins with a new, unused user.
    The turns of a result are those of the chunk with its id, or those that it quotes.
    """

    health: ClassVar[str | None] = None
    """Path that replies `{"ok": true}` to GET."""
    gives_ids: ClassVar[bool] = False
    """Whether results have the ids of chunks."""
    _found: ClassVar[type[_Memories] | type[_Data]]
    """The reply to a search."""
    _limit_at: ClassVar[str]
    """The member of a search request that limits its number of results."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._begin("")

    def _begin(self, namespace: str) -> None:
        self._user = f"{namespace}-{secrets.token_hex(4)}"
        self._ingests = 0
        self._chunks: dict[str, Chunk] = {}
        self._times: set[datetime | None] = set()
        self._quotations: Quotations[tuple[str, str]] | None = None

    async def call(self, operation: str, body: Mapping[str, Any]) -> wire.Json:
        """The reply to an operation of memeval's own contract."""
        if operation == "reset":
            self._begin(str(body["namespace"]))
            return {}
        if operation == "ready":
            # Under both contracts, everything that `/add` has accepted can be searched.
            return {"ready": True}
        if operation == "ingest":
            await self._ingest(body["chunks"])
            return {}

        search = {"query": body["query"], "user_id": self._user, self._limit_at: body["top_k"]}
        reply = wire.read(await self._post("/search", search), self._found)
        return {"results": list(map(self._result, reply.rows))}

    async def _ingest(self, chunks: Sequence[Chunk]) -> None:
        for request in self._requests(chunks):
            self._check_stored(await self._post("/add", request), request)

        for chunk in chunks:
            self._chunks[chunk["id"]] = chunk
            self._times.add(_time_of(chunk["time"]))

        self._ingests += 1
        self._quotations = None

    @abstractmethod
    def _requests(self, chunks: Sequence[Chunk]) -> Iterator[dict[str, Any]]:
        """Requests that store some chunks."""

    @abstractmethod
    def _check_stored(self, reply: wire.Json, request: wire.Json) -> None:
        """Raises `WireError` for a reply that does not confirm that a request was stored."""

    def _result(self, row: _Memory) -> dict[str, Any]:
        """A result in memeval's own form."""
        turns = self._turns_of(row.id, row.text)
        return {"text": row.text, "score": row.score, "turn_ids": turns}

    def _turns_of(self, chunk_id: Any, text: str) -> list[str]:
        if isinstance(chunk_id, str) and chunk_id in self._chunks:
            return list(self._chunks[chunk_id]["turn_ids"])

        if self._quotations is None:
            line_of: dict[tuple[str, str], str] = {}
            for chunk in self._chunks.values():
                lines = lines_of_turns(chunk["content"], chunk["turn_ids"], chunk["speakers"])
                for turn, line in lines:
                    line_of[chunk["id"], turn] = line

            self._quotations = Quotations(line_of)

        turns = (turn for _, turn in self._quotations.found_in(text))
        return list(dict.fromkeys(turns))


class AgentMemoryLeaderboard(Contract):
    """`aml`: messages in sessions. The ids of results are the service's own.

    Source: the contract of the Agent Memory Leaderboard (agentmemories.ai), July 2026.
    """

    health = "/health"
    _found, _limit_at = _Data, "top_k"

    def _requests(self, chunks: Sequence[Chunk]) -> Iterator[dict[str, Any]]:
        for session, members in groupby(chunks, key=lambda chunk: str(chunk["session_id"])):
            batch = list(members)
            named = "\0".join([self._user, str(self._ingests), *(chunk["id"] for chunk in batch)])
            yield {
                # A request that is sent again changes nothing; a session imported again is stored.
                "request_id": f"add-{text_digest(named)[:32]}",
                "messages": list(map(_message, batch)),
                "user_id": self._user,
                "session_id": session,
            }

    def _check_stored(self, reply: wire.Json, request: wire.Json) -> None:
        wire.expect_member(reply, "success", True)
        for name in ("request_id", "user_id", "session_id"):
            wire.expect_member(reply, name, request[name])

    def _result(self, row: _Memory) -> dict[str, Any]:
        result = super()._result(row)
        created = _time_of(row.created_at)
        if created is None or created not in self._times:
            # The service's own clock is unrelated to the conversation.
            return result

        # Dated like the chunks of all systems, as the reader sees only the text.
        date = f"[{format_time(created)}]"
        if not result["text"].startswith(date):
            result["text"] = f"{date} {result['text']}"

        return result | {"time": created.isoformat()}


class AddSearchReset(Contract):
    """`add_search_reset`: texts under memeval's ids, which the results contain.

    `DELETE /reset` empties the memories of all users, including concurrent runs: it is not called.

    Source: the contract of PrecisionMemBench, SUBMITTING.md.
    """

    gives_ids = True
    _found, _limit_at = _Memories, "limit"

    def _requests(self, chunks: Sequence[Chunk]) -> Iterator[dict[str, Any]]:
        for chunk in chunks:
            yield {
                "text": chunk["text"],
                "user_id": self._user,
                "metadata": {"beliefId": chunk["id"]},
            }

    def _check_stored(self, reply: wire.Json, request: wire.Json) -> None:
        wire.expect_member(reply, "ok", True)


CONTRACTS: Mapping[str, type[Contract]] = {
    "aml": AgentMemoryLeaderboard,
    "add_search_reset": AddSearchReset,
}


def _message(chunk: Chunk) -> dict[str, Any]:
    """A chunk as a message: undated, as the message has its own time."""
    speakers = [str(speaker).casefold() for speaker in chunk["speakers"]]
    role, content = "user", chunk["content"]
    if len(speakers) == 1 and speakers[0] in ROLES:
        role = speakers[0]
        content = content.removeprefix(f"{chunk['speakers'][0]}: ")

    message = {"role": role, "content": content}
    if chunk["time"]:
        message["timestamp"] = chunk["time"]

    return message


def _time_of(value: Any) -> datetime | None:
    """The wall-clock time of an ISO 8601 string; None if it is not one."""
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except (TypeError, ValueError):
        return None
