"""A memory outside this process, and the operations called on it: `reset`, `ingest`, `ready`, and
`search` or `answer`. A `Service` sends them over HTTP, a program's pipes or MCP.
"""

import asyncio
import logging
import re
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from msgspec import structs

from memeval.errors import MemevalError, MemoryServiceError, ModelError, UserError, unknown
from memeval.llm.metering import current_ledger
from memeval.llm.tokens import count_tokens
from memeval.records import (
    Answer,
    CorrectRequest,
    ForgetRequest,
    IngestHealth,
    MemoryChunk,
    Query,
    Retrieved,
    Role,
)
from memeval.systems.base import (
    ANSWER,
    INGEST,
    IS_ESTIMATE,
    LINES,
    MORE_THAN_ASKED,
    NOISE,
    POSITIVE,
    RUNTIME,
    RecallSystem,
    SystemContext,
    SystemSettings,
)
from memeval.systems.external import wire
from memeval.systems.external.conversation_lines import CaseLines
from memeval.systems.external.server_replies import error_in, reports_no_results
from memeval.systems.external.service import EstimateService, Service
from memeval.text.names import text_digest
from memeval.text.shown import counted, one_line

_log = logging.getLogger(__name__)

WITHOUT_IDS = "results_without_turn_ids"
WITHOUT_TEXT = "results_without_text"
USAGE_UNKNOWN = "service_usage"
FIRST_POLL_S, SLOWEST_POLL_S = 0.05, 5.0
FORGET_S = 10.0
"""The longest wait for a service to forget a finished case."""

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


def check_pattern(option: str, pattern: str | None) -> None:
    """Raises `UserError` for a pattern that is not a regular expression."""
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise UserError(f"{option} is not a regular expression: {error}") from error


@dataclass(frozen=True)
class ServedSettings(SystemSettings):
    is_served: ClassVar[bool] = True
    batch_size: int = field(default=32, metadata=INGEST | POSITIVE)
    """Chunks per request."""
    version: int = field(default=1, metadata=INGEST)
    """Increase it when the service behind the URL has changed, which memeval can't detect."""
    request_timeout_s: float = field(default=60.0, metadata=RUNTIME | POSITIVE)
    """Time limit of one request, in seconds."""
    ready_timeout_s: float = field(default=600.0, metadata=RUNTIME | POSITIVE)
    """Maximum wait until everything sent can be found, in seconds."""
    forget: bool = field(default=True, metadata=RUNTIME)
    """Whether to ask the service to forget a finished case."""
    no_results: str | None = field(default=None, metadata=ANSWER)
    """Regular expression for the service's message when it found nothing, if that is not one of the
    common forms, such as `No results found`.
    """

    @property
    def offered(self) -> Collection[str]:
        """The operations among `forget` and `correct` that the service offers."""
        return ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pattern("system.no_results", self.no_results)


