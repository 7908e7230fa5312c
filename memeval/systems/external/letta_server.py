"""A Letta server as one case sees it: an agent with an archive, asked in conversations that know
nothing of each other.
"""

from __future__ import annotations

import ast
import json
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

from memeval.errors import ModelError
from memeval.redaction import redacted
from memeval.shown import one_line
from memeval.systems.external.remote import Leftover, answered, fault

T = TypeVar("T")

TIMEOUT_S, TRIES = 300.0, 5
MAX_CONCURRENCY = 8
"""Requests under way at a server, all cases of a process together."""
SEARCH = "archival_memory_search"
PERSONA_LABEL = "persona"
"""Label of the agent's one block of memory."""
LONGEST_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage as the agent saw it."""

    text: str
    score: float | None = None


@dataclass
class Reply:
    """What an agent did about one message."""

    text: str = ""
    """Its last words."""
    stop_reason: str = ""
    queries: list[str] = field(default_factory=list)
    """What it searched its archive for."""
    hits: list[Hit] | None = field(default_factory=list)
    """What it found, search by search, each best first; None where a result could not be read."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0
    steps: int = 1


class Agent:
    """One agent, deleted with its archive at `close`.

    It has one tool, the search of its archive, and a block of memory that it can't write, so no
    question reaches another through its memory. Each question has a conversation of its own, which
    is deleted once it is answered. Letta's other way, resetting an agent's messages, allows one
    question at a time.
    """

    def __init__(
        self, address: str, token: str | None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Raises `UserError` where no server answers."""
        self._address, self._token, self._sleep = address, token, sleep
        self._client = _client(address, token)
        self._leftover: Leftover | None = None
        try:
            self._done(self._client.health)
        except BaseException:
            self._client.close()
            raise

    def create(self, case: str, model: str, embedding: str, persona: str) -> None:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", f"memeval-{case}-{uuid.uuid4().hex[:12]}")

        def create() -> Any:
            return self._client.agents.create(
                agent_type="letta_v1_agent",
                name=name,
                model=model,
                embedding=embedding,
                memory_blocks=[{"label": PERSONA_LABEL, "value": persona, "read_only": True}],
                include_base_tools=False,
                tools=[SEARCH],
                timezone="UTC",
                tags=["memeval"],
            )

        self._id: str = self._done(create).id
        self._leftover = Leftover(
            self, f"Letta agent {self._id} at {self._address}", _deletion(self._client, self._id)
        )
        answered(self._address)

    def remember(self, passages: Sequence[tuple[str, datetime | None]]) -> None:
        """Inserts texts into the archive with their times, UTC where they name no zone.

        A text without a time gets the server's clock.
        """
        # One by one: texts that match a search equally come in the order in which they went in.
        for text, moment in passages:
            self._insert(text, moment)

    def _insert(self, text: str, moment: datetime | None) -> None:
        dated = {}
        if moment is not None:
            dated["created_at"] = moment if moment.tzinfo else moment.replace(tzinfo=UTC)

        self._done(lambda: self._client.agents.passages.create(self._id, text=text, **dated))

    def ask(self, message: str) -> Reply:
        """The reply to a message, the first of its conversation.

        After a failure that may pass, it is sent again in a new conversation.
        """
        for attempt in range(TRIES):
            try:
                return self._ask(message)
            except _PassingError as error:
                if attempt == TRIES - 1:
                    raise ModelError(f"{error} (tried {TRIES} times)") from error

                wait_s = error.wait_s if error.wait_s is not None else 2.0**attempt
                self._sleep(min(LONGEST_WAIT_S, wait_s))

        raise AssertionError("unreachable: the loop returns or raises")

    def _ask(self, message: str) -> Reply:
        import letta_client

        conversation = self._done(lambda: self._client.conversations.create(agent_id=self._id)).id
        try:
            words = [{"role": "user", "content": message}]
            events = self._client.with_options(max_retries=0).conversations.messages.create(
                conversation, messages=words, streaming=True
            )
            return _reply(list(events))
        except letta_client.APIStatusError as error:
            if error.status_code in (429, 502, 503):
                raise _PassingError(
                    _as_line(error), _retry_after_s(error.response.headers)
                ) from error

            raise ModelError(_as_line(error)) from error
        except letta_client.APITimeoutError as error:
            raise ModelError(f"no answer within {TIMEOUT_S:g} s") from error
        except letta_client.APIConnectionError as error:
            raise _PassingError(f"connection failed: {error.__cause__ or error}", None) from error
        except letta_client.APIError as error:
            raise ModelError(_as_line(error)) from error
        finally:
            self._forget(conversation)

    def _forget(self, conversation: str) -> None:
        import letta_client

        try:
            self._client.conversations.delete(conversation)
        except letta_client.APIError:
            return  # it goes with its agent

    def _done(self, call: Callable[[], T]) -> T:
        """What `call` returns; the client itself repeats calls that may pass."""
        import letta_client

        try:
            return call()
        except letta_client.APIConnectionError as error:
            message = (
                f"no answer from the Letta server at {self._address}: {error.__cause__ or error}"
            )
            raise fault(
                self._address, message, "is it up, and system.base_url or LETTA_BASE_URL right?"
            ) from error
        except letta_client.APIError as error:
            hint = (
                "are system.model and system.embedding handles that it knows, and is its token set?"
            )
            raise fault(
                self._address,
                f"the Letta server at {self._address} refused: {_as_line(error)}",
                hint,
            ) from error

    def close(self) -> None:
        """Deletes the agent and its archive, without waiting for it."""
        if self._leftover is None:
            self._client.close()
        else:
            self._leftover.discard()


class _PassingError(Exception):
    def __init__(self, message: str, wait_s: float | None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


def _client(address: str, token: str | None) -> Any:
    from letta_client import DefaultHttpxClient, Letta

    # No redirect is followed: the conversation goes to no other address.
    connections = DefaultHttpxClient(base_url=address, timeout=TIMEOUT_S, follow_redirects=False)
    client = Letta(
        base_url=address, timeout=TIMEOUT_S, max_retries=TRIES - 1, http_client=connections
    )
    # Else the client uses LETTA_API_KEY, whatever token_env says.
    client.api_key = token
    return client


def _deletion(client: Any, agent: str) -> Callable[[], None]:
    def delete() -> None:
        try:
            archives = [archive.id for archive in client.archives.list(agent_id=agent)]
            client.agents.delete(agent)
            # The server keeps the archives of a deleted agent.
            for archive in archives:
                client.archives.delete(archive)
        finally:
            client.close()

    return delete


@cache
def pool(address: str) -> ThreadPoolExecutor:
    """The threads in which a server is called, with the synchronous client.

    The asynchronous one can't be closed from a plain method.
    """
    return ThreadPoolExecutor(MAX_CONCURRENCY, thread_name_prefix=f"letta {address}")


def _as_line(error: Any) -> str:
    """The error on one line."""
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    detail = (
        body.get("detail") or body.get("message") or body.get("error")
        if isinstance(body, dict)
        else None
    )
    text = redacted(" ".join(str(detail or error).split()))
    return (f"HTTP {status}: {text}" if status else text)[:300]


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    try:
        return float(headers["retry-after"])
    except (KeyError, ValueError):
        return None


def _reply(events: Sequence[Any]) -> Reply:
    """The reply that the events of a stream make.

    Raises `ModelError` where the server reports a failure, or where the agent said nothing.
    """
    reply, called, said = Reply(), dict[str, str](), dict[str, str]()
    for event in events:
        match event.message_type:
            case "error_message":
                raise ModelError(f"the Letta server failed: {one_line(event.message)}")
            case "tool_call_message":
                called |= _searches(event)
                reply.queries = list(called.values())
            case "tool_return_message" if event.tool_call_id in called or event.name == SEARCH:
                found = hits_of(event.tool_return) if event.status == "success" else []
                reply.hits = None if reply.hits is None or found is None else reply.hits + found
            case "assistant_message":
                said[event.id] = said.get(event.id, "") + _text(event.content)
            case "stop_reason":
                reply.stop_reason = str(event.stop_reason)
            case "usage_statistics":
                _meter(reply, event)

    reply.text = next((text.strip() for text in reversed(said.values()) if text.strip()), "")
    if not reply.text:
        raise ModelError(f"the agent gave no answer (stop_reason: {reply.stop_reason or 'none'})")

    return reply


def _searches(event: Any) -> dict[str, str]:
    """Queries of the searches that an event calls for, by the call's id."""
    several = isinstance(event.tool_calls, list) and event.tool_calls
    calls = event.tool_calls if several else [event.tool_call]
    queries = {}
    for call in calls:
        if call.name == SEARCH:
            try:
                queries[call.tool_call_id] = str(json.loads(call.arguments).get("query", ""))
            except (ValueError, AttributeError):
                queries[call.tool_call_id] = ""

    return queries


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)


def _meter(reply: Reply, usage: Any) -> None:
    reply.prompt_tokens, reply.completion_tokens = usage.prompt_tokens, usage.completion_tokens
    reply.cached_tokens, reply.steps = usage.cached_input_tokens or 0, usage.step_count or 1


def hits_of(returned: str) -> list[Hit] | None:
    """The passages in what the search tool returned; None where it can't be read.

    The server gives the agent a list of `{timestamp, content, tags, relevance}`, written as Python
    or as JSON and in some releases inside `{message}` or `{results}`; a long one is cut off.
    """
    for read in (json.loads, ast.literal_eval):
        try:
            return _hits(read(returned))
        except (ValueError, SyntaxError, TypeError, KeyError, AttributeError):
            continue

    return None


def _hits(value: Any) -> list[Hit] | None:
    if isinstance(value, str):
        return hits_of(value)
    if isinstance(value, dict):
        return _hits(value["results"] if "results" in value else value["message"])
    if isinstance(value, tuple):  # (results, count)
        return _hits(value[0])

    rows = [] if value is None else value
    return [
        Hit(text=str(row["content"]), score=(row.get("relevance") or {}).get("rrf_score"))
        for row in rows
    ]
