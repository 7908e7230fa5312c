"""Calls through openai's own client, which handles the provider's authentication.

The package takes a second to import, so this module is imported only before the first such call.
"""

import json
from collections.abc import Mapping

import httpx2
from openai import APIStatusError, AsyncAzureOpenAI, AsyncOpenAI

from memeval.llm.keys import NO_KEY
from memeval.llm.transport import Transport

_MAX_BYTES = "memeval-most-bytes"
"""Header that passes a reply's size limit to our connections. It is not sent."""
_AUTHENTICATION = ("authorization", "api-key")
"""Headers of the client that are sent; the others describe this machine."""
_TOKEN = "eyJ"
"""Start of a Microsoft Entra token, as of any JSON in base64; Azure's keys start differently."""
_ENCODING = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that describe the encoded body; the client gets it decoded."""


class ClientTransport(Transport):
    """Posts JSON with openai's client over memeval's connections, with their limits and proxies."""

    def __init__(
        self,
        address: str,
        *,
        api_key: str,
        headers: Mapping[str, str],
        api_version: str | None = None,
    ) -> None:
        """With `api_version`, `address` is that of an Azure resource."""
        super().__init__(address, api_key="", headers=headers)
        # The user's headers replace the client's. Without a key, no header of the client is sent:
        # it would contain a key from the environment, and Azure accepts no key besides the user's.
        has_key = bool(api_key) and (api_version is None or api_key != NO_KEY)
        names: list[str] = []
        if has_key:
            replaced = set(map(str.lower, headers))
            names = [name for name in _AUTHENTICATION if name not in replaced]

        http_client = httpx2.AsyncClient(transport=_Connections(self, names), trust_env=False)
        self._client = _client(address, api_key or NO_KEY, api_version, http_client)

    async def send(
        self, path: str, content: bytes, most_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        try:
            response = await self._client.post(
                path,
                body=json.loads(content),
                cast_to=httpx2.Response,
                options={"headers": {_MAX_BYTES: str(most_bytes)}},
            )
        except APIStatusError as error:
            response = error.response

        return response.status_code, response.headers, response.content


def _client(
    address: str, api_key: str, api_version: str | None, http_client: httpx2.AsyncClient
) -> AsyncOpenAI:
    # `Endpoint` retries, because it tracks all waiting callers.
    if api_version is None:
        return AsyncOpenAI(
            base_url=address, api_key=api_key, max_retries=0, timeout=None, http_client=http_client
        )

    key: str | None = api_key
    token: str | None = None
    if api_key.startswith(_TOKEN):
        key, token = None, api_key

    return AsyncAzureOpenAI(
        azure_endpoint=address,
        api_version=api_version,
        api_key=key,
        azure_ad_token=token,
        max_retries=0,
        timeout=None,
        http_client=http_client,
    )


class _Connections(httpx2.AsyncBaseTransport):
    """The connections over which the client sends its requests."""

    def __init__(self, transport: Transport, names: list[str]) -> None:
        """`names` are the request headers that are passed on."""
        self._transport, self._names = transport, names

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = {name: request.headers[name] for name in self._names if name in request.headers}
        most_bytes = int(request.headers[_MAX_BYTES])
        content = await request.aread()
        status, headers, body = await self._transport.request(
            "POST", str(request.url), content, most_bytes, sent
        )

        # As bytes: a gateway's headers need not be ASCII.
        kept = [
            (name.encode(), headers[name].encode(errors="surrogateescape"))
            for name in headers
            if name.lower() not in _ENCODING
        ]
        return httpx2.Response(status, headers=kept, content=body)
