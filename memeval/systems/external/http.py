"""A memory in any programming language behind HTTP: addresses that take and return JSON.

docs/http_memory.openapi.yaml describes them, docs/any_memory.md has servers of 30 lines.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from memeval.config.checks import check_address, check_headers
from memeval.errors import ModelError, UserError
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.faults import of_connection
from memeval.llm.keys import headers_of
from memeval.llm.metering import current_ledger
from memeval.systems.base import INGEST, RUNTIME
from memeval.systems.external import remote
from memeval.systems.external.served import AnsweringSettings, Reply, ServedMemory, Service
from memeval.systems.external.wire import OPERATIONS

MOST_BYTES = 32 * 2**20
"""Bytes of a reply."""
_PATH = re.compile(r"/[A-Za-z0-9._~/-]*")

BY_HEADER = (
    "a service's key comes from the environment:  export MY_KEY=... "
    "and system.headers={Authorization: MY_KEY}"
)
NO_SERVICE = "Is the server running, and is the URL correct?"
EXAMPLE = "for example:  system.base_url=http://localhost:8077"


@dataclass(frozen=True)
class Settings(AnsweringSettings):
    """Settings of `http`."""

    base_url: str | None = field(default=None, metadata=INGEST)
    """Address of the service."""
    reset_path: str = field(default="/reset", metadata=RUNTIME)
    """Path of each operation, below the address."""
    ingest_path: str = field(default="/ingest", metadata=RUNTIME)
    ready_path: str = field(default="/ready", metadata=RUNTIME)
    search_path: str = field(default="/search", metadata=RUNTIME)
    answer_path: str = field(default="/answer", metadata=RUNTIME)
    headers: dict[str, str] | None = field(default=None, metadata=RUNTIME)
    """Headers of each request: names of the environment variables that hold their values."""
    max_concurrency: int = field(default=8, metadata=RUNTIME)
    """Requests under way at once, all cases of a process together."""
    max_retries: int = field(default=4, metadata=RUNTIME)
    """Tries of a request after the first, where it met 429, 5xx or a broken connection."""
    patience_s: float = field(default=120.0, metadata=RUNTIME)
    """How long requests are tried again while nothing is answered, in seconds."""

    def __post_init__(self) -> None:
        AnsweringSettings.__post_init__(self)
        for operation in OPERATIONS:
            path = getattr(self, f"{operation}_path")
            if not _PATH.fullmatch(path):
                raise UserError(
                    f"system.{operation}_path must be a path such as /{operation}, but is '{path}'"
                )

        if self.max_concurrency < 1:
            raise UserError(
                f"system.max_concurrency must be at least 1, but is {self.max_concurrency}"
            )
        if self.max_retries < 0 or self.patience_s < 0:
            raise UserError("system.max_retries and system.patience_s must not be negative")

        check_headers("system.headers", self.headers or {})


class HttpMemory(ServedMemory):
    """A namespace at the service for each case and repeat of a run.

    What was ingested is waited for before the first question, and measured as a phase of its own.
    Where the service answers by itself (`system.answers=true`), the cell's model and prompt are
    not used.
    """

    settings_type = Settings

    @classmethod
    def resolve_settings(cls, settings: Any, *, has_language_model: bool) -> Any:
        endpoint_settings(settings)
        return settings

    def open_service(self) -> Service:
        return HttpService(self.settings)


class HttpService(Service):
    """Posts the operations of one case; cases share the limit of the address."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._address = settings, address_of(settings)
        self.name = f"the memory service at {self._address}"
        self._endpoint: _Shared | None = None

    async def call(self, operation: str, body: Mapping[str, Any]) -> Reply:
        if self._endpoint is None:
            # Else the first request to a mistyped address would be tried again until `patience_s`
            # is over.
            await self._check_listening()
            self._endpoint = _Shared.enter(endpoint_settings(self._settings))

        path = getattr(self._settings, f"{operation}_path")
        own, endpoint = current_ledger().own, self._endpoint.endpoint
        try:
            # The request is what the memory takes; the queue before it is ours.
            with own.aside():
                reply = await endpoint.post(path, body, as_object, most_bytes=MOST_BYTES)
        except ModelError as error:
            message = f"{self.name} failed at {path}: {error}"
            # What is wrong with the first request is wrong with the address.
            raise remote.fault(self._address, message, EXAMPLE) from error

        own.add(reply.latency_s)
        remote.note_answer(self._address)
        return Reply(reply.value, setback=reply.setback)

    async def _check_listening(self) -> None:
        """Raises `UserError` at once where nobody listens at an address that never answered."""
        parts = urlsplit(self._address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            async with asyncio.timeout(self._settings.request_timeout_s):
                _reader, writer = await asyncio.open_connection(parts.hostname, port)
        except OSError as error:
            setback = of_connection(error, parts.hostname or self._address)
            message = f"{self.name} can't be reached: {setback.what}"
            raise remote.fault(self._address, message, NO_SERVICE) from error

        writer.close()
        await writer.wait_closed()

    async def close(self) -> None:
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            await endpoint.leave()


def address_of(settings: Settings) -> str:
    """The address of the service. Raises `UserError` where it is missing or is not one."""
    if not settings.base_url:
        raise UserError("system=http needs the address of a memory service", EXAMPLE)

    check_address("system.base_url", settings.base_url, BY_HEADER)
    return settings.base_url


def endpoint_settings(settings: Settings) -> EndpointSettings:
    """How requests are sent. Raises `UserError` for what is missing."""
    return EndpointSettings(
        base_url=address_of(settings),
        api_key="",
        max_concurrency=settings.max_concurrency,
        timeout_s=settings.request_timeout_s,
        patience_s=settings.patience_s,
        max_retries=settings.max_retries,
        headers=headers_of(settings.headers, "system.headers"),
    )


class _Shared:
    """An endpoint that the cases of one event loop share, closed when the last one leaves."""

    def __init__(self, settings: EndpointSettings) -> None:
        self.endpoint = Endpoint(settings)
        self._users = 0

    @classmethod
    def enter(cls, settings: EndpointSettings) -> _Shared:
        """The endpoint of these settings on the running loop."""
        of_loop = _ENDPOINTS.setdefault(asyncio.get_running_loop(), {})
        key = repr((settings.base_url, settings.max_concurrency, sorted(settings.headers.items())))
        shared = of_loop.get(key)
        if shared is None:
            shared = of_loop[key] = cls(settings)

        shared._users += 1
        return shared

    async def leave(self) -> None:
        """Closes the connections where nobody is left."""
        self._users -= 1
        if self._users > 0:
            return

        of_loop = _ENDPOINTS.get(asyncio.get_running_loop(), {})
        for key in [key for key, shared in of_loop.items() if shared is self]:
            del of_loop[key]

        await self.endpoint.aclose()


# By loop: connections belong to the event loop that opened them.
_ENDPOINTS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Shared]] = WeakKeyDictionary()
