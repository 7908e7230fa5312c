"""A memory in any programming language behind HTTP: paths that accept and return JSON.

docs/http_memory.openapi.yaml describes them, docs/any_memory.md has servers of 30 lines.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from memeval.config.checks import check_address, check_headers
from memeval.config.schema import TOOLS
from memeval.errors import MemevalError, MemoryServiceError, ModelError, UserError, unknown
from memeval.llm.breaker import try_connection
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.faults import connection_setback
from memeval.llm.in_flight import cleaning_up
from memeval.llm.keys import headers_of, value_of
from memeval.llm.metering import current_ledger
from memeval.llm.refusals import RefusedRequestError
from memeval.llm.slots import slots_at
from memeval.llm.transport import Transport
from memeval.systems.base import INGEST, IS_ESTIMATE, NOT_NEGATIVE, POSITIVE, RUNTIME, DumpItem
from memeval.systems.external import remote
from memeval.systems.external.contracts import CONTRACTS, OWN
from memeval.systems.external.http_tools import (
    CASE,
    DeclaredTool,
    as_tool,
    read_declared,
    read_result,
)
from memeval.systems.external.served import AnsweringSettings, ServedMemory
from memeval.systems.external.service import Service, ToolError
from memeval.systems.external.wire import OPERATIONS
from memeval.systems.tools import Tool, ToolResult, search_tool
from memeval.text.redaction import strings_in
from memeval.text.shown import one_line
from memeval.text.typed import json_or_none

MAX_BYTES = 32 * 2**20
"""Maximum bytes of a reply."""
_PATH = re.compile(r"/[A-Za-z0-9._~/-]*")

BY_HEADER = "for a service's key:  export MY_KEY=... and system.headers={Authorization: MY_KEY}"
NO_SERVICE = "Is the server running, and is the URL correct?"
BY_PATH = "check URL, paths and key:  system.base_url=... system.reset_path=... system.headers=..."
EXAMPLE = "for example:  system.base_url=http://localhost:8077"


@dataclass(frozen=True)
class HttpSettings(AnsweringSettings):
    base_url: str | None = field(default=None, metadata=INGEST)
    """Base URL of the service."""
    contract: str = field(default=OWN, metadata=INGEST)
    """Contract of the service: `memeval`, or the contract of another benchmark, `aml` (Agent Memory
    Leaderboard) or `add_search_reset` (PrecisionMemBench).
    """
    reset_path: str = field(default="/reset", metadata=RUNTIME)
    """Path of each operation, below the base URL."""
    ingest_path: str = field(default="/ingest", metadata=RUNTIME)
    ready_path: str = field(default="/ready", metadata=RUNTIME)
    search_path: str = field(default="/search", metadata=RUNTIME)
    answer_path: str = field(default="/answer", metadata=RUNTIME)
    forget_path: str = field(default="/forget", metadata=RUNTIME)
    correct_path: str = field(default="/correct", metadata=RUNTIME)
    headers: dict[str, str] | None = field(default=None, metadata=RUNTIME)
    """Headers of each request: names of the environment variables that contain their values."""
    api_key_env: str | None = field(default=None, metadata=RUNTIME)
    """The environment variable whose value is sent as `Authorization: Bearer …`."""
    max_concurrency: int = field(default=8, metadata=RUNTIME | POSITIVE)
    """Maximum concurrent requests, over all cases of a process."""
    max_retries: int = field(default=4, metadata=RUNTIME | NOT_NEGATIVE)
    """Retries of a request after 429, 5xx or a broken connection."""
    patience_s: float = field(default=120.0, metadata=RUNTIME | NOT_NEGATIVE)
    """Seconds for which requests are retried while the service answers none."""

    tools: list[Any] | None = field(default=None, metadata=INGEST)
    """Tools that a model may call under `reader=tools` and `writer=tools`: `name`, `description`,
    `path`, `parameters` (JSON schema) and `writes` of each. None offers only `search_memory`.
    """
    dump_path: str | None = field(default=None, metadata=RUNTIME)
    """Path that returns everything stored, in the form of search results: for lists, and for
    figures of `writer=tools`.
    """

    def __post_init__(self) -> None:
        AnsweringSettings.__post_init__(self)
        read_declared(self.tools)
        for operation in (*OPERATIONS, "dump"):
            path = getattr(self, f"{operation}_path")
            if path is not None and not _PATH.fullmatch(path):
                raise UserError(
                    f"system.{operation}_path must be a path such as /{operation}, but is '{path}'"
                )

        check_headers("system.headers", self.headers or {})
        if self.contract != OWN:
            self._check_contract()

    def _check_contract(self) -> None:
        """Raises `UserError` for settings that another benchmark's contract does not support."""
        if self.contract not in CONTRACTS:
            raise unknown("contract", self.contract, (OWN, *CONTRACTS))

        usual = type(self)()
        paths = (f"{operation}_path" for operation in OPERATIONS)
        for option in ("answers", "operations", "tools", "dump_path", *paths):
            if getattr(self, option) != getattr(usual, option):
                raise UserError(
                    f"system.{option} is only for system.contract={OWN}",
                    f"leave it out: {self.contract} only stores and searches, at fixed paths below "
                    "system.base_url",
                )