@dataclass(frozen=True)
class AnsweringSettings(ServedSettings):
    """Settings of served memories that may answer questions themselves."""

    answers: bool = field(default=False, metadata=ANSWER)
    """Whether the service answers itself; otherwise the cell's reader answers from its results."""

    operations: tuple[str, ...] = field(default=(), metadata=INGEST)
    """The operations among `forget` and `correct` that the service offers; the others count as not
    supported."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.operations:
            if name not in wire.CHANGES:
                raise unknown("operation in system.operations", name, wire.CHANGES)

    @property
    def own_prompt(self) -> bool:
        return self.answers

    @property
    def offered(self) -> Collection[str]:
        return self.operations


class ServedMemory(RecallSystem):
    """A case's memory at a service, in its own namespace.

    The service is sent chunks and questions, but no gold. The memory can't be saved: it is built
    again if a run needs it.
    """

    in_thread: ClassVar[bool] = False
    settings_type = ServedSettings
    settings: Any

    def __init__(
        self, settings: Any, parts: SystemContext, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        super().__init__(settings, parts)
        self._sleep = sleep
        self._service: Service | None = None
        self.namespace = namespace_of(parts)
        self._was_reset = False
        self._forget_all()

    @abstractmethod
    def open_service(self) -> Service:
        """Opens the service of this case; called on the event loop."""

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    @classmethod
    def knows_users(cls, settings: Any) -> bool:
        return True

    async def reset(self) -> None:
        self._forget_all()
        await self._call("reset", {}, wire.check_done)
        self._was_reset = True

    def _namespace_of(self, user: str) -> str:
        """The namespace of a user: each user that shares this case's store has its own."""
        return f"{self.namespace}-{user}" if user else self.namespace

    async def begin_namespace(self, namespace: str) -> None:
        """Creates the empty namespace of another user."""
        await self._call("reset", {"namespace": namespace}, wire.check_done)

    def _forget_all(self) -> None:
        self._namespaces = [self.namespace]
        self._waiting: list[MemoryChunk] = []
        self._ids = wire.SentIds(self.namespace)
        run = str(self.parts.extra.get("origin", ""))
        self._sent_texts = CaseLines(run, self.parts.extra.get(LINES))
        self._sent = self._lost = 0
        self._tells_losses = False

    async def ingest(self, chunk: MemoryChunk) -> None:
        self._waiting.append(chunk)
        if len(self._waiting) >= self.settings.batch_size:
            await self._flush()

    async def consolidate(self) -> None:
        await self._flush()

    async def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for user, batch in groupby(waiting, key=lambda chunk: chunk.user):
            await self._send(user, list(batch))

    async def _send(self, user: str, batch: Sequence[MemoryChunk]) -> None:
        namespace = self._namespace_of(user)
        if namespace not in self._namespaces:
            self._namespaces.append(namespace)
            await self.begin_namespace(namespace)

        for chunk in batch:
            # Before the chunk is sent, because another case may find it afterwards.
            self._sent_texts.add(chunk.text, chunk.content)

        chunks = [wire.chunk_json(chunk, self._ids) for chunk in batch]
        body = {"namespace": namespace, "chunks": chunks}
        lost = await self._call(
            "ingest", body, lambda reply: wire.read_lost(reply, len(batch)), counts=True
        )
        self._sent += len(batch)
        self._lost += lost or 0
        # A service that never reports losses leaves the count to the engine (`health`).
        self._tells_losses = self._tells_losses or lost is not None

    async def await_ready(self) -> None:
        for namespace in self._namespaces:
            await self._await_namespace(namespace)

    async def _await_namespace(self, namespace: str) -> None:
        waited, pause = 0.0, FIRST_POLL_S
        began = time.monotonic()
        while True:
            if await self._call("ready", {"namespace": namespace}, wire.read_ready):
                return

            # The larger of both: requests take time that the pauses don't include, and in a test
            # the pauses take none.
            waited = max(waited, time.monotonic() - began)
            if waited >= self.settings.ready_timeout_s:
                raise MemoryServiceError(
                    f"{self._name} was not ready within {self.settings.ready_timeout_s:g} s "
                    "(system.ready_timeout_s)"
                )

            await self._sleep(pause)
            waited += pause
            pause = min(2 * pause, SLOWEST_POLL_S)

    async def forget(self, request: ForgetRequest) -> int | None:
        body = {"words": request.words, "about": request.about, "scope": request.scope.value}
        return await self._change("forget", {"namespace": self._namespace_of(request.user), **body})

    async def correct(self, request: CorrectRequest) -> int | None:
        body = {"words": request.words, "old": request.old, "new": request.new}
        namespace = self._namespace_of(request.user)
        return await self._change("correct", {"namespace": namespace, **body})

    async def _change(self, operation: str, body: Mapping[str, Any]) -> int | None:
        if operation not in self.settings.offered:
            return None

        return await self._call(operation, body, wire.read_items, counts=True)

    def health(self) -> IngestHealth | None:
        if not self._tells_losses:
            return None

        return IngestHealth(asked=self._sent, stored=self._sent - self._lost, lost=self._lost)

    async def recall(self, query: Query, depth: int) -> list[Retrieved]:
        search = await self._search(query, depth)
        return list(search.results)

    async def answer(self, query: Query) -> Answer:
        if self.settings.own_prompt:
            return await self._answer_of_service(query)

        search = await self._search(query, max(self.parts.top_k, self.ranking_depth))
        answer = await self.answer_from(query, search.results)
        # A ranking with gaps would count as a miss.
        if search.without_ids:
            return replace(answer, ranking=None)

        return answer

    async def _search(self, query: Query, depth: int) -> wire.SearchResults:
        body = {"namespace": self._namespace_of(query.user), **wire.search_json(query, depth)}
        search = await self._call("search", body, self._results_of, counts=True)
        self._add_remarks(search, depth)
        return structs.replace(search, results=search.results[:depth])

    async def _answer_of_service(self, query: Query) -> Answer:
        top_k = self.parts.top_k
        body = {"namespace": self._namespace_of(query.user), **wire.answer_json(query, top_k)}
        text, search = await self._call(
            "answer", body, lambda reply: wire.read_answer(reply, self._ids.turns), counts=True
        )
        if search is None:
            return Answer(text=text)

        results_read = self._clean_results(search)
        self._add_remarks(results_read, top_k)
        results, ranking = results_read.results, None
        if not results_read.without_ids:
            ranking = tuple(result.turn_ids for result in results)

        return Answer(
            text=text,
            retrieved=results,
            ranking=ranking,
            context_tokens=sum(count_tokens(result.text) for result in results),
        )

    def _results_of(self, reply: wire.Json) -> wire.SearchResults:
        return self._clean_results(wire.read_results(reply, self._ids.turns))

    def _clean_results(self, search: wire.SearchResults) -> wire.SearchResults:
        """The results, without those that have no text and placeholders for an empty search.

        Raises `MemoryServiceError` for an error sent as a result, and for a result with the content
        of another case.
        """
        nothing = self.settings.no_results
        kept: list[Retrieved] = []
        empty = dropped = 0
        for result in search.results:
            # Its turns would count as found, although the reader gets no text of them.
            is_empty = not result.text.strip()
            empty += is_empty
            if not is_empty and (result.turn_ids or not reports_no_results(result.text, nothing)):
                kept.append(result)
            else:
                dropped += not result.turn_ids

        if len(kept) == 1 and not kept[0].turn_ids and (error := error_in(kept[0].text)):
            raise MemoryServiceError(
                f"{self._name} sent an error as a result: {one_line(error, 300)}"
            )

        for at, result in enumerate(kept):
            self._check_separate(result.text, f"results[{at}]")

        if empty:
            current_ledger().remarks[WITHOUT_TEXT] = (
                f"{empty:,} of {len(search.results):,} results have no text and were left out"
            )

        return wire.SearchResults(tuple(kept), max(0, search.without_ids - dropped))

    def _check_separate(self, text: str, where: str) -> None:
        """Raises `MemoryServiceError` for text from another case."""
        line = self._sent_texts.foreign_line(text)
        if line is not None:
            raise MemoryServiceError(
                f"{self._name} does not keep cases separate: {where} repeats word for word "
                f"a text from another case: '{one_line(line, 80)}'"
            )

    def _add_remarks(self, search: wire.SearchResults, limit: int) -> None:
        remarks = current_ledger().remarks
        if len(search.results) > limit:
            remarks[MORE_THAN_ASKED] = (
                f"a search returned {len(search.results):,} results, but was asked for {limit:,} "
                "at most"
            )

        if search.without_ids:
            remarks[WITHOUT_IDS] = (
                f"{search.without_ids:,} of {len(search.results):,} results have no turn_ids, so "
                "the ranking is unknown"
            )

    async def _call(
        self,
        operation: str,
        body: Mapping[str, Any],
        read: Callable[[wire.Json], T],
        *,
        counts: bool = False,
    ) -> T:
        """The result of `read` on the reply. With `counts`, adds the model calls that the reply
        reports, or one with unknown tokens, to those of the answer or the ingest.
        """
        if self._service is None:
            is_estimate = self.parts.extra.get(IS_ESTIMATE)
            self._service = EstimateService() if is_estimate else self.open_service()

        try:
            reply = await self._service.call(operation, {"namespace": self.namespace, **body})
            if counts:
                self._count(reply)

            return read(reply)
        except wire.WireError as error:
            problem = f"sent a reply that does not match the schema: {error}"
            last_words = await self._service.last_words()
            raise MemoryServiceError(f"{self._name} {problem}{last_words}") from error
        except ModelError as error:
            raise MemoryServiceError(str(error)) from error

    def _count(self, reply: Mapping[str, Any]) -> None:
        """Adds the model calls that a reply reports to those of the answer or the ingest."""
        ledger = current_ledger()
        # A model that writes the memory also searches.
        role = Role.ANSWER if ledger.scope else Role.INGEST
        ledger.usages.extend(wire.read_usages(reply, role))
        if reply.get("usage") is None:
            ledger.remarks[USAGE_UNKNOWN] = "the service does not report tokens"

    @property
    def _name(self) -> str:
        if self._service is None:
            return "the memory service"

        return self._service.name

    async def close(self) -> None:
        service, self._service = self._service, None
        if service is None:
            return

        try:
            # Only a service that a `reset` has reached has something to forget.
            if self.settings.forget and self._was_reset:
                async with asyncio.timeout(FORGET_S):
                    for namespace in self._namespaces:
                        await service.end_case({"namespace": namespace})
        except TimeoutError:
            _log.warning(
                "could not tell %s to forget a case: no reply within %g s", service.name, FORGET_S
            )
        except MemevalError as error:
            _log.warning("could not tell %s to forget a case: %s", service.name, one_line(error))
        finally:
            await service.close()


def note_noise(writer: str, lines: int = 1) -> None:
    """Records lines that are not replies, for the answer or the ingest under way."""
    ledger = current_ledger()
    ledger.noise_lines += lines
    written = counted(ledger.noise_lines, "line that is not a reply", "lines that are not replies")
    ledger.remarks[NOISE] = f"{writer} wrote {written}"


def files_of(words: Sequence[str]) -> tuple[Path, ...]:
    """The files that a command names: an edited script results in another memory."""
    named = map(Path, words)
    return tuple(path for path in named if path.suffix[1:].isalpha() and path.is_file())


def namespace_of(parts: SystemContext) -> str:
    """The name of a case's memory in one run and repeat. It contains no text of the data set."""
    named = (str(parts.extra.get("origin", "")), parts.case_id, str(parts.seed))
    digest = text_digest("\0".join(named))
    return f"memeval-{digest[:32]}"
