"""A scripted OpenAI-compatible endpoint on loopback, with seeded faults.

For your own tests and benchmarks:

    with ScriptedEndpoint(latency_s=0.2) as endpoint:
        subprocess.run([..., f"llm.base_url={endpoint.base_url}"])
    assert endpoint.count("/chat/completions") == 60

`python -m memeval.testing.endpoint --latency 0.2` serves it from a separate process and prints
its address; its counts are at `/stats`. With `-- COMMAND ...` it serves while that command runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from memeval.testing.faults import ERROR_BODY, HTML_PAGE, REFUSALS, VECTOR_FAULTS, Faults
from memeval.testing.http import LoopbackServer, Request, reply_head, send
from memeval.testing.replies import scripted_reply

DRIP_S = 0.05
"""Seconds between two bytes of a reply that drips."""


class ScriptedEndpoint(LoopbackServer):
    """Serves `/v1/chat/completions` and `/v1/embeddings` from a separate thread."""

    def __init__(
        self,
        reply: Callable[[Mapping[str, Any]], str] = scripted_reply,
        *,
        latency_s: float = 0.0,
        faults: Faults | None = None,
        usage: bool = True,
        edit: Callable[[dict[str, Any]], None] | None = None,
        width: int = 64,
        port: int = 0,
    ) -> None:
        """`edit` may change a sound chat completion before it is sent."""
        super().__init__(port)
        self.reply = reply
        self.latency_s = latency_s
        self.faults = faults or Faults()
        self.usage = usage
        self.edit = edit
        self.width = width
        self.requests: list[tuple[str, dict[str, Any]]] = []
        """Path and body of each request, in order of arrival, faulty ones included."""
        self.served: Counter[str] = Counter()
        """Whole and sound replies by path."""
        self.faulted: Counter[str] = Counter()
        """Replies by kind of fault."""
        self.peak = 0
        """Most requests under way at once."""
        self.first_at: float | None = None
        self.last_at: float | None = None
        """Event-loop times of the first request (`first_at`) and the last reply, in seconds."""
        self._under_way = 0
        self._attempts: Counter[bytes] = Counter()

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def count(self, path: str = "") -> int:
        """Requests so far whose path ends in `path`."""
        return sum(1 for seen, _ in self.requests if seen.endswith(path))

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        if request.target.endswith("/stats"):
            return await send(writer, 200, json.dumps(self._stats()).encode())

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
        # By the body: a request gets the same faults in whatever order requests arrive.
        fault = self.faults.draw(raw, self._attempts[raw], len(self.requests) - 1, vectors=vectors)
        self._attempts[raw] += 1
        if self.latency_s:
            await asyncio.sleep(self.latency_s)

        if fault is not None:
            self.faulted[fault] += 1
            return await self._misbehave(fault, body, writer)

        self.served[path.rsplit("/v1", 1)[-1]] += 1
        payload = self._embeddings(body) if vectors else self._completion(body, self.reply(body))
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
            # The head promises the whole: the client has to notice that half is missing.
            writer.write(reply_head(200, len(sound), {}) + sound[: len(sound) // 2])
            await writer.drain()
            return False

        return await send(writer, 200, self._odd_body(fault, body))

    async def _drip(self, writer: asyncio.StreamWriter) -> bool:
        """A reply that comes byte by byte, and never ends within `hang_s`."""
        writer.write(reply_head(200, 2**30, {}))
        # Each byte is in time: only a limit on the whole call ends it.
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

    def _completion(self, body: Mapping[str, Any], text: str | None) -> dict[str, Any]:
        prompt = sum(
            len(str(message.get("content", "")).split()) for message in body.get("messages", ())
        )
        completion = len((text or "").split())
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        message = {"role": "assistant", "content": text}

        return {
            "id": "scripted",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", ""),
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            **({"usage": usage} if self.usage else {}),
        }

    def _embeddings(self, body: Mapping[str, Any]) -> dict[str, Any]:
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        rows = [
            {"object": "embedding", "index": i, "embedding": scripted_vector(text, self.width)}
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
    """Puts a fault into a reply of embeddings."""
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
        # Of a single row 0 is the right index.
        last["index"] = 0 if len(rows) > 1 else 7
    else:
        last["embedding"] = ["1"] * width

    return payload


def scripted_vector(text: str, width: int) -> list[float]:
    """A bag of hashed words of length `width`: texts that share words are near each other."""
    vector = [0.0] * width
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        vector[int.from_bytes(digest[:4], "big") % width] += 1.0

    # A vector of zeros is one of the faults.
    return vector if any(vector) else [1.0, *vector[1:]]


def main() -> int:
    """Serves while a command runs, or until standard input ends; returns the exit status."""
    import argparse
    import sys

    parser = argparse.ArgumentParser(
        prog="python -m memeval.testing.endpoint",
        description="a scripted OpenAI-compatible endpoint on loopback",
        epilog="with a command, OPENAI_BASE_URL and OPENAI_API_KEY are set for it",
    )
    parser.add_argument("--latency", type=float, default=0.0, help="seconds a call takes")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and what is run against it")
    arguments = parser.parse_args()
    # argparse hands on the `--` with the rest.
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command

    with ScriptedEndpoint(latency_s=arguments.latency, port=arguments.port) as endpoint:
        if command:
            return _run(command, endpoint.base_url)

        sys.stdout.write(endpoint.base_url + "\n")
        sys.stdout.flush()
        sys.stdin.read()

    return 0


def _run(command: list[str], base_url: str) -> int:
    """Runs a command against an endpoint; returns its exit status."""
    import subprocess

    # The key of the user's own provider is never sent to the scripted endpoint, nor needed.
    env = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "scripted"}
    return subprocess.run(command, env=env, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
