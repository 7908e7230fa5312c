"""One case's memories at mem0's hosted API, through mem0's own client."""

import json
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from functools import partial
from itertools import count
from typing import Any, TypeVar

from memeval.config.checks import check_address
from memeval.errors import ModelError, UserError
from memeval.llm.metering import current_ledger
from memeval.records import MemoryChunk, Role, Usage
from memeval.systems.external.remote import Leftover, fault, note_answer, pool
from memeval.text.shown import one_line

T = TypeVar("T")

HOST = "https://api.mem0.ai"
LONGEST_S = 600.0
"""The longest wait for an event, in seconds; an addition still under way then fails the case. Also
the longest pause before a retry.
"""
FIRST_POLL_S, SLOWEST_POLL_S = 0.25, 5.0
TRIES, TIMEOUT_S = 6, 60.0
PAGE_SIZE = 100
"""Memories listed per request."""


class CloudMemory:
    """A user at the host, named after the case and unique, so that no two runs share it.

    The host processes additions in the background: `add` returns once it reports all of them done.
    If the host extracts memories, each chunk is sent only after the previous one is done, because
    extraction depends on the known memories. Dates are sent as `timestamp` and as metadata, and
    come back as metadata, as do the turn ids. `close` deletes the user.
    """

    def __init__(
        self, host: str, key: str, case: str, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._host, self._sleep = host, sleep
        # mem0 refuses ids with spaces.
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", case) or "case"
        self.user = f"memeval-{name}-{uuid.uuid4().hex[:12]}"
        self._client = _connect(host, key)
        self._leftover = Leftover(
            self, f"mem0 user {self.user} at {host}", _delete, self._client, self.user
        )

    def add(self, chunks: Sequence[MemoryChunk], *, infer: bool) -> None:
        """Stores the chunks, and waits until they can be found."""
        under_way: list[str] = []
        for chunk in chunks:
            fields = {"user_id": self.user, "infer": infer, **_date_fields(chunk)}
            sent = self._try(partial(self._client.add, chunk.text, **fields))
            if event := sent.get("event_id"):
                under_way.append(event)

            # Extraction depends on what is already known, so the order of the additions matters.
            while infer and under_way:
                self._wait(under_way.pop())

        for event in under_way:
            self._wait(event)
        if chunks:
            _meter(Role.INGEST, len(chunks))

    def _wait(self, event: str) -> None:
        waited, pause = 0.0, FIRST_POLL_S
        while (status := self._try(lambda: self._status(event))) != "SUCCEEDED":
            if status == "FAILED":
                raise ModelError(f"mem0 failed to add a memory (event {event})")

            if waited >= LONGEST_S:
                raise ModelError(
                    f"mem0 has not added a memory within {LONGEST_S:g} s (event {event}: {status})"
                )

            self._sleep(pause)
            waited += pause
            pause = min(2 * pause, SLOWEST_POLL_S)

    def _status(self, event: str) -> str:
        """The event's status, over the client's own connection: the client has no method for it."""
        from mem0.client.utils import api_error_handler  # type: ignore[import-untyped]

        @api_error_handler  # type: ignore[untyped-decorator]
        def ask() -> Mapping[str, Any]:
            response = self._client.client.get(f"/v1/event/{event}/")
            response.raise_for_status()
            body: Mapping[str, Any] = response.json()
            return body

        return str(ask().get("status"))

    def texts(self, user: str) -> dict[str, str]:
        """The texts of all memories, by their ids. A case at the host has only one user."""
        texts: dict[str, str] = {}
        asked = {"filters": {"user_id": self.user}, "page_size": PAGE_SIZE}
        for page in count(1):
            reply = self._try(partial(self._client.get_all, page=page, **asked))
            texts |= {str(row["id"]): str(row["memory"]) for row in reply["results"]}
            if not reply.get("next"):
                break

        return texts

    def delete(self, name: str) -> None:
        self._try(partial(self._client.delete, name))

    def update(self, name: str, text: str) -> None:
        self._try(partial(self._client.update, name, text=text))

    async def search(
        self, text: str, top_k: int, threshold: float, user: str
    ) -> list[dict[str, Any]]:
        """Memories, best first: `memory`, `score` and `metadata`.

        The metadata has the `turn_ids` and the `date` of the chunk that a memory came from.
        """
        own_work, threads = current_ledger().own_work, pool("mem0", self._host)
        hits = await own_work.in_pool(threads, self._search, text, top_k, threshold)
        _meter(Role.EMBED, 1)
        return hits

    def _search(self, text: str, top_k: int, threshold: float) -> list[dict[str, Any]]:
        filters = {"user_id": self.user}
        reply = self._try(
            lambda: self._client.search(text, filters=filters, top_k=top_k, threshold=threshold)
        )
        return list(map(_read, reply["results"]))

    def _try(self, call: Callable[[], T]) -> T:
        """The result of `call`, which is retried after temporary failures.

        A request that timed out is not retried: the host may have processed it.
        """
        from mem0.exceptions import (  # type: ignore[import-untyped]
            MemoryError,
            NetworkError,
            RateLimitError,
        )

        for attempt in range(TRIES):
            try:
                return call()
            except MemoryError as error:
                passing = (
                    isinstance(error, RateLimitError | NetworkError)
                    and error.error_code != "NET_TIMEOUT"
                )
                if attempt == TRIES - 1 or not passing:
                    why = f"{error.error_code}: {one_line(error.message, 300)}"
                    raise ModelError(f"mem0: {why}") from error

                asked = error.debug_info.get("retry_after", FIRST_POLL_S * 2**attempt)
                self._sleep(min(LONGEST_S, max(0.0, asked)))

        raise AssertionError("unreachable: the loop returns or raises")

    def close(self) -> None:
        """Deletes the user and all memories, without waiting for it."""
        self._leftover.discard()


def _meter(role: Role, calls: int) -> None:
    """Meters calls whose tokens the host does not report. Unknown is not zero."""
    usage = Usage(role, model="mem0", provider="mem0", calls=calls)
    current_ledger().usages.append(usage)


def _date_fields(chunk: MemoryChunk) -> dict[str, Any]:
    """Metadata that comes back with a memory, and the chunk's time as the memory's own.

    A time without a zone counts as UTC.
    """
    date = chunk.time.isoformat() if chunk.time else ""
    metadata = {"turn_ids": json.dumps(chunk.turn_ids), "date": date}
    if chunk.time is None:
        return {"metadata": metadata}

    moment = chunk.time if chunk.time.tzinfo else chunk.time.replace(tzinfo=UTC)
    return {"metadata": metadata, "timestamp": int(moment.timestamp())}


def _read(row: Mapping[str, Any]) -> dict[str, Any]:
    """A search result in the form that the library returns."""
    metadata = row.get("metadata") or {}
    turns, date = json.loads(metadata.get("turn_ids") or "[]"), metadata.get("date") or None
    return {
        "memory": row["memory"],
        "score": row.get("score"),
        "metadata": {"turn_ids": turns, "date": date},
    }


def _delete(client: Any, user: str) -> None:
    try:
        client.delete_all(user_id=user)
        client.delete_users(user_id=user)
    finally:
        client.client.close()


def _connect(host: str, key: str) -> Any:
    """A client whose key the host accepted."""
    import httpx
    from mem0 import MemoryClient  # type: ignore[import-untyped]

    check_address("system.host", host, "for the key:  export MEM0_API_KEY=...")
    # Redirects are not followed, so that the conversation is sent to no other URL.
    connections = httpx.Client(timeout=TIMEOUT_S)
    try:
        client = MemoryClient(api_key=key, host=host, client=connections)
    except httpx.HTTPError as error:
        connections.close()
        message = f"no answer from mem0's API at {host}: {error}"
        raise fault(host, message, "Is the server running, and is system.host correct?") from error
    except ValueError as error:  # raised by the client for a refused key
        connections.close()
        raise UserError(f"mem0's API at {host} refused the key: {one_line(error)}") from error

    note_answer(host)
    return client
