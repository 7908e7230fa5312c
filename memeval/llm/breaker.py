"""Stops work that can't succeed because an endpoint or the storage is dead. Work stops immediately
if an endpoint's first call fails for a reason that waiting can't fix: nothing listens there, its
name or certificate is wrong, or the key or the model is unknown. If an endpoint has answered
before, work stops after many consecutive calls that failed at every try. All work stops if a disk
or a database can't store replies any more. Stopped work sends no further calls; calls under way may
finish, because they are paid for.
"""

import asyncio
import ssl
from collections.abc import Coroutine, Mapping
from contextlib import closing, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct, field

from memeval.errors import ModelError, StorageError, UserError, WorldError
from memeval.llm.disk import Disk
from memeval.llm.faults import FaultKind, Setback, connection_setback
from memeval.llm.in_flight import finish_or_cancel, in_flight
from memeval.llm.transport import PROXY_HINT, authorities, proxy_of
from memeval.text.shown import counted, one_line

T = TypeVar("T")

CONNECT_S = 5.0
"""Time limit of the first connection in seconds; after it, the calls' patience applies."""
ENDING_S = 10.0
"""Seconds for which stopped work waits for its calls under way."""
PROBE = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
NO_TLS = " speaks plain HTTP, not HTTPS"
CONTINUES = "nothing was lost: the same command continues"


@dataclass(eq=False)
class _Work:
    """A unit of work that can be stopped, with its endpoints."""

    options: Mapping[str, str]
    """The setting that names each URL, by URL."""
    roles: Mapping[str, str]
    """The settings of each model, by URL and model: `http://… gpt-4o` → `llm.judge`."""
    most_failures: int | None
    stopped: asyncio.Future[Exception]
    unreadable: int = 0
    """Consecutive unreadable replies at ingest since the last readable one."""

    def stop(self, error: Exception) -> None:
        """Ends the work, unless it is ending."""
        if not self.stopped.done():
            self.stopped.set_result(error)
            in_flight.hold_requests(self)


_current: ContextVar[_Work | None] = ContextVar("_current", default=None)
"""The work that the current task belongs to."""


def note_reading(*, readable: bool, cut: bool = False) -> None:
    """Notes whether a reply at ingest could be read; stops work after too many unreadable ones."""
    work = _current.get()
    if work is None:
        return

    if readable:
        work.unreadable = 0
        return

    work.unreadable += 1
    if work.most_failures is not None and work.unreadable >= work.most_failures:
        way_out = "use a model that follows the format"
        if cut:
            way_out = "raise llm.ingest.max_tokens"

        work.stop(
            WorldError(
                f"stopped: the last {counted(work.unreadable, 'reply', 'replies')} of llm.ingest "
                "could not be read "
                f"(stop_after_failures={work.most_failures}): {way_out}"
            )
        )


class Breaker(Struct):
    """The health of the endpoints and of the storage that one command needs for its calls."""

    disk: Disk | None = None
    """Disk on which replies are stored; None if not known."""
    _answered: set[str] = field(default_factory=set)
    """Each URL that answered, with the path and model of the call."""
    _failures_in_row: dict[str, int] = field(default_factory=dict)
    """Consecutive failed calls since the last success, by URL."""
    _last_errors: dict[str, str] = field(default_factory=dict)
    """Message of the last failure, by URL."""
    _dead: dict[str, tuple[Setback, str]] = field(default_factory=dict)
    """The setback of the failed first call and its model, by URL."""
    _works: list[_Work] = field(default_factory=list)
    _untried: set[str] = field(default_factory=set)
    """Addresses to which no connection was tried yet."""
    _tried: set[str] = field(default_factory=set)
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _lost_store: StorageError | None = None
    """The reason why replies can no longer be stored."""

    async def run(
        self,
        work: Coroutine[Any, Any, T],
        options: Mapping[str, str],
        most_failures: int | None,
        roles: Mapping[str, str] | None = None,
    ) -> T:
        """Returns the result of `work`; cancels the work if a URL in `options` is dead or no
        reply can be stored.

        `roles` are the settings of each model, by URL and model. Raises `UserError` if an
        endpoint is dead from the first call on, `StorageError`, and `WorldError` after
        `most_failures` consecutive failures.
        """
        stopped: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        unit = _Work(options, roles or {}, most_failures, stopped)
        self._works.append(unit)
        self._untried |= options.keys() - self._tried
        self._check()
        before = _current.set(unit)
        try:
            task = asyncio.ensure_future(work)
        finally:
            _current.reset(before)

        try:
            await finish_or_cancel(task, stopped, lambda: in_flight.finish_part(unit, ENDING_S))
        finally:
            self._works.remove(unit)

        # The work may have finished at the same moment. Its result then counts, unless the endpoint
        # refused every request.
        if stopped.done():
            reason = stopped.result()
            refused = isinstance(reason, UserError)
            if task.cancelled() or (refused and task.exception() is None):
                raise reason

        in_flight.hold_requests(unit)
        return task.result()

    async def check_connections(self) -> None:
        """Tries a connection to each URL to be called, before anything is paid for."""
        if not self._untried:
            return

        # Calls that arrive meanwhile wait for this check, so none of them is wasted.
        async with self._connecting:
            new = list(self._untried)
            setbacks = await asyncio.gather(*map(try_connection, new))
            self._untried.difference_update(new)
            self._tried.update(new)

            for setback, address in zip(setbacks, new, strict=True):
                # Temporary failures are left to the calls, which retry.
                if setback is not None and setback.policy.ends_work:
                    self._dead[address] = setback, ""

        self._check()

    def admit(self) -> object:
        """The work that a request to be sent belongs to, if any. Raises `StorageError`."""
        work = _current.get()
        if self.disk is not None and self._lost_store is None:
            try:
                self.disk.check()
            except StorageError as error:
                self.lose_store(error)

        # Within work no error is raised: the request waits, and the work ends with the reason.
        if work is None and self._lost_store is not None:
            raise self._lost_store

        return work

    def lose_store(self, error: StorageError) -> None:
        """Stops all work: replies can't be stored."""
        self._lost_store = self._lost_store or error
        self._check()

    def note_success(self, address: str, asked: str) -> None:
        """Notes that a call was answered."""
        # Not keyed by URL only: an endpoint may know one model but not the judge's.
        self._answered.add(f"{address} {asked}")
        self._failures_in_row.pop(address, None)

    def note_failure(
        self, address: str, asked: str, error: ModelError, setback: Setback | None
    ) -> None:
        """Notes that a call failed at every try; `setback` is that of the last try."""
        first = f"{address} {asked}" not in self._answered
        if first and setback is not None and setback.policy.ends_work:
            # A path contains no space, but a model's name may.
            self._dead[address] = setback, asked.partition(" ")[2]

        self._failures_in_row[address] = self._failures_in_row.get(address, 0) + 1
        self._last_errors[address] = str(error)
        self._check()

    def _check(self) -> None:
        """Stops the work that can't go on."""
        for work in self._works:
            error = self._stop_reason(work)
            if error is not None:
                work.stop(error)

    def _stop_reason(self, work: _Work) -> Exception | None:
        if self._lost_store is not None:
            return self._lost_store

        for address, option in work.options.items():
            if address in self._dead:
                setback, model = self._dead[address]
                role = work.roles.get(f"{address} {model}", option.removesuffix(".base_url"))
                way_out = _way_out(setback, option, role)
                return UserError(f"{option}={address}: {setback.message}", way_out, CONTINUES)

            most, failures = work.most_failures, self._failures_in_row.get(address, 0)
            if most is not None and failures >= most:
                return WorldError(
                    f"stopped: {counted(failures, 'call')} in a row failed at {address}, the last "
                    f"one with: {self._last_errors[address]} (stop_after_failures={most})"
                )

        return None