class HttpMemory(ServedMemory):
    """A namespace at the service for each case and repeat of a run.

    The ingest must be complete before the first question; the wait is measured as a separate phase.
    If the service gives the answers (`system.answers=true`), the cell's model and prompt are not
    used.
    """

    settings_type = HttpSettings

    @classmethod
    def resolve_settings(cls, settings: Any, *, has_language_model: bool) -> Any:
        endpoint_settings(settings)
        return settings

    @classmethod
    def knows_users(cls, settings: Any) -> bool:
        # The contracts of other benchmarks have one memory for each case.
        return bool(settings.contract == OWN)

    @classmethod
    def flags(cls, settings: Any) -> tuple[str, ...]:
        contract = CONTRACTS.get(settings.contract)
        if contract is None or contract.gives_ids:
            return ()

        return ("evidence by quotation",)

    @classmethod
    def check_use(cls, settings: Any, *, reader: str, writer: str) -> None:
        declared = read_declared(settings.tools)
        if reader == TOOLS and declared and all(tool.is_writing for tool in declared):
            raise UserError(
                "reader=tools: all system.tools change the memory, but only the writer may do that",
                "for tools that only read, set:  writes: false",
            )

    def open_service(self) -> Service:
        return HttpService(self.settings)

    async def tools(self) -> Sequence[Tool]:
        declared = read_declared(self.settings.tools)
        if declared and not self.parts.extra.get(IS_ESTIMATE):
            return [as_tool(tool, self._use) for tool in declared]

        return (search_tool(self.recall, self.parts.top_k),)

    async def _use(self, tool: DeclaredTool, arguments: Mapping[str, Any]) -> ToolResult:
        if tool.is_writing:
            for text in strings_in(arguments):
                self._sent_texts.add(text, text)

        # memeval itself names the case, even if a schema allows a model to send it.
        body = {name: value for name, value in arguments.items() if name != CASE}
        try:
            result = await self._call(
                tool.path,
                body,
                lambda reply: read_result(reply, self._results_of, self.settings.no_results),
                counts=True,
            )
        except MemoryServiceError as error:
            if isinstance(error.__cause__, ToolError):
                return ToolResult(str(error), is_error=True)
            raise

        self._check_separate(result.text, f"the result of '{tool.name}'")
        return result

    async def dump(self) -> list[DumpItem] | None:
        """Everything that the service has stored, as it lists it."""
        path = self.settings.dump_path
        if path is None or self.parts.extra.get(IS_ESTIMATE):
            return None

        items: list[DumpItem] = []
        for stored in (await self._call(path, {}, self._results_of)).results:
            turn_ids = list(stored.turn_ids)
            items.append({"kind": "stored", "text": stored.text, "turn_ids": turn_ids})

        return items


class _SharedEndpoint:
    """An endpoint that the cases of one event loop share, closed when the last one leaves.

    In an outage one case tries for all. With an endpoint each, all of them would fail after
    `max_retries`, within seconds.
    """

    def __init__(self, settings: EndpointSettings) -> None:
        slots = slots_at(settings.base_url, settings.api_key)
        self.endpoint = Endpoint(settings, slots=slots)
        self._users = 0

    @classmethod
    def enter(cls, settings: EndpointSettings) -> "_SharedEndpoint":
        """The endpoint of these settings on the running loop."""
        of_loop = _ENDPOINTS.setdefault(asyncio.get_running_loop(), {})
        key = repr(astuple(settings))
        if key not in of_loop:
            of_loop[key] = cls(settings)

        of_loop[key]._users += 1
        return of_loop[key]

    async def leave(self) -> None:
        """Closes the connections after their last user."""
        self._users -= 1
        if self._users > 0:
            return

        of_loop = _ENDPOINTS.get(asyncio.get_running_loop(), {})
        of_loop.pop(repr(astuple(self.endpoint.settings)), None)
        await self.endpoint.aclose()


# By loop: connections belong to the event loop that opened them.
_ENDPOINTS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _SharedEndpoint]] = (
    WeakKeyDictionary()
)


