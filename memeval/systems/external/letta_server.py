"""One case's use of a Letta server: an agent with an archive, a conversation per question."""

import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from memeval.errors import ModelError
from memeval.llm.retry_after import retry_after
from memeval.systems.external.letta_reply import SEARCH, LettaReply, read_reply
from memeval.systems.external.remote import Leftover, fault, note_answer
from memeval.text.redaction import redacted

T = TypeVar("T")

TIMEOUT_S, TRIES = 300.0, 5
PERSONA_LABEL = "persona"
"""Label of the agent's one block of memory."""
LONGEST_WAIT_S = 60.0
TOO_LONG = "exceeds token limit"
"""Part of the server's message for an entry that is too long for its archive."""


class Agent:
    """One agent, deleted with its archive at `close`.

    It has one tool, the search of its archive, and a block of memory that it can't write. So no
    question influences another through its memory. Each question has its own conversation, which
    is deleted after the answer.
    """

    def __init__(
        self, address: str, token: str | None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Raises `UserError` if no server answers."""
        self._address, self._sleep = address, sleep
        self._client = _client(address, token)
        self._leftover: Leftover | None = None
        self._entries: dict[str, tuple[str, Mapping[str, datetime]]] = {}
        """Text and time of each entry of the archive, by its id."""
        try:
            self._call(self._client.health)
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
                # The base tools would let the agent write its memory, and one question would
                # change the next.
                include_base_tools=False,
                tools=[SEARCH],
                timezone="UTC",
                tags=["memeval"],
            )

        self._id: str = self._call(create).id
        # Before anything is stored: a process that is interrupted now still deletes the agent.
        self._leftover = Leftover(
            self, f"Letta agent {self._id} at {self._address}", _delete, self._client, self._id
        )
        note_answer(self._address)

    def remember(self, chunks: Sequence[tuple[str, datetime | None]]) -> None:
        """Inserts the texts of chunks into the archive with their times, by default in UTC.

        A chunk without a time gets the time of the server's clock.
        """
        # One by one, so that the server's clock shows the order of chunks without a time.
        for text, moment in chunks:
            dated = {}
            if moment is not None:
                # The event's time, and not that of the server's clock.
                dated["created_at"] = moment if moment.tzinfo else moment.replace(tzinfo=UTC)

            self._insert(text, dated)

    def _insert(self, text: str, dated: Mapping[str, datetime]) -> None:
        """Inserts a text, in halves if the server refuses it as too long."""
        import letta_client

        def create() -> bool:
            try:
                created = self._client.agents.passages.create(self._id, text=text, **dated)
            except letta_client.BadRequestError as error:
                if TOO_LONG not in _as_line(error) or len(text) < 2:
                    raise
                return False

            self._entries |= {entry.id: (entry.text, dated) for entry in created if entry.id}
            return True

        if not self._call(create):
            middle = len(text) // 2
            # At the end of a word, if one ends later.
            middle = max(middle, text.find(" ", middle))
            self._insert(text[:middle], dated)
            self._insert(text[middle:], dated)

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the archive's entries, by their ids."""
        return {name: text for name, (text, _) in self._entries.items()}

    def update(self, entry: str, text: str) -> None:
        """Replaces an entry, keeping its time."""
        # An entry can't be edited. The old one is deleted last, so that a failure loses nothing.
        self._insert(text, self._entries[entry][1])
        self.delete(entry)

    def delete(self, entry: str) -> None:
        passages = self._client.agents.passages
        self._call(lambda: passages.delete(entry, agent_id=self._id))
        del self._entries[entry]

    def search(self, query: str, top_k: int) -> list[str]:
        """The texts that a search of the archive finds, without the agent."""
        passages = self._client.agents.passages
        reply = self._call(lambda: passages.search(self._id, query=query, top_k=top_k))
        return [result.content for result in reply.results]

    def ask(self, message: str) -> LettaReply:
        """The reply to a message, the only one of its conversation.

        After a temporary failure, the message is sent again in a new conversation.
        """
        for attempt in range(TRIES):
            try:
                return self._ask(message)
            except _PassingError as error:
                if attempt == TRIES - 1:
                    raise ModelError(f"{error} (tried {TRIES} times)") from error

                wait_s = error.wait_s
                if wait_s is None:
                    wait_s = 2.0**attempt

                self._sleep(min(LONGEST_WAIT_S, wait_s))

        raise AssertionError("unreachable: the loop returns or raises")

    def _ask(self, message: str) -> LettaReply:
        import letta_client

        # A conversation per question: Letta's other way, to reset the agent's messages, would allow
        # one question at a time.
        conversation = self._call(lambda: self._client.conversations.create(agent_id=self._id)).id
        try:
            messages = [{"role": "user", "content": message}]
            # The client must not repeat this request: the agent would see the question twice in
            # one conversation. `ask` repeats it in a new one.
            events = self._client.with_options(max_retries=0).conversations.messages.create(
                conversation, messages=messages, streaming=True
            )
            return read_reply(list(events))
        except letta_client.APIStatusError as error:
            if error.status_code in (429, 502, 503):
                wait_s = retry_after(error.response.headers)
                raise _PassingError(_as_line(error), wait_s) from error

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

        # If this fails, it is deleted with its agent.
        with suppress(letta_client.APIError):
            self._client.conversations.delete(conversation)

    def _call(self, call: Callable[[], T]) -> T:
        """The result of `call`; the client itself retries after temporary failures."""
        import letta_client

        try:
            return call()
        except letta_client.APIConnectionError as error:
            cause = error.__cause__ or error
            message = f"no answer from the Letta server at {self._address}: {cause}"
            hint = "Is the server running, and is system.base_url or LETTA_BASE_URL correct?"
            raise fault(self._address, message, hint) from error
        except letta_client.APIError as error:
            message = f"the Letta server at {self._address} refused: {_as_line(error)}"
            hint = "Does it know system.model and system.embedding, and is its token set?"
            raise fault(self._address, message, hint) from error

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

    # The client is the synchronous one: the asynchronous one can't be closed from a plain method.
    # Redirects are not followed, so that the conversation is sent to no other URL.
    connections = DefaultHttpxClient(base_url=address, timeout=TIMEOUT_S, follow_redirects=False)
    client = Letta(
        base_url=address, timeout=TIMEOUT_S, max_retries=TRIES - 1, http_client=connections
    )
    # Otherwise the client uses LETTA_API_KEY even if token_env names another variable.
    client.api_key = token
    return client


def _delete(client: Any, agent: str) -> None:
    try:
        archives = list(client.archives.list(agent_id=agent))
        client.agents.delete(agent)
        # The server keeps the archives of a deleted agent.
        for archive in archives:
            client.archives.delete(archive.id)
    finally:
        client.close()


def _as_line(error: Any) -> str:
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    detail = None
    if isinstance(body, dict):
        detail = body.get("detail") or body.get("message") or body.get("error")

    text = redacted(" ".join(str(detail or error).split()))
    if status:
        text = f"HTTP {status}: {text}"

    return text[:300]
