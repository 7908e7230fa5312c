"""One flight per home: identical concurrent requests are sent and paid once, even if processes die
or calls fail.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from doubles.endpoint import Faults, ScriptedEndpoint

from memeval.config.schema import LlmConfig
from memeval.errors import ModelError
from memeval.llm.cache import Cache, content_key
from memeval.llm.contract import ChatPrompt
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.llm.flight import Flights
from memeval.llm.leases import FileLeases
from memeval.llm.metering import Ledger, metered, totals
from memeval.llm.openai import OpenAIModel, Sampling
from memeval.records import Role, Usage
from memeval.retrieval.embedding.openai import OpenAIEmbedder, shares

KEY = content_key({"a": "request"})

WORKER = """
import asyncio, sys
from pathlib import Path
from memeval.retrieval.embedding.openai import OpenAIEmbedder
from memeval.llm.cache import Cache
from memeval.llm.contract import ChatPrompt
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.config.schema import LlmConfig
from memeval.llm.openai import OpenAIModel, Sampling
from memeval.llm.slots import slots_at
from memeval.records import Role

async def main(folder, url, calls, texts, origin):
    home = Path(folder)
    endpoint = Endpoint(EndpointSettings(url, "key", 8, 60.0, 0), slots=slots_at(url, "key"))
    replies, vectors = Cache(home / "responses.sqlite"), Cache(home / "embeddings.sqlite")
    sampling = Sampling(LlmConfig(model="m", max_tokens=10))
    model = OpenAIModel(endpoint, sampling, replies, origin)
    embedder = OpenAIEmbedder(endpoint, "e", None, vectors, origin)
    asked = [
        model.complete(
            ChatPrompt(({"role": "user", "content": f"question {n}"},)),
            role=Role.ANSWER,
        )
        for n in range(int(calls))
    ]
    case = [f"text {n}" for n in range(int(texts))]
    halves = [case, case[len(case) // 2:]] if case else []
    outcomes = await asyncio.gather(*asked, *map(embedder.embed, halves))
    await endpoint.aclose()
    print("done")

asyncio.run(main(*sys.argv[1:]))
"""


def worker(
    folder: Path, server: ScriptedEndpoint, calls: int, texts: int, origin: str = "run"
) -> subprocess.Popen[str]:
    arguments = [str(folder), server.base_url, str(calls), str(texts), origin]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments], stdout=subprocess.PIPE, text=True
    )


def paid(server: ScriptedEndpoint) -> Counter[str]:
    """How often each prompt and each text was sent."""
    asked: Counter[str] = Counter()
    for _, body in server.requests:
        asked.update(body["input"] if "input" in body else [json.dumps(body["messages"])])
    return asked


def model_of(
    server: ScriptedEndpoint, cache: Cache, origin: str = "run"
) -> tuple[Endpoint, OpenAIModel]:
    endpoint = Endpoint(EndpointSettings(server.base_url, "key", 4, 5.0, 0))
    return endpoint, OpenAIModel(
        endpoint, Sampling(LlmConfig(model="m", max_tokens=10)), cache, origin
    )


PROMPT = ChatPrompt(({"role": "user", "content": "who?"},))


def test_callers_in_one_process_share_a_flight_and_its_usage(tmp_path: Path) -> None:
    async def scene(server: ScriptedEndpoint) -> list[Usage]:
        cache = Cache(tmp_path / "c.sqlite")
        endpoint, model = model_of(server, cache)
        replies = await asyncio.gather(
            *(model.complete(PROMPT, role=Role.ANSWER) for _ in range(9))
        )
        await endpoint.aclose()
        cache.close()
        return [reply.usage for reply in replies]

    with ScriptedEndpoint(latency_s=0.05) as server:
        usages = asyncio.run(scene(server))
        assert server.count() == 1
    assert len(set(usages)) == 1
    assert not usages[0].cached


def test_concurrent_callers_share_a_failure_and_a_later_call_retries(tmp_path: Path) -> None:
    async def scene(server: ScriptedEndpoint) -> list[object]:
        cache = Cache(tmp_path / "c.sqlite")
        endpoint, model = model_of(server, cache)
        outcomes = await asyncio.gather(
            *(model.complete(PROMPT, role=Role.ANSWER) for _ in range(5)), return_exceptions=True
        )
        assert server.count() == 1
        server.faults = Faults()
        await model.complete(PROMPT, role=Role.ANSWER)
        await endpoint.aclose()
        cache.close()
        return list(outcomes)

    with ScriptedEndpoint(latency_s=0.05, faults=Faults({"bad_request": 1.0})) as server:
        outcomes = asyncio.run(scene(server))
        assert [type(outcome) for outcome in outcomes] == [ModelError] * 5
        assert server.count() == 2


@pytest.mark.parametrize("cancelled", [0, 1, 2])
def test_another_caller_takes_over_from_a_cancelled_one(tmp_path: Path, cancelled: int) -> None:
    may_reply = threading.Event()

    def reply(_: object) -> str:
        assert may_reply.wait(60)
        return "me"

    async def scene(server: ScriptedEndpoint) -> int:
        cache = Cache(tmp_path / "c.sqlite")
        endpoint, model = model_of(server, cache)
        tasks = [asyncio.create_task(model.complete(PROMPT, role=Role.ANSWER)) for _ in range(3)]
        while not server.count():  # noqa: ASYNC110 - the server counts in another thread
            await asyncio.sleep(0.001)
        tasks[cancelled].cancel()
        may_reply.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await endpoint.aclose()
        cache.close()
        return sum(not isinstance(outcome, BaseException) for outcome in outcomes)

    with ScriptedEndpoint(reply) as server:
        assert asyncio.run(scene(server)) == 2
        assert server.count() == (2 if cancelled == 0 else 1)


def test_batches_cancelled_before_they_begin_can_be_asked_for_again(tmp_path: Path) -> None:
    async def look(keys: Sequence[str]) -> dict[str, str]:
        return {}

    async def ask(keys: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(keys, "a reply")

    async def scene() -> dict[str, str]:
        flights = Flights[str](FileLeases(tmp_path), size=1)
        keys = [content_key({"a": "request", "number": number}) for number in range(3)]
        first = asyncio.create_task(flights.fetch(keys, look, ask))
        # The batches are requested now, and none of them has begun.
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

        async with asyncio.timeout(20):
            return await flights.fetch(keys, look, ask)

    assert len(asyncio.run(scene())) == 3


def test_a_batch_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    keys = [content_key({"a": "request", "number": number}) for number in range(3)]
    stored: dict[str, str] = {}
    asked: list[str] = []

    async def look(wanted: Sequence[str]) -> dict[str, str]:
        return {key: stored[key] for key in wanted if key in stored}

    async def ask(wanted: Sequence[str]) -> dict[str, str]:
        (key,) = wanted
        asked.append(key)
        if asked == [key]:
            raise ModelError("refused")

        stored[key] = "a reply"
        return {key: stored[key]}

    async def scene() -> dict[str, str]:
        flights = Flights[str](FileLeases(tmp_path), size=1)
        with pytest.raises(ModelError, match="refused"):
            await flights.fetch(keys, look, ask)

        assert len(stored) == 2
        return await flights.fetch(keys, look, ask)

    assert asyncio.run(scene()) == dict.fromkeys(keys, "a reply")
    assert Counter(asked) == Counter([*keys, asked[0]])


def test_lease_held_by_another_is_waited_for_only_for_the_patience(tmp_path: Path) -> None:
    leases = FileLeases(tmp_path)
    asked: list[str] = []

    async def look(keys: Sequence[str]) -> dict[str, str]:
        return {}

    async def ask(keys: Sequence[str]) -> dict[str, str]:
        asked.append("once")
        return dict.fromkeys(keys, "reply")

    async def scene() -> str:
        assert await leases.acquire([KEY]) == {KEY}
        assert await leases.acquire([KEY]) == set(), "it is this process's already"
        found = await Flights[str](leases, patience_s=0.0).fetch([KEY], look, ask)
        return found[KEY]

    assert asyncio.run(scene()) == "reply"
    assert asked == ["once"]
    leases.release([KEY])


@pytest.mark.slow
def test_processes_share_flights_of_replies_and_vectors(tmp_path: Path) -> None:
    with ScriptedEndpoint(latency_s=0.05) as server, ExitStack() as stack:
        workers = [
            stack.enter_context(worker(tmp_path, server, 60, 300, f"run {n}")) for n in range(4)
        ]
        assert [one.communicate(timeout=120)[0] for one in workers] == ["done\n"] * 4
        asked = paid(server)
        assert len(asked) == 360
        assert sum(asked.values()) == 360


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_killed_processes_lose_only_calls_under_way(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    with ScriptedEndpoint(latency_s=0.03) as server, ExitStack() as stack:
        workers = [stack.enter_context(worker(tmp_path, server, 120, 600)) for _ in range(3)]
        for doomed, share in (
            (workers[0], draw.uniform(0.1, 0.4)),
            (workers[1], draw.uniform(0.4, 0.8)),
        ):
            deadline = time.monotonic() + 60
            while server.count() < 120 * share and time.monotonic() < deadline:
                time.sleep(0.002)
            os.kill(doomed.pid, signal.SIGKILL)
        for one in workers:
            one.communicate(timeout=120)
        assert workers[2].returncode == 0

        prompts = [
            json.dumps(body["messages"]) for _, body in server.requests if "messages" in body
        ]
        assert len(set(prompts)) == 120
        # A reply passes its slot on just before it is stored: up to twice the slots for each death.
        assert len(prompts) - 120 <= 2 * 2 * 8, "at most what was under way when a process died"


def test_vectors_paid_by_another_run_are_metered_as_cached(tmp_path: Path) -> None:
    """Concurrent embedding, in one process or two, is metered by who paid.

    The token counts are equal.
    """

    async def scene(server: ScriptedEndpoint, origin: str) -> tuple[Usage, ...]:
        cache = Cache(tmp_path / "embeddings.sqlite")
        endpoint = Endpoint(EndpointSettings(server.base_url, "key", 4, 5.0, 0))
        embedder = OpenAIEmbedder(endpoint, "e", None, cache, origin)
        with metered(Ledger()) as ledger:
            await embedder.embed([f"one two text {n}" for n in range(300)])
        await endpoint.aclose()
        cache.close()
        return totals(ledger.usages)

    with ScriptedEndpoint() as server:
        first, again, other = (
            asyncio.run(scene(server, origin)) for origin in ("run", "run", "other")
        )
        assert server.count() == 3
    assert first == again
    assert [(usage.prompt_tokens, usage.calls, usage.estimated) for usage in first] == [
        (1200, 3, False)
    ]
    assert [(usage.prompt_tokens, usage.calls, usage.cached) for usage in other] == [
        (1200, 3, True)
    ]


@pytest.mark.parametrize("reported", [0, 1, 7, 100, 12345])
def test_shares_add_up_to_the_reported_tokens(reported: int) -> None:
    texts = [f"text {'word ' * number}" for number in range(17)]
    parts = shares(reported, texts)
    assert sum(parts.values()) == reported
    assert list(parts) == texts
    assert min(parts.values()) >= 0


def test_shares_are_empty_if_no_tokens_were_reported() -> None:
    assert shares(None, ["a", "b"]) == {}