class HttpService(Service):
    """Posts the operations of one case; cases share the limit on requests, and wait out an outage
    together.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._settings, self._address = settings, address_of(settings)
        self.name = f"the memory service at {self._address}"
        self._endpoint: _SharedEndpoint | None = None
        contract = CONTRACTS.get(settings.contract)
        self._contract = contract(self._post) if contract else None

    async def call(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._endpoint is None:
            # Otherwise the first request to a mistyped URL would be retried until `patience_s` is
            # over.
            await self._check_listening()
            await self._check_health()
            self._endpoint = _SharedEndpoint.enter(endpoint_settings(self._settings))

        if self._contract is not None:
            return await self._contract.call(operation, body)

        # A tool is called by its path.
        if operation.startswith("/"):
            return await self._post(operation, body, is_tool=True)

        return await self._post(getattr(self._settings, f"{operation}_path"), body)

    async def end_case(self, body: Mapping[str, Any]) -> None:
        # After Ctrl-C, too: otherwise the data would stay at the service.
        with cleaning_up():
            await super().end_case(body)

    async def _post(
        self, path: str, body: Mapping[str, Any], *, is_tool: bool = False
    ) -> Mapping[str, Any]:
        assert self._endpoint is not None, "an operation opens it"
        own_work, endpoint = current_ledger().own_work, self._endpoint.endpoint
        try:
            # Only the request counts as the memory's time, not the wait for a request slot.
            with own_work.excluded():
                reply = await endpoint.post(path, body, as_object, most_bytes=MAX_BYTES)
        except ModelError as error:
            message = f"{self.name} failed at {path}: {error}"
            if "HTTP 413" in message:
                message += _smaller(body)

            # A model wrote the request: its next call may be right.
            if is_tool and isinstance(error, RefusedRequestError):
                raise ToolError(message) from error

            # A failure of the first request means that the URL is wrong.
            raise remote.fault(self._address, message, BY_PATH) from error

        own_work.add(reply.latency_s)
        remote.note_answer(self._address)
        self.note_setback(reply.setback)
        return reply.value

    async def _check_listening(self) -> None:
        """Raises `UserError` immediately if nothing listens at a URL that has never answered."""
        setback = await try_connection(self._address, self._settings.request_timeout_s)
        if setback is not None:
            message = f"{self.name} can't be reached: {setback.message}"
            raise remote.fault(self._address, message, NO_SERVICE)

    async def _check_health(self) -> None:
        """Raises `UserError` if the contract has a health check and the service is not up."""
        if self._contract is None or self._contract.health is None:
            return

        settings, path = endpoint_settings(self._settings), self._contract.health
        transport = Transport(settings.base_url, api_key=settings.api_key, headers=settings.headers)
        try:
            async with asyncio.timeout(settings.timeout_s):
                status, _, content = await transport.get(path, MAX_BYTES)
        except TimeoutError as error:
            raise self._unhealthy(path, f"no reply within {settings.timeout_s:g} s") from error
        except Exception as error:
            # The client may raise any error.
            host = urlsplit(settings.base_url).hostname or ""
            raise self._unhealthy(path, connection_setback(error, host).message) from error
        finally:
            await transport.aclose()

        if status != 200 or not says_ok(content):
            shown = one_line(content[:200].decode(errors="replace"), 80)
            raise self._unhealthy(path, f"{status} {shown}")

    def _unhealthy(self, path: str, reply: str) -> MemevalError:
        message = f'{self.name} is not up: GET {path} must return 200 {{"ok": true}}, but: {reply}'
        return remote.fault(self._address, message, NO_SERVICE)

    async def close(self) -> None:
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            await endpoint.leave()


def address_of(settings: HttpSettings) -> str:
    """The base URL of the service. Raises `UserError` if it is missing or invalid."""
    if not settings.base_url:
        raise UserError("system=http needs the URL of a memory service", EXAMPLE)

    check_address("system.base_url", settings.base_url, BY_HEADER)
    return settings.base_url


def endpoint_settings(settings: HttpSettings) -> EndpointSettings:
    """The settings of the endpoint. Raises `UserError` for missing settings."""
    address, key = address_of(settings), ""
    if settings.api_key_env is not None:
        key = value_of(settings.api_key_env, "system.api_key_env")

    return EndpointSettings(
        base_url=address,
        api_key=key,
        max_concurrency=settings.max_concurrency,
        timeout_s=settings.request_timeout_s,
        patience_s=settings.patience_s,
        max_retries=settings.max_retries,
        headers=headers_of(settings.headers, "system.headers"),
        # If a path of the service returns a web page, a retry would return it again.
        pages_are_final=True,
        takes_accepted=settings.contract == OWN,
    )


def _smaller(body: Mapping[str, Any]) -> str:
    """A hint for a request that is too large: it contains a batch of chunks, or a single one."""
    if "chunks" in body or "messages" in body:
        return "; use a smaller system.batch_size, or granularity=turn"
    if "text" in body:
        return "; use granularity=turn"

    return ""


def says_ok(content: bytes) -> bool:
    """Whether a reply is `{"ok": true}`."""
    reply = json_or_none(content)
    return isinstance(reply, Mapping) and reply.get("ok") is True
