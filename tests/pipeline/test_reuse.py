"""Nothing is done twice: the calls that reach the endpoint are counted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import QUESTIONS, SMALL, Command, records, summary
from doubles.endpoint import ScriptedEndpoint
from doubles.replies import scripted_reply

from memeval.pipeline.execute.rows import Bill
from memeval.records import Role, Status, Usage
from memeval.results import AnswerRow

CHAT, EMBED = "/chat/completions", "/embeddings"


def model(endpoint: ScriptedEndpoint, judge: str = "keyword") -> tuple[str, ...]:
    reach = ("llm=openai", f"llm.base_url={endpoint.base_url}", "llm.model=gpt-4o-mini")
    return (*SMALL, *reach, f"judge={judge}")


def test_finished_run_makes_no_call_and_says_so(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        memeval(*model(endpoint, "llm"))
        before = records(tmp_path)
        assert endpoint.count(CHAT) == QUESTIONS + sum(row["answerable"] for row in before)
        calls = endpoint.count()
        again = memeval(*model(endpoint, "llm"))
        assert endpoint.count() == calls
        assert "reused" in again.stderr
        assert records(tmp_path) == before


def test_new_judge_reuses_the_answers(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        memeval(*model(endpoint))
        assert endpoint.count(CHAT) == QUESTIONS
        hypotheses = [row["hypothesis"] for row in records(tmp_path)]
        memeval(*model(endpoint, "llm"))
        rows = records(tmp_path)
        assert endpoint.count(CHAT) == QUESTIONS + sum(row["answerable"] for row in rows)
        assert [row["hypothesis"] for row in rows] == hypotheses
        metrics = summary(tmp_path)["metrics"]
        assert metrics["cost_usd/answer"] == 0, "the answers were paid for by the run before"
        assert metrics["cost_usd_uncached/answer"] > 0
        assert metrics["cost_usd/judge"] > 0


def test_new_top_k_reuses_vectors_and_memories(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        embedder = (
            "system=dense",
            "embedder=openai",
            f"embedder.base_url={endpoint.base_url}",
        )
        memeval(*SMALL, *embedder, "top_k=3")
        first = endpoint.count(EMBED)
        assert first > 0
        texts = sum(len(body["input"]) for path, body in endpoint.requests if path.endswith(EMBED))
        memeval(*SMALL, *embedder, "top_k=7")
        assert endpoint.count(EMBED) == first, "chunks and questions were embedded before"
        assert texts == len({text for path, body in endpoint.requests for text in body["input"]})


def test_requests_that_conversations_or_repeats_share_are_billed_once(
    memeval: Command, tmp_path: Path
) -> None:
    replies: list[Mapping[str, Any]] = []
    with ScriptedEndpoint(edit=replies.append) as endpoint:
        embedder = ("embedder=openai", f"embedder.base_url={endpoint.base_url}")
        words = ("dataset=demo_longmemeval", "granularity=session", "num_runs=2", "tracking=none")
        memeval(*model(endpoint)[len(SMALL) :], *embedder, *words, "system=graphrag_lite")
        texts = [text for path, body in endpoint.requests for text in body.get("input", ())]

    sent = sum(reply["usage"]["prompt_tokens"] for reply in replies)
    received = sum(reply["usage"]["completion_tokens"] for reply in replies)
    embedded = sum(len(text.split()) for text in texts)

    metrics = summary(tmp_path)["metrics"]
    assert metrics["cost_usd/embed"] == pytest.approx(embedded * 0.02e-6)
    chat_usd = metrics["cost_usd/ingest"] + metrics["cost_usd/answer"]
    assert chat_usd == pytest.approx(sent * 0.15e-6 + received * 0.6e-6)
    assert metrics["cost_usd_uncached/total"] > metrics["cost_usd/total"]
    memeval("verify")


def test_ingest_that_fails_again_is_billed_for_all_its_calls(
    memeval: Command, tmp_path: Path
) -> None:
    replies: list[Mapping[str, Any]] = []
    most = 0

    def reply(body: Mapping[str, Any]) -> str | Mapping[str, Any]:
        if len(replies) == most:
            return {"error": {"message": "not now", "code": 400}}

        return scripted_reply(body)

    words = ("dataset=demo", "dataset.limit_cases=1", "dataset.limit_questions=1")
    with ScriptedEndpoint(reply, edit=replies.append) as endpoint:
        for most in (2, 5):
            reach = model(endpoint)[len(SMALL) :]
            command = (*words, *reach, "system=graphrag_lite", "tracking=none")
            done = memeval(*command, check=False)
            assert len(replies) == most and "prepare 0/1 (1 failed)" in done.stderr

    sent = sum(reply["usage"]["prompt_tokens"] for reply in replies)
    received = sum(reply["usage"]["completion_tokens"] for reply in replies)
    expected = pytest.approx(sent * 0.15e-6 + received * 0.6e-6)
    assert summary(tmp_path)["metrics"]["cost_usd/total"] == expected


def test_equal_usages_that_a_service_reports_are_billed_each() -> None:
    usage = Usage(Role.EMBED, "text-embedding-3-small", "openai", 7, 0)
    bill = Bill("run")
    for _ in range(2):
        row = AnswerRow(id="q", status=Status.OK, usage=(usage,), origin="run")
        assert bill.usages_of(row) == (usage,)


def test_repeats_embed_once_and_are_billed_once(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        embedder = ("embedder=openai", f"embedder.base_url={endpoint.base_url}")
        memeval(*model(endpoint), *embedder, "system=dense", "num_runs=2")
        texts = [text for path, body in endpoint.requests for text in body.get("input", ())]

    metrics = summary(tmp_path)["metrics"]
    assert len(texts) == len(set(texts)), "the second repeat reads the vectors from the cache"
    assert metrics["cost_usd/embed"] == pytest.approx(metrics["cost_usd_uncached/embed"] / 2)
    assert metrics["cost_usd/answer"] == metrics["cost_usd_uncached/answer"]
    memeval("verify")


@pytest.mark.slow
def test_memory_with_a_model_is_built_once_for_all_top_k(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        limited = ("dataset.limit_cases=1", "dataset.limit_questions=2", "granularity=session")
        embedder = ("embedder=openai", f"embedder.base_url={endpoint.base_url}")
        mem0 = (*model(endpoint), *limited, *embedder, "system=mem0", "system.infer=true")
        memeval(*mem0, "top_k=3")
        first = endpoint.count(CHAT)
        assert first > 2
        memeval(*mem0, "top_k=4")
        assert endpoint.count(CHAT) <= first + 2, "only the two answers may be requested again"


@pytest.mark.slow
def test_each_repeat_runs_end_to_end_with_its_own_seed(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        memeval(*model(endpoint), "num_runs=3", "seed=7")
        assert endpoint.count(CHAT) == 3 * QUESTIONS
        assert {body["seed"] for _, body in endpoint.requests} == {7, 8, 9}
        assert [repeat["seed"] for repeat in summary(tmp_path)["repeats"]] == [7, 8, 9]
        memeval(*model(endpoint), "num_runs=4", "seed=7")
        assert endpoint.count(CHAT) == 4 * QUESTIONS, "three of the four repeats were there"
