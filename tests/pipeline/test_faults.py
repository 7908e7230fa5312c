"""External faults: transient faults are retried, lasting faults become a status, and no failure is
ever a score.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest_pipeline import HURRIED, QUESTIONS, SMALL, Command, records, summary
from doubles.endpoint import Faults, ScriptedEndpoint
from doubles.faults import LASTING, PASSING

CHAT = "/chat/completions"


PATIENCE_S = {"timeout": 1.0}
"""The timeout if the fault is a hanging reply; for other faults a busy machine may be slow."""


def model(endpoint: ScriptedEndpoint, *more: str, timeout_s: float = 60.0) -> tuple[str, ...]:
    judged = () if any(word.startswith("judge=") for word in more) else ("judge=keyword",)
    reach = ("llm=openai", f"llm.base_url={endpoint.base_url}", f"llm.timeout_s={timeout_s}")
    return (*SMALL, *reach, *judged, *more)


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("kind", PASSING)
def test_transient_faults_are_retried(memeval: Command, tmp_path: Path, kind: str) -> None:
    faults = Faults({kind: 0.3}, seed=3, hang_s=2.5)
    patience = PATIENCE_S.get(kind, 60.0)
    with ScriptedEndpoint(faults=faults) as endpoint:
        memeval(*model(endpoint, timeout_s=patience), constants=HURRIED)
        assert endpoint.faulted[kind] > 0
        assert endpoint.served[CHAT] == QUESTIONS
        assert endpoint.count(CHAT) == QUESTIONS + endpoint.faulted[kind]
    assert {row["status"] for row in records(tmp_path)} == {"ok"}
    assert summary(tmp_path)["metrics"]["coverage"] == 1.0


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("kind", LASTING)
def test_lasting_faults_become_statuses_and_are_not_tried_again(
    memeval: Command, tmp_path: Path, kind: str
) -> None:
    # One call at a time, the first of which succeeds: a key or model that is refused on the very
    # first call ends the run.
    with ScriptedEndpoint(faults=Faults({kind: 0.4}, seed=5)) as endpoint:
        done = memeval(*model(endpoint, "llm.max_concurrency=1"), check=False)
        assert done.returncode == 1 and "INVALID" in done.stdout
        assert endpoint.count(CHAT) == QUESTIONS
        failed = endpoint.faulted[kind]
    assert 0 < failed < QUESTIONS
    rows = records(tmp_path)
    broken = [row for row in rows if row["status"] == "answer_failed"]
    assert len(broken) == failed
    assert all(row["error"] and row["verdict"] is None and not row["metrics"] for row in broken)
    run = summary(tmp_path)
    assert run["metrics"]["coverage"] == pytest.approx(1 - failed / QUESTIONS)
    assert run["valid"] is False
    assert run["statuses"]["answer_failed"] == failed
    scored = [
        row["verdict"]["label"] == "correct"
        for row in rows
        if row["status"] == "ok" and row["category"] != 5
    ]
    assert run["metrics"]["accuracy"] == pytest.approx(sum(scored) / len(scored)), (
        "failures are in no mean"
    )


def test_failures_are_tried_again_by_the_same_command(memeval: Command, tmp_path: Path) -> None:
    faults = Faults({"server_error": 0.7}, seed=1)
    with ScriptedEndpoint(faults=faults) as endpoint:
        once = model(endpoint, "llm.max_retries=0")
        done = memeval(*once, check=False, constants=HURRIED)
        assert done.returncode == 1 and "INVALID" in done.stdout
        served = endpoint.served[CHAT]
        endpoint.faults = Faults()
        memeval(*once, constants=HURRIED)
        assert endpoint.served[CHAT] == QUESTIONS, "only what had failed was asked again"
        assert served < QUESTIONS
    assert {row["status"] for row in records(tmp_path)} == {"ok"}


@pytest.mark.slow
def test_verdict_without_a_label_leaves_the_answer_unscored(
    memeval: Command, tmp_path: Path
) -> None:
    def reply(body: object) -> str:
        return "I would say CORRECT" if "Reference answer" in str(body) else "7 May 2023"

    with ScriptedEndpoint(reply) as endpoint:
        memeval(
            *model(endpoint, "judge=llm", "dataset.categories=[4]", "dataset.limit_questions=6"),
            check=False,
        )
    assert {row["status"] for row in records(tmp_path)} == {"unparsed"}
    run = summary(tmp_path)
    assert run["metrics"]["accuracy"] is None
    assert (run["metrics"]["accuracy_worst_case"], run["metrics"]["accuracy_best_case"]) == (
        0.0,
        1.0,
    )


def test_one_limit_holds_for_answers_judge_and_embedder(memeval: Command) -> None:
    with ScriptedEndpoint(latency_s=0.02) as endpoint:
        limited = (
            "llm.max_concurrency=3",
            "judge=llm",
            "system=dense",
            "embedder=openai",
            f"embedder.base_url={endpoint.base_url}",
        )
        memeval(*model(endpoint, *limited))
        assert endpoint.peak == 3


@pytest.mark.slow
def test_unreported_usage_is_estimated_and_unknown_cost_is_none(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint(usage=False) as endpoint:
        memeval(*model(endpoint, "llm.model=gpt-4o-mini"))
    assert all(usage["estimated"] for row in records(tmp_path) for usage in row["usage"])
    assert summary(tmp_path)["metrics"]["cost_usd/total"] > 0
    with ScriptedEndpoint() as endpoint:
        memeval(*model(endpoint, "llm.model=nobody-knows-it"))
        sent = sum(
            len(str(message["content"]).split())
            for _, body in endpoint.requests
            for message in body["messages"]
        )
    assert not any(usage["estimated"] for row in records(tmp_path) for usage in row["usage"])
    metrics = summary(tmp_path)["metrics"]
    assert metrics["tokens/answer/prompt"] == sent
    assert metrics["cost_usd/total"] is None, "an unknown model's cost is unknown, not 0"
