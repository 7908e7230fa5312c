"""A text is embedded once, even if several histories contain it or embed it at the same time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from doubles.endpoint import Faults, ScriptedEndpoint

from memeval.config.schema import MAX_TEXTS
from memeval.errors import ModelError
from memeval.llm.cache import Cache
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.llm.metering import Ledger, metered
from memeval.records import Role
from memeval.retrieval.embedding.openai import OpenAIEmbedder, read_timed_value, timed_value

FIRST = [f"session {number}: the harbour at low tide" for number in range(300)]
SECOND = [*FIRST[100:], "a session of its own"]


def sent(server: ScriptedEndpoint) -> Counter[str]:
    """How often each text was sent."""
    return Counter(text for _, body in server.requests for text in body["input"])


async def embed(
    server: ScriptedEndpoint,
    folder: Path,
    *histories: list[str],
    at_once: bool,
    batch_size: int = MAX_TEXTS,
    width: int | None = None,
) -> list[object]:
    endpoint = Endpoint(EndpointSettings(server.base_url, "of the test", 4, 5.0, 0))
    cache = Cache(folder / "embeddings.sqlite")
    embedder = OpenAIEmbedder(endpoint, "model", width, cache, "run", batch_size=batch_size)
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


def test_requests_have_as_many_texts_as_the_endpoint_accepts(tmp_path: Path) -> None:
    with ScriptedEndpoint(most_texts=32) as server:
        (refused,) = asyncio.run(embed(server, tmp_path, FIRST, at_once=True))
        assert str(refused) == (
            "HTTP 413: batch size 128 > maximum allowed batch size 32; use a smaller "
            "embedder.batch_size"
        )
        server.requests.clear()
        asyncio.run(embed(server, tmp_path, FIRST, at_once=False, batch_size=32))
        assert sorted(len(body["input"]) for _, body in server.requests) == [12] + 9 * [32]


def test_only_a_chosen_width_is_requested(tmp_path: Path) -> None:
    with ScriptedEndpoint() as server:
        for width in (None, 64):
            asyncio.run(embed(server, tmp_path, FIRST[:1], at_once=False, width=width))

        assert [body.get("dimensions") for _, body in server.requests] == [None, 64]


def test_concurrent_callers_share_a_failure_and_a_later_call_retries(tmp_path: Path) -> None:
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


def test_lone_surrogate_is_sent_as_a_replacement_character(tmp_path: Path) -> None:
    with ScriptedEndpoint() as server:
        asyncio.run(embed(server, tmp_path, ["harbour \ud83d"], at_once=False))
        assert sent(server) == {"harbour \ufffd": 1}


def test_vector_of_a_wrong_width_in_the_first_reply_is_requested_again(tmp_path: Path) -> None:
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


def test_cached_vector_takes_the_time_of_its_paid_request(tmp_path: Path) -> None:
    ledgers = [Ledger(scope="first"), Ledger(scope="second")]
    with ScriptedEndpoint(latency_s=0.05) as server:
        for ledger in ledgers:
            with metered(ledger):
                asyncio.run(embed(server, tmp_path, FIRST[:1], at_once=False))

        assert server.count() == 1
    first, second = (ledger.calls_s(Role.EMBED) for ledger in ledgers)
    assert first == second
    assert first is not None and first >= 0.05
    assert ledgers[0].usages[0].completion_tokens == 0


def test_tokens_that_the_endpoint_does_not_report_are_estimated(tmp_path: Path) -> None:
    texts = ["the harbour at low tide", "a session of its own"]
    with ScriptedEndpoint(usage=False) as server, metered(Ledger()) as ledger:
        asyncio.run(embed(server, tmp_path, texts, at_once=False))

    (usage,) = ledger.usages
    assert (usage.prompt_tokens, usage.estimated, usage.calls) == (10, True, 1)


def test_vector_stored_without_a_time_has_none(tmp_path: Path) -> None:
    vector = np.array([1.0, 0.0], dtype=np.float32).tobytes()
    assert read_timed_value(vector) == (vector, None)
    assert read_timed_value(timed_value(vector, 0.25)) == (vector, 0.25)
    # A plain vector may begin with the byte that marks a timed one.
    odd = b"s" + vector[1:]
    assert read_timed_value(odd) == (odd, None)


@pytest.mark.parametrize("checked", [True, False])
def test_damaged_vectors_are_requested_again_and_reported(tmp_path: Path, checked: bool) -> None:
    messages: list[str] = []

    async def again(server: ScriptedEndpoint, damage: bool) -> None:
        endpoint = Endpoint(EndpointSettings(server.base_url, "of the test", 4, 5.0, 5.0))
        cache = Cache(tmp_path / "embeddings.sqlite", messages.append)
        try:
            if damage:
                for key in sorted(cache.keys()):
                    # A vector of two bytes, with its own checksum or with that of the original
                    # vector.
                    if checked:
                        cache.delete(key)
                        cache.put_all({key: b"xx"}, "run")

            await OpenAIEmbedder(endpoint, "model", None, cache, "run").embed(FIRST[:3])
        finally:
            await endpoint.aclose()
            cache.close()

    with ScriptedEndpoint() as server:
        asyncio.run(again(server, damage=False))
        assert messages == []
        if not checked:
            with sqlite3.connect(tmp_path / "embeddings.sqlite") as connection:
                connection.execute("UPDATE entries SET value = x'7878'")

            connection.close()

        asyncio.run(again(server, damage=True))
        assert set(sent(server).values()) == {2}

    assert len(messages) == 2
    assert "had a damaged entry" in messages[0] and "requested again" in messages[0]
    assert "had 3 damaged entries" in messages[1]
