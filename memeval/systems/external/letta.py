"""A real Letta server, through its client: the conversation goes into an agent's archive, the
questions to the agent.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from memeval.config.checks import check_address
from memeval.errors import UserError, require_library
from memeval.llm.contract import asked_line, fill
from memeval.llm.metering import current_ledger
from memeval.llm.reply.chat import finish_reason
from memeval.llm.tokens import count_tokens
from memeval.records import (
    Answer,
    CorrectRequest,
    ForgetRequest,
    MemoryChunk,
    Query,
    Retrieved,
    Role,
    Usage,
)
from memeval.systems.base import (
    ANSWER,
    INGEST,
    RUNTIME,
    DumpItem,
    MemorySystem,
    SystemContext,
    SystemSettings,
)
from memeval.systems.external.letta_reply import LettaReply
from memeval.systems.external.letta_server import PERSONA_LABEL, Agent
from memeval.systems.external.remote import pool
from memeval.systems.forgetting import correct_in, corrected, forget_in, is_meant
from memeval.systems.tools import Tool, object_schema, search_tool
from memeval.text.redaction import keep_secret
from memeval.text.value_search import replace_value

PERSONA = (
    "I answer questions about a conversation that took place before. All of it is in my archival "
    "memory, each entry with its date, and nowhere else: I search my archival memory, with "
    "top_k={top_k}, before I answer. I answer in a few words, without saying where I found it. "
    "When my archival memory does not tell, I say that the conversation does not mention it."
)

CHOOSE, CHOOSE_ALL = (
    "\nReply with the label of the right choice alone.",
    "\nReply with the labels of all right choices alone.",
)

BY_TOKEN = "for a server's token:  export LETTA_API_KEY=... (or another name, in system.token_env)"
NOTES = {"letta_calls": "not cached: the server makes them"}
UNREAD = {"letta_retrieved": "unknown because a search result could not be read"}


@dataclass(frozen=True)
class LettaSettings(SystemSettings):
    base_url: str | None = field(default=None, metadata=INGEST)
    """URL of the server; None uses the environment variable LETTA_BASE_URL."""
    token_env: str = field(default="LETTA_API_KEY", metadata=RUNTIME)
    """Environment variable of the server's token; not needed for a server without one."""
    model: str = field(default="openai/gpt-4o-mini", metadata=ANSWER)
    """Handle of the agent's model, as the server knows it."""
    embedding: str = field(default="openai/text-embedding-3-small", metadata=INGEST)
    """Handle of the archive's embedding model."""
    persona: str | None = field(default=None, metadata=ANSWER)
    """Description of the agent and its task; `{top_k}` is replaced by the cell's value. None uses
    the built-in one.
    """

    @property
    def own_server(self) -> bool:
        return True


