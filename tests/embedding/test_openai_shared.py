"""A text is embedded once, however many histories hold it and however many are under way."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from memeval.embedding.openai import OpenAIEmbedder
from memeval.errors import ModelError
from memeval.llm.cache import Cache
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.testing.endpoint import Faults, ScriptedEndpoint

FIRST = [f"session {number}: the harbour at low tide" for number in range(300)]
SECOND = [*FIRST[100:], "a session of its own"]


def sent(server: ScriptedEndpoint) -> Counter[str]:
    """How often each text was sent."""
    return Counter(text for _, body in server.requests for text in body["input"])


async def embed(
    server: ScriptedEndpoint, folder: Path, *histories: list[str], at_once: bool
) -> list[object]:
    endpoint = Endpoint(EndpointSettings(server.base_url, "of the test", 4, 5.0, 0))
    cache = Cache(folder / "embeddings.sqlite")
    embedder = OpenAIEmbedder(endpoint, "model", None, cache, "run")
    try:
        if at_once:
            return list(
                await asyncio.gather(*map(embedder.embed, histories), return_exceptions=True)
            )
        return [await embedder.embed(history) for history in histories]
    finally:
        await endpoint.aclose()
        cache.close()


@pytest.mark.parametrize("at_once", [False, True], ids=["one after the other", "at once"])
def test_texts_that_histories_share_are_sent_once(tmp_path: Path, at_once: bool) -> None:
    with ScriptedEndpoint(latency_s=0.05) as server:
        first, second = asyncio.run(embed(server, tmp_path, FIRST, SECOND, at_once=at_once))
        assert sent(server) == dict.fromkeys({*FIRST, *SECOND}, 1)
    assert isinstance(first, np.ndarray) and isinstance(second, np.ndarray)
    assert first.shape == (300, 64) and second.shape == (201, 64)
    assert np.array_equal(first[100:], second[:200])


def test_who_waits_shares_the_failure_and_a_later_call_tries_again(tmp_path: Path) -> None:
    with ScriptedEndpoint(latency_s=0.05, faults=Faults({"bad_request": 1.0})) as server:
        outcomes = asyncio.run(embed(server, tmp_path, FIRST[:10], FIRST[:10], at_once=True))
        assert [type(outcome) for outcome in outcomes] == [ModelError, ModelError]
        assert server.count() == 1
    with ScriptedEndpoint() as server:
        (vectors,) = asyncio.run(embed(server, tmp_path, FIRST[:10], at_once=False))
        assert isinstance(vectors, np.ndarray) and vectors.shape == (10, 64)


def test_a_blank_text_is_not_sent_and_gets_the_zero_vector(tmp_path: Path) -> None:
    with ScriptedEndpoint() as server:
        (vectors,) = asyncio.run(embed(server, tmp_path, ["", "harbour", " "], at_once=False))
        assert sent(server) == {"harbour": 1}
    assert isinstance(vectors, np.ndarray)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([0.0, 1.0, 0.0])


def test_a_first_reply_of_another_width_does_not_stay(tmp_path: Path) -> None:
    async def patient(server: ScriptedEndpoint) -> list[np.ndarray]:
        async def no_wait(seconds: float) -> None:
            await asyncio.sleep(0)

        endpoint = Endpoint(
            EndpointSettings(server.base_url, "of the test", 4, 5.0, 60.0), sleep=no_wait
        )
        cache = Cache(tmp_path / "embeddings.sqlite")
        embedder = OpenAIEmbedder(endpoint, "model", None, cache, "run")
        try:
            server.faults = Faults({"other_width": 1.0})
            await embedder.embed(["the first"])
            server.faults = Faults()
            await embedder.embed(["the second"])
            return [await embedder.embed(["the first"]), await embedder.embed(["the second"])]
        finally:
            await endpoint.aclose()
            cache.close()

    with ScriptedEndpoint() as server:
        assert [vectors.shape for vectors in asyncio.run(patient(server))] == [(1, 64), (1, 64)]
        assert sent(server) == {"the first": 2, "the second": 5}
