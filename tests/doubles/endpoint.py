"""A scripted OpenAI-compatible endpoint on loopback, with seeded faults.

    with ScriptedEndpoint(latency_s=0.2) as endpoint:
        subprocess.run([..., f"llm.base_url={endpoint.base_url}"])
    assert endpoint.count("/chat/completions") == 60

`tests/scripted_endpoint.py` serves it from a separate process; its counts are at `/stats`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from doubles.faults import ERROR_BODY, HTML_PAGE, REFUSALS, VECTOR_FAULTS, Faults
from doubles.loopback import LoopbackServer, Request, reply_head, send
from doubles.replies import scripted_message
from memeval.runs.forecast.made_up import made_up_vector

MODEL = "gpt-4o-mini"
"""The model in the list of models. The endpoint answers under any name."""
DRIP_S = 0.05
"""Seconds between two bytes of a dripping reply."""


class ScriptedEndpoint(LoopbackServer):
    """Serves `/v1/chat/completions`, `/v1/embeddings` and `/v1/models` from a separate thread."""

    def __init__(
        self,
        reply: Callable[[Mapping[str, Any]], str | Mapping[str, Any]] = scripted_message,
        *,
        latency_s: float = 0.0,
        faults: Faults | None = None,
        usage: bool = True,
        edit: Callable[[dict[str, Any]], None] | None = None,
        width: int = 64,
        most_texts: int | None = None,
        port: int = 0,
    ) -> None:
        """`reply` returns a string or a whole message. A message may include its `finish_reason`;
        an `error` instead of it is sent with its `code` as the status, or 400. `edit` may change a
        valid chat completion before it is sent. Embedding requests may have up to `most_texts`.
        """
        super().__init__(port)
        self.reply = reply
        self.latency_s = latency_s
        self.faults = faults or Faults()
        self.usage = usage
        self.edit = edit
        self.width = width
        self.most_texts = most_texts
        self.requests: list[tuple[str, dict[str, Any]]] = []
        """Path and body of each request, in order of arrival, faulty ones included."""
        self.served: Counter[str] = Counter()
        """Complete and valid replies by path."""
        self.faulted: Counter[str] = Counter()
        """Replies by kind of fault."""
        self.peak = 0
        """Largest number of requests in progress at the same time."""
        self.first_at: float | None = None
        self.last_at: float | None = None
        """Event-loop times of the first request (`first_at`) and the last reply, in seconds."""
        self._under_way = 0
        self._attempts: Counter[bytes] = Counter()

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def count(self, path: str = "") -> int:
        """Number of requests so far whose path ends in `path`."""
        return sum(1 for seen, _ in self.requests if seen.endswith(path))

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        if request.target.endswith("/stats"):
            return await send(writer, 200, json.dumps(self._stats()).encode())

        if request.method == "GET" and request.target.endswith("/models"):
            models = {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
            return await send(writer, 200, json.dumps(models).encode())

        if self.first_at is None:
            self.first_at = self._loop.time()

        self._under_way += 1
        self.peak = max(self.peak, self._under_way)
        try:
            return await self._answer(request.target, request.raw, writer)
        finally:
            self._under_way -= 1
            self.last_at = self._loop.time()

    async def _answer(self, path: str, raw: bytes, writer: asyncio.StreamWriter) -> bool:
        body = json.loads(raw)
        self.requests.append((path, body))

        vectors = path.endswith("/embeddings")
        # Drawn by the body, so a request gets the same faults in any order of arrival.
        fault = self.faults.draw(raw, self._attempts[raw], len(self.requests) - 1, vectors=vectors)
        self._attempts[raw] += 1
        if self.latency_s:
            await asyncio.sleep(self.latency_s)

        if fault is not None:
            self.faulted[fault] += 1
            return await self._misbehave(fault, body, writer)

        self.served[path.rsplit("/v1", 1)[-1]] += 1
        replied = self._refuse_texts(body) if vectors else self.reply(body)
        if isinstance(replied, Mapping) and "error" in replied:
            error = replied["error"]
            return await send(writer, error.get("code", 400), json.dumps({"error": error}).encode())

        payload = self._embeddings(body) if vectors else self._completion(body, replied)
        if self.edit is not None and not vectors:
            self.edit(payload)

        return await send(writer, 200, json.dumps(payload).encode())

    async def _misbehave(  # noqa: PLR0911 - one return per fault
        self, fault: str, body: Mapping[str, Any], writer: asyncio.StreamWriter
    ) -> bool:
        if fault == "rate_limit":
            wait = {"Retry-After": f"{self.faults.retry_after_s:g}"}
            return await send(
                writer, 429, b'{"error": {"message": "slow down", "type": "rate_limit"}}', wait
            )

        if fault in REFUSALS:
            status, error = REFUSALS[fault]
            return await send(writer, status, json.dumps({"error": error}).encode())

        if fault in VECTOR_FAULTS:
            return await send(
                writer, 200, json.dumps(_spoil(self._embeddings(body), fault)).encode()
            )

        if fault == "html":
            return await send(writer, 200, HTML_PAGE, {"Content-Type": "text/html"})
        if fault in ("no_body", "error_body"):
            return await send(writer, 200, ERROR_BODY if fault == "error_body" else b"")
        if fault == "dripping":
            return await self._drip(writer)

        if fault == "timeout":
            await asyncio.sleep(self.faults.hang_s)
            return False

        if fault == "drop":
            writer.transport.abort()
            return False

        sound = json.dumps(self._completion(body, self.reply(body))).encode()
        if fault == "truncate":
            # The header promises the whole reply; the client has to notice that half is missing.
            writer.write(reply_head(200, len(sound), {}) + sound[: len(sound) // 2])
            await writer.drain()
            return False

        return await send(writer, 200, self._odd_body(fault, body))

    async def _drip(self, writer: asyncio.StreamWriter) -> bool:
        """Sends a reply byte by byte that does not end within `hang_s`."""
        writer.write(reply_head(200, 2**30, {}))
        # No byte is late, so only a limit on the whole call ends it.
        for _ in range(int(self.faults.hang_s / DRIP_S) + 1):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(DRIP_S)

        return False

    def _odd_body(self, fault: str, body: Mapping[str, Any]) -> bytes:
        if fault == "malformed":
            return b'{"id": "x", "choices": [{"message": {"content": "never clo'

        payload = self._completion(body, "" if fault == "empty" else None)
        if fault == "no_choices":
            payload["choices"] = []

        return json.dumps(payload).encode()

    def _completion(
        self, body: Mapping[str, Any], reply: str | Mapping[str, Any] | None
    ) -> dict[str, Any]:
        message = {"role": "assistant", "content": reply}
        if isinstance(reply, Mapping):
            message = {"role": "assistant", "content": None, **reply}

        finish = message.pop("finish_reason", "stop")
        text = message["content"]
        prompt = sum(
            len(str(message.get("content", "")).split()) for message in body.get("messages", ())
        )
        completion = len(str(text or "").split()) + len(str(message.get("tool_calls", "")).split())
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        return {
            "id": "scripted",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", ""),
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            **({"usage": usage} if self.usage else {}),
        }

    def _refuse_texts(self, body: Mapping[str, Any]) -> dict[str, Any]:
        count = len(body["input"])
        if self.most_texts is None or count <= self.most_texts:
            return {}

        message = f"batch size {count} > maximum allowed batch size {self.most_texts}"
        return {"error": {"message": message, "code": 413}}

    def _embeddings(self, body: Mapping[str, Any]) -> dict[str, Any]:
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        rows = [
            {"object": "embedding", "index": i, "embedding": made_up_vector(text, self.width)}
            for i, text in enumerate(texts)
        ]
        tokens = sum(len(text.split()) for text in texts)
        usage = {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}} if self.usage else {}

        return {"object": "list", "data": rows, "model": body.get("model", ""), **usage}

    def _stats(self) -> dict[str, Any]:
        seconds = None
        if self.first_at is not None and self.last_at is not None:
            seconds = self.last_at - self.first_at

        counts = {
            "requests": len(self.requests),
            "served": dict(self.served),
            "faulted": dict(self.faulted),
        }

        return {**counts, "peak": self.peak, "seconds": seconds}


def _spoil(payload: dict[str, Any], fault: str) -> dict[str, Any]:
    """Puts a fault into an embeddings reply."""
    rows = payload["data"]
    last = rows[-1]
    width = len(last["embedding"])

    if fault == "zeros":
        last["embedding"] = [0.0] * width
    elif fault == "nan":
        last["embedding"][0] = float("nan")
    elif fault == "huge":
        last["embedding"][0] = 1e300  # finite, but its square is not
    elif fault == "other_width":
        for row in rows:
            row["embedding"] = row["embedding"] + [0.5]
    elif fault == "ragged":
        last["embedding"] = [*last["embedding"], 0.5] if len(rows) > 1 else []
    elif fault == "one_short":
        rows.pop()
    elif fault == "same_index":
        # With a single row, 0 would be the right index.
        last["index"] = 0 if len(rows) > 1 else 7
    else:
        last["embedding"] = ["1"] * width

    return payload