def _way_out(setback: Setback, option: str, role: str) -> str:
    """A hint for a user when the first call of an endpoint, for the model of a role, failed."""
    if setback.status in (401, 403):
        return f"check that the key is set and correct:  {role}.api_key_env names its variable"
    if setback.status == 404:
        return f"check the model and the URL (most end in /v1):  {role}.model=… {option}=…"

    if "the proxy " in setback.message:
        return PROXY_HINT

    # Nothing is left to pay with, or the quota is used up, which may come under any status.
    if setback.status is not None and setback.status >= 400:
        return f"use another key or model:  {role}.api_key_env=… {role}.model=…"

    if setback.message.startswith("TLS: the certificate of "):
        return f"check the URL, or name the file of your own authority:  {option}=… SSL_CERT_FILE=…"

    way_out = "check the URL, and that the server is running:"
    if setback.message.endswith(NO_TLS):
        way_out = "begin the URL with http://, or use the server's port for HTTPS:"

    return f"{way_out}  {option}=…"


async def try_connection(address: str, timeout_s: float = CONNECT_S) -> Setback | None:
    """Reason why no connection can be made; None if one can, or if that is unknown."""
    parts = urlsplit(address)
    usual_port = 443 if parts.scheme == "https" else 80
    host, port = parts.hostname or "", parts.port or usual_port
    # Behind a proxy, this machine may be unable to resolve the host name.
    proxy, _ = proxy_of(address)
    if proxy is not None:
        if proxy.lower().startswith("http"):
            return None

        return Setback(f"the proxy {one_line(proxy, 80)} is not an HTTP proxy", FaultKind.DEAD)

    try:
        async with asyncio.timeout(timeout_s) as deadline:
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, ValueError) as error:
        if deadline.expired():
            return Setback(f"no connection within {timeout_s:g} s", FaultKind.DOWN)

        return connection_setback(error, host)

    writer.close()
    with suppress(OSError):
        await writer.wait_closed()

    if parts.scheme == "https" and await _lacks_tls(host, port, min(timeout_s, CONNECT_S)):
        return Setback(f"{host}:{port}{NO_TLS}", FaultKind.DEAD)

    return None


async def _lacks_tls(host: str, port: int, timeout_s: float) -> bool:
    """Whether a server answers a plain request, but no TLS handshake: many of them wait for more
    of it, or hang up, so that calls would be retried until the patience ends.
    """
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port, ssl=authorities())
    except ssl.SSLCertVerificationError:
        return False
    except (OSError, ValueError):
        pass
    else:
        writer.transport.abort()
        return False

    line = b""
    with suppress(OSError, ValueError):
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port)
            with closing(writer):
                writer.write(PROBE)
                line = await reader.readline()

    # Servers with TLS may answer 400 to a plain request.
    return line.startswith(b"HTTP/1.") and b" 400 " not in line