class Letta(MemorySystem):
    """An agent per case. Chunks are entries of its archive, dated by the conversation, and the
    agent searches them when it wants to.

    It answers with its own prompt and with the server's model: the cell's model and prompt are
    not used. Its calls are not cached here, so every repeat is paid for, and the agent sees the
    server's clock.

    The results of its searches, read from its reply, are the retrieved chunks, in that order. Its
    prompt names `top_k`, and it may search twice. Embedding tokens are counted here, because the
    server does not report them.

    The agent is deleted when the case is done, and at the latest when the process ends.

    Under `reader=tools` the cell's model takes the agent's place: it is given the search of the
    archive, and under `writer=tools` the tool that inserts an entry.
    """

    settings_type = LettaSettings
    settings: LettaSettings
    own_prompt: ClassVar[bool] = True
    # A class attribute, because the constructor calls `reset`, which closes the agent.
    _agent: Agent | None = None
    _sent: int = 0
    """Number of chunks in the archive."""

    def __init__(self, settings: LettaSettings, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self._address = _address_of(settings)
        # One thread per call that the server may get concurrently.
        self._threads = pool("letta", self._address)
        self.reset()

    @classmethod
    def resolve_settings(
        cls, settings: LettaSettings, *, has_language_model: bool
    ) -> LettaSettings:
        """The settings. Raises `UserError` if the library or the server's URL is missing."""
        library = "system 'letta' needs the letta-client library"
        require_library("letta_client", library, "letta")
        if not _address_of(settings):
            raise UserError(
                "system=letta needs a Letta server, but neither system.base_url nor "
                "LETTA_BASE_URL is set",
                "for example:  export LETTA_BASE_URL=http://localhost:8283",
            )

        option = "system.base_url" if settings.base_url else "LETTA_BASE_URL"
        check_address(option, _address_of(settings), BY_TOKEN)
        return settings

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self.close()
        self._chunks: list[MemoryChunk] = []
        self._inserted: list[str] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)

    def consolidate(self) -> None:
        settings = self.settings
        new = self._chunks[self._sent :]
        try:
            if self._agent is None:
                token = os.environ.get(settings.token_env)
                keep_secret(token)
                self._agent = Agent(self._address, token)
                persona = self._persona()
                self._agent.create(self.parts.case_id, settings.model, settings.embedding, persona)

            self._agent.remember([(chunk.text, chunk.time) for chunk in new])
        except BaseException:
            # The engine closes only a memory that was built completely.
            self.close()
            raise

        self._sent = len(self._chunks)
        self._meter_embedding([chunk.text for chunk in new])

    def forget(self, request: ForgetRequest) -> int:
        """Deletes the archive's entries that the request covers; returns their number."""
        assert self._agent is not None, "consolidate comes first"
        self._inserted = [text for text in self._inserted if not is_meant(request, text)]
        return forget_in(self._agent.texts, request, self._agent.delete)

    def correct(self, request: CorrectRequest) -> int:
        """Replaces the archive's entries that contain the old value; returns their number."""
        assert self._agent is not None, "consolidate comes first"
        changed = correct_in(self._agent.texts, request, self._agent.update)
        self._inserted = [replace_value(text, request.old, request.new) for text in self._inserted]
        self._chunks = corrected(self._chunks, request)
        self._meter_embedding(changed)
        return len(changed)

    async def probe(self, query: Query, depth: int) -> Sequence[Retrieved]:
        """Results of a search of the archive, without the agent."""
        return await self._search(query, depth)

    def _persona(self) -> str:
        return fill(self.settings.persona or PERSONA, {"top_k": str(self.parts.top_k)})

    def dump(self) -> list[DumpItem]:
        """The agent's memory block, which it can't write, so it is unchanged since creation; and
        the texts that a model inserted into its archive.
        """
        block = {"kind": "block", "label": PERSONA_LABEL, "text": self._persona()}
        return [block, *({"kind": "passage", "text": text} for text in self._inserted)]

    def tools(self) -> Sequence[Tool]:
        insert = Tool(
            name="archival_memory_insert",
            description=(
                "Adds one entry to the archive. It is found later by its sense. Name people, and "
                "say the date of what happened."
            ),
            parameters=object_schema(required=["content"], content={"type": "string"}),
            call=self._insert,
            writes=True,
        )
        return (search_tool(self._search, self.parts.top_k), insert)

    async def _search(self, query: Query, depth: int) -> Sequence[Retrieved]:
        assert self._agent is not None, "consolidate comes first"
        own_work = current_ledger().own_work
        texts = await own_work.in_pool(self._threads, self._agent.search, query.text, depth)
        self._meter_embedding([query.text])
        return self._match_hits([Retrieved(text, ()) for text in texts])

    async def _insert(self, content: str) -> str:
        if not content.strip():
            raise ValueError("the entry is empty")

        assert self._agent is not None, "consolidate comes first"
        own_work = current_ledger().own_work
        await own_work.in_pool(self._threads, self._agent.remember, [(content, None)])
        self._inserted.append(content)
        self._meter_embedding([content])
        return "Stored."

    async def answer(self, query: Query) -> Answer:
        assert self._agent is not None, "consolidate comes first"
        message = asked_line(query.asked_at) + query.shown
        if query.choices:
            message += CHOOSE_ALL if query.multi_select else CHOOSE

        own_work = current_ledger().own_work
        reply = await own_work.in_pool(self._threads, self._agent.ask, message)
        self._meter(reply)
        if reply.hits is None:
            # Without all results there is no ranking: a partial one would count as a miss.
            return Answer(text=reply.text, notes={**NOTES, **UNREAD})

        retrieved = self._match_hits(reply.hits)
        turns = tuple(chunk.turn_ids for chunk in retrieved)
        # The turns of a model's own text are unknown.
        ranking = turns if all(turns) else None
        return Answer(
            text=reply.text,
            retrieved=retrieved,
            ranking=ranking,
            context_tokens=sum(count_tokens(chunk.text) for chunk in retrieved),
            notes=NOTES,
        )

    def _match_hits(self, hits: Sequence[Retrieved]) -> tuple[Retrieved, ...]:
        """The chunks that the agent saw, each once, with its turns and its time.

        Of chunks with equal texts, the first one seen is assumed to be the first one said.
        """
        by_text: dict[str, list[MemoryChunk]] = defaultdict(list)
        for chunk in self._chunks:
            by_text[chunk.text.strip()].append(chunk)

        seen: dict[tuple[str, int], Retrieved] = {}
        for hit in hits:
            alike = by_text.get(hit.text.strip(), [])
            times = sum(1 for text, _ in seen if text == hit.text)
            if times and times >= len(alike):
                continue  # found by an earlier search

            source = alike[times] if alike else self._chunk_around(hit.text)
            seen[hit.text, times] = hit
            if source is not None:
                known = replace(hit, turn_ids=source.turn_ids, time=source.time)
                seen[hit.text, times] = known

        return tuple(seen.values())

    def _chunk_around(self, text: str) -> MemoryChunk | None:
        """The chunk that the server split `text` from; None if no chunk contains it."""
        return next((chunk for chunk in self._chunks if text.strip() in chunk.text), None)

    def _meter(self, reply: LettaReply) -> None:
        provider, _, model = self.settings.model.rpartition("/")
        usage = Usage(
            role=Role.ANSWER,
            model=model,
            provider=provider or "unknown",
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cached_tokens=reply.cached_tokens,
            calls=reply.steps,
        )
        current_ledger().usages.append(usage)
        current_ledger().note_end(Role.ANSWER, finish_reason(reply.stop_reason))
        self._meter_embedding(reply.queries)

    def _meter_embedding(self, texts: Sequence[str]) -> None:
        provider, _, model = self.settings.embedding.rpartition("/")
        if texts:
            usage = Usage(
                role=Role.EMBED,
                model=model,
                provider=provider or "unknown",
                prompt_tokens=sum(map(count_tokens, texts)),
                completion_tokens=0,
                calls=len(texts),
                estimated=True,
            )
            current_ledger().usages.append(usage)

    def close(self) -> None:
        if self._agent is not None:
            self._agent.close()

        self._agent, self._sent = None, 0


def _address_of(settings: LettaSettings) -> str:
    """The server's URL; empty if none is set."""
    return settings.base_url or os.environ.get("LETTA_BASE_URL", "")
