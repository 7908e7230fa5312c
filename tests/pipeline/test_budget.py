"""A budget is never exceeded, and what was paid for is not lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest_pipeline import Command

from memeval.testing.endpoint import ScriptedEndpoint

SMALL = ("dataset=demo", "dataset.limit_questions=8", "tracking=none")
SWEEP = ("-m", "system=bm25,no_memory", "top_k=3,10")
MODEL = ("llm=openai", "llm.model=gpt-4o-mini", "judge=llm", "llm.max_concurrency=64")


def asking(endpoint: ScriptedEndpoint) -> tuple[str, ...]:
    return (*SWEEP, *SMALL, *MODEL, f"llm.base_url={endpoint.base_url}")


def rows_stored(home: Path, folder: str) -> int:
    """Rows of a folder of outputs, without headers and ingests."""
    lines = [
        json.loads(line)
        for path in (home / "outputs" / folder).glob("*.jsonl")
        if not path.name.endswith(".texts.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return sum("id" in line and not line["id"].startswith("ingest ") for line in lines)


def test_calls_are_spent_to_the_last_and_a_larger_budget_goes_on(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint(latency_s=0.01) as endpoint:
        words = asking(endpoint)
        stopped = memeval(*words, "budget.calls=25", check=False)
        assert endpoint.count() == 25
        assert stopped.returncode == 1
        assert "stopped: 25 of budget.calls=25 are spent" in stopped.stderr
        assert stopped.stderr.count("the same command with a larger budget goes on") == 1
        # Cells whose prompts are equal share a call: there may be more rows than calls.
        assert rows_stored(tmp_path, "answers") + rows_stored(tmp_path, "verdicts") >= 25

        memeval(*words, "budget.calls=1000")
        bodies = [json.dumps(body, sort_keys=True) for _, body in endpoint.requests]
        assert len(bodies) == len(set(bodies)) > 25


@pytest.mark.parametrize("budget", ["budget.tokens=20000", "budget.usd=0.003"])
def test_tokens_and_dollars_are_never_exceeded(
    memeval: Command, tmp_path: Path, budget: str
) -> None:
    spent = []

    def count(payload: dict[str, dict[str, int]]) -> None:
        spent.append(payload["usage"]["total_tokens"])

    with ScriptedEndpoint(latency_s=0.02, edit=count) as endpoint:
        done = memeval(*asking(endpoint), budget, check=False)

    assert done.returncode == 1
    assert f"of {budget}" in done.stderr
    # 0.003 dollars buy fewer than 20,000 tokens of gpt-4o-mini, at 0.15 for a million sent.
    assert 2_000 < sum(spent) <= 20_000


def test_a_single_run_is_stopped_as_well(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        words = ("system=bm25", *SMALL, *MODEL, f"llm.base_url={endpoint.base_url}")
        done = memeval(*words, "budget.calls=5", check=False)
        assert endpoint.count() == 5

    assert done.returncode == 1
    assert "stopped: 5 of budget.calls=5" in done.stderr


def test_a_price_that_is_unknown_is_refused_with_a_budget_in_dollars(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        done = memeval(*asking(endpoint), "llm.model=my-own", "budget.usd=1", check=False)
        assert endpoint.count() == 0

    assert done.returncode == 2
    assert "budget.usd needs the price of llm.model=my-own" in done.stderr


def test_another_launcher_and_prepare_refuse_a_budget(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        other = memeval(*asking(endpoint), "budget.calls=5", "hydra/launcher=basic", check=False)
        prepared = memeval("prepare", *SMALL, "budget.calls=5", check=False)
        assert endpoint.count() == 0

    assert (other.returncode, prepared.returncode) == (2, 2)
    assert "hydra/launcher=memeval alone" in other.stderr
    assert "prepare keeps no budget" in prepared.stderr


def test_a_cost_is_confirmed_or_refused(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        words = asking(endpoint)
        refused = memeval(*words, "confirm_above_usd=0.0001", check=False)
        assert endpoint.count() == 0
        memeval(*words, "confirm_above_usd=10")
        assert endpoint.count() > 0

    assert refused.returncode == 2
    assert "there is no terminal" in refused.stderr
