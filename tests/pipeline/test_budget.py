"""A budget is never exceeded, and paid results are not lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from conftest_pipeline import Command
from doubles.endpoint import ScriptedEndpoint

from memeval.results import RunSummary

SMALL = ("dataset=demo", "dataset.limit_cases=3", "dataset.limit_questions=8", "tracking=none")
SWEEP = ("-m", "system=bm25,no_memory", "top_k=3,10")
MODEL = ("llm=openai", "llm.model=gpt-4o-mini", "judge=llm", "llm.max_concurrency=64")


def asking(endpoint: ScriptedEndpoint) -> tuple[str, ...]:
    return (*SWEEP, *SMALL, *MODEL, f"llm.base_url={endpoint.base_url}")


def rows_stored(home: Path, folder: str) -> int:
    """Number of rows in a folder of outputs, without headers and ingest rows."""
    lines = [
        json.loads(line)
        for path in (home / "outputs" / folder).glob("*.jsonl")
        if not path.name.endswith(".texts.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return sum("id" in line and not line["id"].startswith("ingest ") for line in lines)


@pytest.mark.slow
def test_all_calls_of_the_budget_are_used_and_a_larger_one_continues(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint(latency_s=0.01) as endpoint:
        words = asking(endpoint)
        stopped = memeval(*words, "budget.calls=25", check=False)
        assert endpoint.count() == 25
        assert stopped.returncode == 1
        assert "stopped: 25 of budget.calls=25 are spent" in stopped.stderr
        # Also those of questions that were not finished, and those that runs share only once.
        assert "; 25 calls billed to these runs, " in stopped.stderr
        assert stopped.stderr.count("the same command with a larger budget continues it") == 1
        # Runs with equal prompts share a call, so there may be more rows than calls.
        assert rows_stored(tmp_path, "answers") + rows_stored(tmp_path, "verdicts") >= 25

        memeval(*words, "budget.calls=1000")
        bodies = [json.dumps(body, sort_keys=True) for _, body in endpoint.requests]
        assert len(bodies) == len(set(bodies)) > 25


def stopped_runs(home: Path) -> list[RunSummary]:
    """The summaries of the runs that are marked as stopped."""
    folders = [path.parent for path in (home / "outputs" / "runs").glob("*/run.json")]
    return [run for run in map(RunSummary.read, folders) if run.status == "stopped"]


@pytest.mark.slow
def test_stopped_run_is_marked_everywhere_and_can_be_continued(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint() as endpoint:
        words = ("system=bm25", *SMALL[:2], *MODEL, f"llm.base_url={endpoint.base_url}")
        small = ("llm.max_concurrency=2",)
        done = memeval(*words, *small, "budget.calls=30", check=False)
        (run,) = stopped_runs(tmp_path)
        records = sum(run.statuses.values())
        # The number of calls for answers and for verdicts depends on timing.
        assert records == rows_stored(tmp_path, "answers") > 0
        assert not run.valid
        assert run.notes[0].text.startswith("stopped: 30 of budget.calls=30 are spent")
        assert f"STOPPED: {run.name}: not finished" in done.stdout
        assert "STOPPED" in memeval("list").stdout
        report = (tmp_path / "outputs" / "runs" / run.run_key / "report.md").read_text()
        assert "**STOPPED.** stopped: 30 of budget.calls=30" in report
        assert logged(tmp_path) == [("KILLED", "stopped")]
        assert ": sound" in memeval("verify").stdout

        memeval(*words, *small)
        assert len({json.dumps(body) for _, body in endpoint.requests}) == endpoint.count()

    assert not stopped_runs(tmp_path) and "STOPPED" not in memeval("list").stdout
    assert logged(tmp_path) == [("FINISHED", "finished")]


def logged(home: Path) -> list[tuple[str, str]]:
    """Status and tag of each logged run that is not deleted."""
    with closing(sqlite3.connect(home / "mlruns" / "mlflow.db")) as database:
        return database.execute(
            "SELECT r.status, t.value FROM runs r JOIN tags t ON t.run_uuid = r.run_uuid "
            "WHERE t.key = 'memeval.status' AND r.lifecycle_stage = 'active'"
        ).fetchall()


@pytest.mark.slow
def test_a_run_that_could_not_begin_is_stopped_without_figures(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint() as endpoint:
        words = ("system=bm25", *SMALL, *MODEL, f"llm.base_url={endpoint.base_url}")
        done = memeval(*words, "budget.tokens=1", check=False)
        assert done.returncode == 1 and endpoint.count() == 0 and "Traceback" not in done.stderr

    (run,) = stopped_runs(tmp_path)
    assert run.metrics["accuracy"] is None and not sum(run.statuses.values())
    assert f"STOPPED: {run.name}" in done.stdout


@pytest.mark.slow
def test_stopped_sweep_keeps_its_finished_rows_and_can_be_continued(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint(latency_s=0.01) as endpoint:
        words = tuple(word for word in asking(endpoint) if "max_concurrency" not in word)
        words = (*words, "llm.max_concurrency=2")
        done = memeval(*words, "budget.calls=70", check=False)
        assert done.returncode == 1
        runs = stopped_runs(tmp_path)
        assert runs and done.stdout.count("STOPPED: ") == len(runs)
        memeval(*words)

    assert not stopped_runs(tmp_path)


@pytest.mark.sampled(kept=1)
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
    # 0.003 dollars buy fewer than 20,000 tokens of gpt-4o-mini, at 0.15 dollars per million prompt
    # tokens.
    assert 2_000 < sum(spent) <= 20_000


def test_a_single_run_is_stopped_as_well(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        words = ("system=bm25", *SMALL, *MODEL, f"llm.base_url={endpoint.base_url}")
        done = memeval(*words, "budget.calls=5", check=False)
        assert endpoint.count() == 5

    assert done.returncode == 1
    assert "stopped: 5 of budget.calls=5" in done.stderr


def test_dollar_budget_with_an_unknown_price_is_refused(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        words = [word for word in asking(endpoint) if not word.startswith("llm.model=")]
        done = memeval(*words, "llm.model=my-own", "budget.usd=1", check=False)
        planned = memeval("plan", *words, "llm.model=my-own", "budget.usd=1", check=False)
        gated = memeval(*words, "llm.model=my-own", "confirm_above_usd=1", check=False)
        assert endpoint.count() == 0

    assert done.returncode == planned.returncode == gated.returncode == 2
    assert "budget.usd needs the price of llm.model=my-own" in done.stderr
    assert planned.stderr == done.stderr
    for stderr in (done.stderr, gated.stderr):
        assert "prices.yaml" in stderr

    assert "{date: " in done.stderr


def test_other_commands_and_another_launcher_refuse_a_budget(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        other = memeval(*asking(endpoint), "budget.calls=5", "hydra/launcher=basic", check=False)
        prepared = memeval("prepare", *SMALL, "budget.calls=5", check=False)
        words = ("judge", "probe", *MODEL, f"llm.base_url={endpoint.base_url}")
        probed = memeval(*words, "budget.calls=5", check=False)
        assert endpoint.count() == 0

    assert (other.returncode, prepared.returncode, probed.returncode) == (2, 2, 2)
    assert "only hydra/launcher=memeval runs" in other.stderr
    assert "prepare ignores budgets" in prepared.stderr
    assert "judge probe ignores budgets" in probed.stderr


def test_cost_above_confirm_above_usd_is_refused_without_a_terminal(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        words = asking(endpoint)
        refused = memeval(*words, "confirm_above_usd=0.0001", check=False)
        assert endpoint.count() == 0
        memeval(*words, "confirm_above_usd=10")
        assert endpoint.count() > 0

    assert refused.returncode == 2
    assert "there is no terminal" in refused.stderr


def test_confirmation_says_that_a_store_may_have_results(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        shared = f"store.memories=file://{tmp_path}/shared"
        done = memeval(*asking(endpoint), shared, "confirm_above_usd=0.0001", check=False)

    assert done.returncode == 2
    assert "not counting results that store.memories already has" in done.stderr


def test_cost_of_a_fresh_stage_needs_confirmation(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        words = ("system=bm25", *SMALL, *MODEL, f"llm.base_url={endpoint.base_url}")
        memeval(*words)
        before = endpoint.count()
        shutil.rmtree(tmp_path / "data" / "cache")
        again = memeval(*words, "fresh=answer", "confirm_above_usd=0.0001", check=False)
        assert endpoint.count() == before

    assert again.returncode == 2 and "there is no terminal" in again.stderr


def test_gate_asks_for_confirmation_and_evaluate_refuses_the_option(
    memeval: Command, tmp_path: Path
) -> None:
    baseline, answers = str(tmp_path / "baseline.json"), tmp_path / "answers.jsonl"
    answers.write_text('{"question_id": "demo-1/q0", "hypothesis": "a"}\n', encoding="utf-8")
    with ScriptedEndpoint() as endpoint:
        words = (*SMALL, *MODEL, f"llm.base_url={endpoint.base_url}", "confirm_above_usd=0.0001")
        gated = memeval("gate", "--baseline", baseline, "--bless", *words, check=False)
        evaluated = memeval("evaluate", str(answers), *words, check=False)
        assert endpoint.count() == 0

    assert (gated.returncode, evaluated.returncode) == (2, 2)
    assert "there is no terminal" in gated.stderr
    assert "evaluate ignores confirm_above_usd" in evaluated.stderr
