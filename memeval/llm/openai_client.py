"""Calls by openai's own client, which knows the authentication of a provider.

The package takes a second to import, so this module is imported before the first such call only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx2
from openai import APIStatusError, AsyncOpenAI

from memeval.llm.keys import NO_KEY
from memeval.llm.transport import Transport

_MOST_BYTES = "memeval-most-bytes"
"""Header that tells our connections the limit of a reply. It is not sent."""
_AUTHENTICATION = ("authorization", "api-key")
"""What is sent of the client's headers: the others describe this machine, its organization among
them.
"""
_ENCODING = ("content-encoding", "content-length", "transfer-encoding")
"""What describes the body on its way; it is decoded when the client gets it."""


class ClientTransport(Transport):
    """Posts JSON by openai's client, over connections of our own: limits of size, proxies,
    authorities and times are those of all calls.
    """

    def __init__(
        self, address: str, *, api_key: str, headers: Mapping[str, str], connections: int
    ) -> None:
        super().__init__(address, api_key="", headers=headers, connections=connections)
        # The user's headers replace the client's. Without a key it would send an administrator's
        # that it finds in the environment.
        theirs = {name.lower() for name in headers} if api_key else _AUTHENTICATION
        names = [name for name in _AUTHENTICATION if name not in theirs]
        self._client = AsyncOpenAI(
            base_url=address,
            api_key=api_key or NO_KEY,
            # The endpoint tries again, and knows of all callers that wait.
            max_retries=0,
            timeout=None,
            http_client=httpx2.AsyncClient(transport=_Connections(self, names), trust_env=False),
        )

    async def send(
        self, path: str, content: bytes, most_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        try:
            response = await self._client.post(
                path,
                body=json.loads(content),
                cast_to=httpx2.Response,
                options={"headers": {_MOST_BYTES: str(most_bytes)}},
            )
        except APIStatusError as error:
            response = error.response

        return response.status_code, response.headers, response.content


class _Connections(httpx2.AsyncBaseTransport):
    """What the client sends its requests with."""

    def __init__(self, transport: Transport, names: list[str]) -> None:
        """`names` are the headers of a request that are sent on."""
        self._transport, self._names = transport, names

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = {name: request.headers[name] for name in self._names if name in request.headers}
        most_bytes = int(request.headers[_MOST_BYTES])
        content = await request.aread()
        status, headers, body = await self._transport.post(
            str(request.url), content, most_bytes, sent
        )

        # As bytes: a gateway's headers need not be ASCII.
        kept = [
            (name.encode(), headers[name].encode(errors="surrogateescape"))
            for name in headers
            if name.lower() not in _ENCODING
        ]
        return httpx2.Response(status, headers=kept, content=body)
