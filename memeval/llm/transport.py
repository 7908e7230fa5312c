"""Sends one request over HTTP, and distinguishes a timeout from other errors."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from ssl import SSLContext
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from memeval.errors import UserError
from memeval.llm.exchange import timed_socket
from memeval.results.files import reading
from memeval.text.redaction import without_userinfo
from memeval.text.shown import one_line

MAX_ERROR_BYTES = 2**20
"""Maximum bytes of a refusal's body that are read; the rest is dropped."""
PROXY_HINT = "check the environment's proxy:  http_proxy, https_proxy, all_proxy, no_proxy"
KEPT_ALIVE_S = 5.0
"""Seconds that an idle connection is kept open: many servers close theirs soon after."""
LATE_S, GRACE_S = 0.1, 1.0
"""A timer that is `LATE_S` late shows that the loop was blocked: a reply gets `GRACE_S` more."""


class Transport:
    """Posts JSON on one event loop, without redirects; without a key, sends no `Authorization`."""

    def __init__(self, address: str, *, api_key: str, headers: Mapping[str, str]) -> None:
        """`address` is the beginning of all request URLs."""
        from aiohttp import ClientSession, ClientTimeout, TCPConnector

        self._address = address.rstrip("/")
        defaults = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": "memeval",
        }
        if api_key:
            defaults["Authorization"] = f"Bearer {api_key}"

        # The user's headers replace memeval's of the same name, ignoring case.
        replaced = {name.lower() for name in headers}
        self._headers = {name: defaults[name] for name in defaults if name.lower() not in replaced}
        self._headers |= headers
        # Before the connector, which would otherwise have to be closed.
        self._proxy, self._to_proxy = proxy_of(address)
        scheme = urlsplit(address).scheme
        trusted = authorities() if scheme == "https" else True
        connector = TCPConnector(
            limit=0,  # request slots are the limit, and may change
            keepalive_timeout=KEPT_ALIVE_S,
            ssl=trusted,
            socket_factory=timed_socket,
        )
        # One client for all requests, with its connections kept alive: most of the cost of a
        # request is the client.
        self._session = ClientSession(
            connector=connector,
            # The caller limits the time of the whole try.
            timeout=ClientTimeout(total=None, sock_connect=None),
        )
        self.plain_proxy = None if scheme == "https" else self._proxy
        """The proxy that reads requests and may reply in the endpoint's place."""
        # With TLS, the proxy can't read the headers; without TLS, it reads all of them.
        if scheme != "https":
            self._headers.update(self._to_proxy)

    async def send(
        self, path: str, content: bytes, most_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the reply from a path below the URL."""
        return await self.request("POST", self._address + path, content, most_bytes)

    async def get(self, path: str, most_bytes: int) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the resource at a path below the URL."""
        return await self.request("GET", self._address + path, None, most_bytes)

    async def request(
        self,
        method: str,
        url: str,
        content: bytes | None,
        most_bytes: int,
        further: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers, body; a body over `most_bytes` ends with the chunk that exceeds it."""
        request = self._session.request(
            method,
            url,
            data=content,
            # Not set on the session: its headers would also be sent to a proxy, including the key.
            headers={**self._headers, **further},
            allow_redirects=False,
            proxy=self._proxy,
            proxy_headers=self._to_proxy,
        )
        async with request as response:
            most = most_bytes if response.status < 300 else MAX_ERROR_BYTES
            parts: list[bytes] = []
            size = 0

            async for part in response.content.iter_any():
                parts.append(part)
                size += len(part)
                if size > most:
                    break

            return response.status, response.headers, b"".join(parts)

    async def aclose(self) -> None:
        await self._session.close()


def proxy_of(address: str) -> tuple[str | None, dict[str, str]]:
    """The environment's proxy for a URL, and its header, without `.netrc`'s passwords.

    Raises `UserError` if the environment's proxy is not a URL.
    """
    from aiohttp import encode_basic_auth

    target, proxies = urlsplit(address), getproxies()
    proxy_address = proxies.get(target.scheme) or proxies.get("all")
    if not proxy_address or proxy_bypass(target.hostname or ""):
        return None, {}

    if "://" not in proxy_address:
        proxy_address = f"http://{proxy_address}"

    try:
        proxy = urlsplit(proxy_address)
        _ = proxy.port  # checked only when it is read
    except ValueError as error:
        shown = one_line(without_userinfo(proxy_address), 80)
        raise UserError(f"the environment's proxy {shown} is not a URL", PROXY_HINT) from error

    if proxy.username is None:
        return proxy.geturl(), {}

    login = encode_basic_auth(unquote(proxy.username), unquote(proxy.password or ""))
    bare = proxy._replace(netloc=proxy.netloc.rpartition("@")[2])
    return bare.geturl(), {"Proxy-Authorization": login}


@cache
def authorities() -> SSLContext:
    """The certificate authorities that this machine trusts, cached because reading them is slow.

    Raises `UserError` for a file of the environment that can't be read or holds no certificate.
    """
    from httpx2 import create_ssl_context

    file = os.environ.get("SSL_CERT_FILE")
    with reading(f"SSL_CERT_FILE={file}" if file else "this machine's file of certificates"):
        return create_ssl_context()


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[asyncio.Timeout]:
    """Like `asyncio.timeout`, but a reply that arrived while the loop was blocked is still read."""
    loop, deadline = asyncio.get_running_loop(), asyncio.timeout(None)
    due = loop.time() + seconds
    timer = loop.call_at(due, _expire, deadline, due)
    try:
        async with deadline:
            yield deadline
    finally:
        timer.cancel()


def _expire(deadline: asyncio.Timeout, due: float) -> None:
    """Ends an attempt that has timed out."""
    now = asyncio.get_running_loop().time()
    # A loop that was blocked, for example by a database, could not read. A reply that arrived
    # meanwhile is paid for, so it is read first.
    grace_s = GRACE_S if now - due > LATE_S else 0.0
    deadline.reschedule(now + grace_s)


def encode(body: Mapping[str, Any]) -> bytes:
    """The body as JSON in UTF-8."""
    # Python would write NaN, which is not JSON.
    text = json.dumps(dict(body), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # UTF-8 can't encode half of a surrogate pair: it becomes U+FFFD.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
