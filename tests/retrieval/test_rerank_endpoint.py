"""A cross-encoder behind an endpoint, against a double on loopback: shape, cache, meter, retries,
failures, and `rag` on top.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from memeval.embedding.tfidf import CharTfidfEmbedder
from memeval.errors import ModelError, UserError
from memeval.llm.metering import Ledger, metered
from memeval.records import MemoryChunk, Query, Role
from memeval.retrieval import rerank_endpoint
from memeval.retrieval.rerank import LexicalReranker, Rerank, Reranker, build_reranker
from memeval.retrieval.rerank_endpoint import MAX_CONCURRENCY
from memeval.systems.base import ReaderReply, SystemContext
from memeval.systems.retrieval.hybrid import Hybrid
from memeval.systems.retrieval.hybrid import Settings as HybridSettings
from memeval.systems.retrieval.rag import Rag
from memeval.systems.retrieval.rag import Settings as RagSettings
from memeval.testing.rerank_double import RerankDouble

T = TypeVar("T")

CORPUS = ["Ann went to Norway", "Bob likes green tea", "Ann likes tea"]
CANDIDATES = [(0, 0.9), (1, 0.5), (2, 0.4)]


@dataclass(frozen=True)
class Choice:
    rerank: Rerank = "endpoint"
    rerank_url: str | None = None
    rerank_model: str | None = "cross-encoder"
    rerank_key_env: str = "RERANK_API_KEY"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def server() -> Iterator[RerankDouble]:
    with RerankDouble() as double:
        yield double


def endpoint(server: RerankDouble, **settings: Any) -> Reranker:
    reranker = build_reranker(Choice(rerank_url=server.base_url), CORPUS, **settings)
    assert reranker is not None
    return reranker


def run(
    reranker: Reranker, work: Callable[[], Coroutine[Any, Any, T]], ledger: Ledger | None = None
) -> T:
    async def inside() -> T:
        try:
            with metered(ledger or Ledger()):
                return await work()
        finally:
            reranker.close()

    return asyncio.run(inside())


def ask(
    reranker: Reranker,
    query: str = "green tea",
    ledger: Ledger | None = None,
    candidates: Any = CANDIDATES,
) -> list[Any]:
    return run(reranker, lambda: reranker.reorder(query, candidates), ledger)


def test_the_request_and_what_is_made_of_the_reply(server: RerankDouble) -> None:
    assert ask(endpoint(server)) == [(1, 1.0), (2, 0.5), (0, 0.0)]
    (request,) = server.requests
    assert request.json() == {
        "model": "cross-encoder",
        "query": "green tea",
        "documents": CORPUS,
        "top_n": 3,
    }
    assert (request.method, request.path) == ("POST", "/v1/rerank")


def test_only_the_candidates_are_sent_and_ties_keep_their_order(server: RerankDouble) -> None:
    assert ask(endpoint(server), "zebra", candidates=[(2, 0.1), (0, 0.7)]) == [(2, 0.0), (0, 0.0)]
    assert server.requests[0].json()["documents"] == [CORPUS[2], CORPUS[0]]


def test_the_address_may_name_the_path(server: RerankDouble) -> None:
    reranker = build_reranker(Choice(rerank_url=server.base_url + "/rerank/"), CORPUS)
    assert reranker is not None
    ask(reranker)
    assert server.requests[0].path == "/v1/rerank"


@pytest.mark.parametrize(("query", "candidates"), [("  ", CANDIDATES), ("tea", [])])
def test_nothing_to_rank_is_sent_nowhere(
    server: RerankDouble, query: str, candidates: list[Any]
) -> None:
    assert ask(endpoint(server), query, candidates=candidates) == candidates
    assert server.requests == []


def test_what_was_ranked_once_is_never_paid_for_again(server: RerankDouble) -> None:
    first, second = Ledger(scope="q1"), Ledger(scope="q2")
    answers = [
        ask(endpoint(server, origin="run 1"), ledger=first),
        ask(endpoint(server, origin="run 2"), ledger=second),
    ]
    assert answers[0] == answers[1]
    assert len(server.requests) == 1
    assert (first.cached, second.cached) == (False, True)
    assert second.replayed_s > 0


def test_what_the_same_run_paid_for_stays_billed_to_it(server: RerankDouble) -> None:
    ledgers = [Ledger(), Ledger()]
    for ledger in ledgers:
        ask(endpoint(server, origin="run 1"), ledger=ledger)
    assert len(server.requests) == 1
    assert [ledger.cached for ledger in ledgers] == [False, False]


@pytest.mark.parametrize(
    "other",
    [
        {"query": "black tea"},
        {"candidates": CANDIDATES[:2]},
        {"candidates": [CANDIDATES[1], CANDIDATES[0], CANDIDATES[2]]},
    ],
)
def test_another_request_is_another_entry(server: RerankDouble, other: dict[str, Any]) -> None:
    ask(endpoint(server))
    ask(endpoint(server), **other)
    assert len(server.requests) == 2


def test_tokens_are_the_endpoints_own_where_it_tells_them(server: RerankDouble) -> None:
    ledger = Ledger()
    ask(endpoint(server), ledger=ledger)
    (usage,) = ledger.usages
    assert (usage.role, usage.model, usage.prompt_tokens, usage.completion_tokens) == (
        Role.EMBED,
        "cross-encoder",
        17,
        0,
    )
    assert not usage.estimated


def test_tokens_are_counted_where_it_does_not() -> None:
    ledger = Ledger()
    with RerankDouble(usage=False) as server:
        ask(endpoint(server), ledger=ledger)
    (usage,) = ledger.usages
    assert (usage.prompt_tokens, usage.estimated) == (17, True)


@pytest.mark.parametrize("status", [429, 503])
def test_what_may_pass_is_tried_again(server: RerankDouble, status: int) -> None:
    server.failures = [("POST", "/rerank", status)] * 2
    assert ask(endpoint(server))[0] == (1, 1.0)
    assert len(server.requests) == 3


def test_a_refusal_is_a_fault_of_the_world_and_is_not_kept(server: RerankDouble) -> None:
    server.failures = [("POST", "/rerank", 401)]
    with pytest.raises(ModelError, match="HTTP 401"):
        ask(endpoint(server))
    assert ask(endpoint(server))[0] == (1, 1.0)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ({}, "no list of scores"),
        ({"results": None}, "no list of scores"),
        ({"results": [{"index": index} for index in range(3)]}, "not a finite number"),
        (
            {"results": [{"index": index, "relevance_score": "high"} for index in range(3)]},
            "not a finite number",
        ),
        ({"results": [{"index": 0, "relevance_score": 0.5}]}, "1 scores for 3 documents"),
        (
            {"results": [{"index": index, "relevance_score": 0.5} for index in (0, 1, 3)]},
            "indices of the reply are not those of 3 documents",
        ),
        (
            {"results": [{"index": index, "relevance_score": float("nan")} for index in range(3)]},
            "not a finite number",
        ),
    ],
)
def test_a_reply_without_a_whole_ranking_is_a_fault(
    server: RerankDouble, monkeypatch: pytest.MonkeyPatch, reply: dict[str, Any], told: str
) -> None:
    monkeypatch.setattr(rerank_endpoint, "PATIENCE_S", 0.0)
    server.reply = reply
    with pytest.raises(ModelError, match=told):
        ask(endpoint(server))
    server.reply = None
    assert ask(endpoint(server))[0] == (1, 1.0)


def test_rerankers_of_one_address_share_its_limit_and_close_on_their_own() -> None:
    with RerankDouble() as server:
        rerankers = [endpoint(server) for _ in range(3)]

        async def work() -> list[Any]:
            queries = [f"tea {number}" for number in range(60)]
            asked = (
                rerankers[number % 3].reorder(query, CANDIDATES)
                for number, query in enumerate(queries)
            )
            replies = await asyncio.gather(*asked)
            rerankers[1].close()
            return [*replies, await rerankers[2].reorder("tea", CANDIDATES)]

        assert len(run(rerankers[0], work)) == 61
        rerankers[2].close()
        assert server.connections <= MAX_CONCURRENCY


def test_a_closed_reranker_opens_again(server: RerankDouble) -> None:
    reranker = endpoint(server)
    assert ask(reranker, "tea") != []
    assert ask(reranker, "green") != []
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (Choice(), r"system\.rerank=endpoint needs system\.rerank_url"),
        (
            Choice(rerank_url="https://x.test/v1", rerank_model=None),
            r"system\.rerank=endpoint needs system\.rerank_model",
        ),
        (
            Choice(rerank_url="https://x.test/v1"),
            r"needs a key for https://x\.test/v1: .* RERANK_API_KEY is not set",
        ),
    ],
)
def test_what_is_missing_is_named(
    choice: Choice, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RERANK_API_KEY", raising=False)
    with pytest.raises(UserError, match=told):
        build_reranker(choice, CORPUS)


def test_the_key_is_sent(monkeypatch: pytest.MonkeyPatch, server: RerankDouble) -> None:
    monkeypatch.setenv("RERANK_API_KEY", "secret")
    ask(endpoint(server))
    assert server.requests[0].headers["authorization"] == "Bearer secret"


def test_the_other_choices_need_no_address() -> None:
    assert build_reranker(Choice("none"), CORPUS) is None
    lexical = build_reranker(Choice("lexical"), CORPUS)
    assert isinstance(lexical, LexicalReranker)
    assert ask(lexical) == LexicalReranker(CORPUS).rerank("green tea", CANDIDATES)


class ContextReader:
    async def answer(self, query: Query, context: Sequence[str]) -> ReaderReply:
        return ReaderReply(" | ".join(context), None, 0)


def parts(top_k: int) -> SystemContext:
    return SystemContext(
        ContextReader(), None, CharTfidfEmbedder(width=256), top_k, 0, "case", lambda _: None
    )  # type: ignore[arg-type]


def rag(server: RerankDouble, top_k: int) -> Rag:
    return Rag(
        RagSettings(rerank="endpoint", rerank_url=server.base_url, rerank_model="cross-encoder"),
        parts(top_k),
    )


def hybrid(server: RerankDouble, top_k: int) -> Hybrid:
    return Hybrid(
        HybridSettings(rerank="endpoint", rerank_url=server.base_url, rerank_model="cross-encoder"),
        parts(top_k),
    )


def remembered(system: Rag | Hybrid, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    async def inside() -> T:
        try:
            for number, text in enumerate([*CORPUS, "Bob plays chess", "Ann sings"]):
                system.ingest(
                    MemoryChunk(f"{number}", text, None, f"s{number}", (f"D1:{number}",), ())
                )
            await system.consolidate()
            return await work()
        finally:
            system.close()

    return asyncio.run(inside())


@pytest.mark.parametrize("build", [rag, hybrid])
def test_it_reorders_twice_top_k_and_keeps_the_rest(
    server: RerankDouble, build: Callable[[RerankDouble, int], Rag | Hybrid]
) -> None:
    system = build(server, 1)
    answer = remembered(system, lambda: system.answer(Query("likes green tea")))
    assert answer.text == CORPUS[1]
    assert [len(request.json()["documents"]) for request in server.requests] == [2]
    assert len(answer.ranking or ()) == 5


def test_a_failing_endpoint_fails_the_question(server: RerankDouble) -> None:
    server.failures = [("POST", "/rerank", 400)]
    system = rag(server, 2)
    with pytest.raises(ModelError, match="HTTP 400"):
        remembered(system, lambda: system.answer(Query("likes green tea")))
