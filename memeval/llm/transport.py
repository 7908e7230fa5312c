"""Sends one request over HTTP, and tells a timeout and a cancellation from other errors."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any

MOST_ERROR_BYTES = 2**20
"""Bytes of a refusal's body that are read; the rest is dropped."""


class Transport:
    """A client that posts JSON. It follows no redirect: prompts go to the given address only.

    Without a key it sends no `Authorization` of its own.
    """

    def __init__(self, *, api_key: str, headers: Mapping[str, str], connections: int) -> None:
        from httpx2 import Limits, create_ssl_context

        from memeval.llm.aiohttp_client import client_class, timed_transport

        authorization = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        limits = Limits(max_connections=connections, max_keepalive_connections=connections)
        # Made once for all transports: it reads every authority that this machine trusts.
        context = create_ssl_context()
        timed = timed_transport(limits, context)
        # A mount leaves the user's proxies in force, unless one of them is for all addresses.
        is_proxied = any(name.lower() == "all_proxy" for name in os.environ)
        # One client for all requests, with its connections kept alive: the client is most of what
        # a request costs. A legacy `httpx.AsyncClient` in its place is four times slower.
        self._client = client_class()(
            headers={
                **authorization,
                "Content-Type": "application/json",
                "Accept": "application/json",
                "User-Agent": "memeval",
                **headers,
            },
            # The caller bounds a whole try.
            timeout=None,
            limits=limits,
            verify=context,
            mounts={} if timed is None or is_proxied else {"all://": timed},
            follow_redirects=False,
        )

    async def send(
        self, url: str, content: bytes, most_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of a reply.

        A larger body ends with the chunk that exceeds `most_bytes`, so the caller sees the excess.
        """
        request = self._client.build_request("POST", url, content=content)
        response = await self._client.send(request, stream=True)

        try:
            most = most_bytes if response.status_code < 300 else MOST_ERROR_BYTES
            parts: list[bytes] = []
            size = 0

            async for part in response.aiter_bytes():
                parts.append(part)
                size += len(part)
                if size > most:
                    break

            return response.status_code, response.headers, b"".join(parts)
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.aclose()


def encode(body: Mapping[str, Any]) -> bytes:
    """The body as JSON in UTF-8."""
    # Python would write NaN, which is not JSON.
    text = json.dumps(dict(body), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # UTF-8 can't hold a half of a surrogate pair: it becomes U+FFFD.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def is_cancelled() -> bool:
    """Whether the current task was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def is_timeout(error: BaseException) -> bool:
    """Whether the time was over."""
    # The transport reports a broken connection as a timeout, too, but then with an error number.
    return any(
        isinstance(cause, TimeoutError) and cause.errno is None
        for cause in (error, error.__cause__)
    )
