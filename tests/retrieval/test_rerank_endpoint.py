"""A cross-encoder behind an endpoint, tested against a double on loopback: request, cache,
metering, retries, failures, and `rag` on top.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from doubles.rerank import RerankDouble

from memeval.config.paths import cache_dir
from memeval.config.roles import RERANKER_LIMIT
from memeval.config.schema import RerankerConfig, RunConfig
from memeval.errors import ModelError, UserError
from memeval.llm.cache import Cache
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.llm.metering import Ledger, metered
from memeval.pipeline.open.models import Models
from memeval.records import Answer, MemoryChunk, Query, Role
from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.retrieval.rerank import Reordering, build_reranker
from memeval.retrieval.rerank_lexical import LexicalReranker
from memeval.runs.compose.config import compose_config
from memeval.systems.base import ReaderReply, SystemContext
from memeval.systems.retrieval.hybrid import Hybrid
from memeval.systems.retrieval.rag import Rag

T = TypeVar("T")

CORPUS = ["Ann went to Norway", "Bob likes green tea", "Ann likes tea"]
CANDIDATES = [(0, 0.9), (1, 0.5), (2, 0.4)]


def at_endpoint(base_url: str | None, **more: Any) -> RerankerConfig:
    """The settings of a cross-encoder at a URL."""
    return RerankerConfig(name="endpoint", base_url=base_url, **{"model": "cross-encoder", **more})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def server() -> Iterator[RerankDouble]:
    with RerankDouble() as double:
        yield double


class RunNetwork:
    """The endpoints and caches of one run, as `Models` hands them out."""

    def __init__(self, origin: str = "run") -> None:
        self.origin = origin
        self.endpoints: dict[str, Endpoint] = {}
        self._caches: list[Cache] = []

    def endpoint(self, settings: EndpointSettings) -> Endpoint:
        return self.endpoints.setdefault(settings.base_url, Endpoint(settings))

    def cache(self, name: str) -> Cache:
        self._caches.append(Cache(cache_dir() / f"{name}.sqlite"))
        return self._caches[-1]

    async def aclose(self) -> None:
        for endpoint in self.endpoints.values():
            await endpoint.aclose()
        for cache in self._caches:
            cache.close()


def run(
    settings: RerankerConfig,
    work: Callable[[Reordering], Coroutine[Any, Any, T]],
    ledger: Ledger | None = None,
    origin: str = "run",
) -> T:
    async def inside() -> T:
        network = RunNetwork(origin)
        try:
            reranker = build_reranker(settings, network)
            assert reranker is not None
            with metered(ledger or Ledger()):
                return await work(Reordering(reranker, CORPUS))
        finally:
            await network.aclose()

    return asyncio.run(inside())


def ask(
    server: RerankDouble,
    query: str = "green tea",
    ledger: Ledger | None = None,
    candidates: Any = CANDIDATES,
    origin: str = "run",
    **settings: Any,
) -> list[Any]:
    choice = at_endpoint(server.base_url, **settings)
    return run(choice, lambda fitted: fitted.reorder(query, candidates), ledger, origin)


def test_request_and_scores_of_the_reply(server: RerankDouble) -> None:
    assert ask(server) == [(1, 1.0), (2, 0.5), (0, 0.0)]
    (request,) = server.requests
    assert request.json() == {
        "model": "cross-encoder",
        "query": "green tea",
        "documents": CORPUS,
        "top_n": 3,
    }
    assert (request.method, request.path) == ("POST", "/v1/rerank")


def test_only_the_candidates_are_sent_and_ties_keep_their_order(server: RerankDouble) -> None:
    assert ask(server, "zebra", candidates=[(2, 0.1), (0, 0.7)]) == [(2, 0.0), (0, 0.0)]
    assert server.requests[0].json()["documents"] == [CORPUS[2], CORPUS[0]]


def test_base_url_may_include_the_path(server: RerankDouble) -> None:
    choice = at_endpoint(server.base_url + "/rerank/")
    run(choice, lambda fitted: fitted.reorder("green tea", CANDIDATES))
    assert server.requests[0].path == "/v1/rerank"


@pytest.mark.parametrize(("query", "candidates"), [("  ", CANDIDATES), ("tea", [])])
def test_empty_query_or_candidates_send_no_request(
    server: RerankDouble, query: str, candidates: list[Any]
) -> None:
    assert ask(server, query, candidates=candidates) == candidates
    assert server.requests == []


def is_cached(ledger: Ledger) -> bool:
    return any(usage.cached for usage in ledger.usages)


def test_cached_ranking_is_not_paid_for_again(server: RerankDouble) -> None:
    first, second = Ledger(scope="q1"), Ledger(scope="q2")
    answers = [
        ask(server, ledger=first, origin="run 1"),
        ask(server, ledger=second, origin="run 2"),
    ]
    assert answers[0] == answers[1]
    assert len(server.requests) == 1
    assert [is_cached(ledger) for ledger in (first, second)] == [False, True]
    # The second call records the duration of the one that was paid for.
    assert second.calls_s(Role.EMBED) == first.calls_s(Role.EMBED) != 0


def test_repeat_in_the_same_run_stays_billed_to_that_run(server: RerankDouble) -> None:
    ledgers = [Ledger(), Ledger()]
    for ledger in ledgers:
        ask(server, ledger=ledger, origin="run 1")
    assert len(server.requests) == 1
    assert [is_cached(ledger) for ledger in ledgers] == [False, False]


@pytest.mark.parametrize(
    "other",
    [
        {"query": "black tea"},
        {"candidates": CANDIDATES[:2]},
        {"candidates": [CANDIDATES[1], CANDIDATES[0], CANDIDATES[2]]},
    ],
)
def test_each_different_request_has_its_own_cache_entry(
    server: RerankDouble, other: dict[str, Any]
) -> None:
    ask(server)
    ask(server, **other)
    assert len(server.requests) == 2


def test_tokens_are_those_reported_by_the_endpoint(server: RerankDouble) -> None:
    ledger = Ledger()
    ask(server, ledger=ledger)
    (usage,) = ledger.usages
    assert (usage.role, usage.model, usage.prompt_tokens, usage.completion_tokens) == (
        Role.EMBED,
        "cross-encoder",
        17,
        0,
    )
    assert not usage.estimated


def test_tokens_are_estimated_if_the_endpoint_reports_none() -> None:
    ledger = Ledger()
    with RerankDouble(usage=False) as server:
        ask(server, ledger=ledger)
    (usage,) = ledger.usages
    assert (usage.prompt_tokens, usage.estimated) == (17, True)


@pytest.mark.parametrize("status", [429, 503])
def test_transient_failure_is_retried(server: RerankDouble, status: int) -> None:
    server.failures = [("POST", "/rerank", status)] * 2
    assert ask(server)[0] == (1, 1.0)
    assert len(server.requests) == 3


def test_refusal_fails_the_call_and_is_not_cached(server: RerankDouble) -> None:
    server.failures = [("POST", "/rerank", 401)]
    with pytest.raises(ModelError, match="HTTP 401"):
        ask(server)
    assert ask(server)[0] == (1, 1.0)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({}, "missing required field `results`"),
        ({"results": None}, "results: expected `array`"),
        ({"results": [{"index": index} for index in range(3)]}, "field `relevance_score`"),
        (
            {"results": [{"index": index, "relevance_score": "high"} for index in range(3)]},
            r"results\[0\].relevance_score: expected `float`, got `str`",
        ),
        ({"results": [{"index": 0, "relevance_score": 0.5}]}, "1 scores for 3 documents"),
        (
            {"results": [{"index": index, "relevance_score": 0.5} for index in (0, 1, 3)]},
            "indices of the reply don't match its 3 documents",
        ),
        (
            {"results": [{"index": index, "relevance_score": float("nan")} for index in range(3)]},
            r"results\[0\].relevance_score: expected `float`",
        ),
    ],
)
def test_reply_without_a_complete_ranking_fails_the_call(
    server: RerankDouble, reply: dict[str, Any], message: str
) -> None:
    server.reply = reply
    with pytest.raises(ModelError, match=message):
        ask(server, patience_s=0.0)
    server.reply = None
    assert ask(server)[0] == (1, 1.0)


def test_rerankers_of_one_run_share_the_connection_limit() -> None:
    async def work(server: RerankDouble) -> list[Any]:
        network = RunNetwork()
        rerankers = [build_reranker(at_endpoint(server.base_url), network) for _ in range(3)]
        fitted = [Reordering(reranker, CORPUS) for reranker in rerankers if reranker]
        try:
            queries = [f"tea {number}" for number in range(60)]
            asked = (
                fitted[number % 3].reorder(query, CANDIDATES)
                for number, query in enumerate(queries)
            )
            return await asyncio.gather(*asked)
        finally:
            await network.aclose()

    with RerankDouble() as server:
        assert len(asyncio.run(work(server))) == 60
        assert server.connections <= RERANKER_LIMIT


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (at_endpoint(None), r"reranker=endpoint needs reranker\.base_url"),
        (
            at_endpoint("https://x.test/v1", model=None),
            r"reranker=endpoint needs reranker\.model",
        ),
        (
            at_endpoint("https://x.test/v1"),
            r"needs a key for https://x\.test/v1: .* RERANK_API_KEY is not set",
        ),
    ],
)
def test_missing_setting_is_named(
    choice: RerankerConfig, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RERANK_API_KEY", raising=False)
    with pytest.raises(UserError, match=message):
        build_reranker(choice, RunNetwork())


def test_key_is_sent_as_a_bearer_token(
    monkeypatch: pytest.MonkeyPatch, server: RerankDouble
) -> None:
    monkeypatch.setenv("RERANK_API_KEY", "secret")
    ask(server)
    assert server.requests[0].headers["authorization"] == "Bearer secret"


def test_endpoint_reranker_outside_a_run_is_refused() -> None:
    with pytest.raises(UserError, match="needs the endpoints of a run"):
        build_reranker(at_endpoint("http://localhost:9/v1"))


class ContextReader:
    async def answer(
        self, query: Query, context: Sequence[str], *, order: Sequence[int] = ()
    ) -> ReaderReply:
        return ReaderReply(" | ".join(context), None, 0)


def context(network: RunNetwork, top_k: int, address: str) -> SystemContext:
    return SystemContext(
        reader=ContextReader(),
        model=None,  # type: ignore[arg-type]
        embedder=CharTfidfEmbedder(width=256),
        top_k=top_k,
        seed=0,
        case_id="case",
        run_sync=lambda _: None,
        reranker=lambda _: build_reranker(at_endpoint(address), network),
    )


def answered(
    system_class: type[Rag] | type[Hybrid], server: RerankDouble, top_k: int, question: str
) -> Answer:
    """The answer of a system that reranks through the double."""

    async def inside() -> Answer:
        network = RunNetwork()
        parts = context(network, top_k, server.base_url)
        system = system_class(system_class.settings_type(), parts)
        try:
            for number, text in enumerate([*CORPUS, "Bob plays chess", "Ann sings"]):
                chunk = MemoryChunk(f"{number}", text, None, f"s{number}", (f"D1:{number}",), ())
                # Only a system that may call a model at ingest must be awaited.
                stored = system.ingest(chunk)
                if isawaitable(stored):
                    await stored

            await system.consolidate()
            return await system.answer(Query(question))
        finally:
            system.close()
            await network.aclose()

    return asyncio.run(inside())


@pytest.mark.parametrize("system_class", [Rag, Hybrid])
def test_best_two_times_top_k_are_reranked_and_the_rest_kept(
    server: RerankDouble, system_class: type[Rag] | type[Hybrid]
) -> None:
    answer = answered(system_class, server, 1, "likes green tea")
    assert answer.text == CORPUS[1]
    assert [len(request.json()["documents"]) for request in server.requests] == [2]
    assert len(answer.ranking or ()) == 5


def test_a_failing_endpoint_fails_the_question(server: RerankDouble) -> None:
    server.failures = [("POST", "/rerank", 400)]
    with pytest.raises(ModelError, match="HTTP 400"):
        answered(Rag, server, 2, "likes green tea")


def composed(server: RerankDouble, *words: str) -> RunConfig:
    """A config with a model and a reranker that share a URL and a key."""
    return compose_config(
        [
            *("llm=openai", f"llm.base_url={server.base_url}", "llm.model=m"),
            *("llm.api_key_env=RERANK_API_KEY", "system=rag", "reranker=endpoint"),
            *(f"reranker.base_url={server.base_url}", "reranker.model=m", *words),
        ]
    )


def test_model_and_reranker_at_one_url_share_one_endpoint(server: RerankDouble) -> None:
    config = composed(server, "llm.max_concurrency=2")

    async def work() -> int:
        models = Models(config, "run")
        try:
            reranker = models.reranker("none")
            assert reranker is not None and models.reranker("none") is reranker
            fitted = Reordering(reranker, CORPUS)
            await asyncio.gather(*(fitted.reorder(f"tea {n}", CANDIDATES) for n in range(20)))
            return server.connections
        finally:
            await models.aclose()

    assert asyncio.run(work()) <= 2


def test_systems_reranker_applies_only_if_none_is_chosen() -> None:
    models = Models(compose_config(["system=rag"]), "run")
    assert models.reranker("none") is None
    assert isinstance(models.reranker("lexical"), LexicalReranker)
    models = Models(compose_config(["system=rag", "reranker=none"]), "run")
    assert models.reranker("lexical") is None


def test_headers_are_sent_instead_of_a_key(
    server: RerankDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "a-gateways-key")
    ask(server, headers={"api-key": "GATEWAY_KEY"})
    assert server.requests[0].headers["api-key"] == "a-gateways-key"
