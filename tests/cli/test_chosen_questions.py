"""`dataset.sample`, `dataset.question_ids`, `only=wrong:RUN` and `dataset.limit_questions`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import completed, memeval

from memeval.comparison.build import compare_runs
from memeval.comparison.finding import finished_runs
from memeval.datasets.registry import DATASETS
from memeval.metrics.registry import metric_named
from memeval.results import Record, read_records

SHIPPED = DATASETS["demo"]

DEMO = ("dataset=demo", "tracking=none", "plots=false")


def only_run(home: Path) -> tuple[Mapping[str, Any], list[Record]]:
    """The only run of a home: its summary and its records."""
    (folder,) = home.glob("outputs/runs/*")
    summary = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return summary, list(read_records(folder / "records.jsonl"))


@pytest.mark.slow
def test_sample_is_named_and_its_accuracy_weighted(tmp_path: Path) -> None:
    done = completed(tmp_path, *DEMO, "sample=25")
    summary, records = only_run(tmp_path)
    assert "sample 25" in done.out
    assert "sample 25" in summary["name"] and "sample=25 seed=0" in summary["tags"]["protocol"]
    (report,) = tmp_path.glob("outputs/runs/*/report.md")
    assert "sample 25" in report.read_text(encoding="utf-8")

    assert len(records) == 25
    assert {record.case_id for record in records} == {f"demo-{number}" for number in range(1, 11)}
    headline = [record for record in records if record.category != 5]
    weighted = sum(record.weight * (record.score or 0.0) for record in headline)
    total = sum(record.weight for record in headline)
    assert summary["metrics"]["accuracy"] == pytest.approx(weighted / total)
    assert sum(record.weight for record in records) == pytest.approx(SHIPPED.counts["questions"])


@pytest.mark.slow
def test_runs_over_one_sample_are_compared_with_its_weights(tmp_path: Path) -> None:
    completed(tmp_path, "-m", *DEMO, "dataset.sample=30", "system=oracle,no_memory")
    oracle, nothing = sorted(
        finished_runs(tmp_path / "outputs" / "runs"),
        key=lambda run: -(run.summary.metrics["accuracy"] or 0.0),
    )
    comparison = compare_runs([oracle, nothing], metric_named("accuracy"), baseline=1)
    apart = (oracle.summary.metrics["accuracy"] or 0) - (nothing.summary.metrics["accuracy"] or 0)
    assert comparison.differences[0].result.mean == pytest.approx(apart)
    assert comparison.runs[0].result is not None
    assert comparison.runs[0].result.mean == pytest.approx(oracle.summary.metrics["accuracy"])


@pytest.mark.slow
def test_only_wrong_asks_the_wrong_questions_again_without_a_score(tmp_path: Path) -> None:
    completed(tmp_path, *DEMO, "system=no_memory")
    summary, records = only_run(tmp_path)
    wrong = {record.question_id for record in records if record.score == 0}
    key = summary["run_key"]

    words = (*DEMO, "system=oracle", f"only=wrong:{key[:8]}")
    assert "points of accuracy" not in completed(tmp_path, "plan", *words).out
    done = completed(tmp_path, *words)
    (again,) = (run for run in finished_runs(tmp_path / "outputs" / "runs") if run.key != key)
    asked = {record.question_id for record in read_records(again.folder / "records.jsonl")}
    assert asked == wrong
    assert again.summary.tags["only"] == f"wrong:{key}"
    assert f"no score: only wrong:{key}" in done.out.replace("\n", " ")
    assert again.summary.metrics["accuracy"] is None
    assert all(row.accuracy is None for row in again.summary.categories)
    assert again.summary.metrics["recall_at_5"] is not None


def test_only_wrong_has_no_figures_of_the_protocol(tmp_path: Path) -> None:
    words = ("dataset=demo_memory_agent_bench", *DEMO[1:], "system=no_memory")
    completed(tmp_path, *words)
    whole, _ = only_run(tmp_path)
    completed(tmp_path, *words, f"only=wrong:{whole['run_key']}")
    (again,) = (
        run for run in finished_runs(tmp_path / "outputs" / "runs") if run.key != whole["run_key"]
    )
    assert whole["metrics"]["substring_exact_match"] is not None
    assert again.summary.metrics["substring_exact_match"] is None
    assert ": sound" in completed(tmp_path, "verify").out


def test_only_wrong_is_refused_for_a_retrieval_only_run(tmp_path: Path) -> None:
    completed(tmp_path, *DEMO, "dataset.limit_cases=1", "stages=retrieve", "system=bm25")
    summary, _ = only_run(tmp_path)
    done = memeval(tmp_path, *DEMO, f"only=wrong:{summary['run_key']}")
    assert done.status == 2 and "only retrieved, so no answer is right or wrong" in done.err


@pytest.mark.slow
def test_only_named_questions_are_asked(tmp_path: Path) -> None:
    done = completed(tmp_path, *DEMO, "dataset.question_ids=[demo-2/q1,demo-1/q0]")
    summary, records = only_run(tmp_path)
    assert [record.question_id for record in records] == ["demo-1/q0", "demo-2/q1"]
    assert "2 named questions" in done.out and summary["tags"]["named_questions"] == "2"


@pytest.mark.slow
def test_limit_questions_is_flagged_as_a_biased_cut(tmp_path: Path) -> None:
    done = completed(tmp_path, *DEMO, "dataset.limit_questions=2")
    assert "biased cut: first 2 of each conversation" in " ".join(done.out.split())


@pytest.mark.sampled(kept=3)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sample=0"], "dataset.sample must be at least 1, not 0"),
        (["sample=2"], "dataset.sample=2 is smaller than the number of categories, 5"),
        (["sample=9", "dataset.limit_questions=2"], "dataset.limit_questions excludes some"),
        (["question_ids=[demo-1/q0,nothing]"], "dataset=demo does not ask nothing"),
        (["question_ids=[a,b,c,d,e]"], "dataset=demo does not ask a, b, c and 2 more"),
        (["question_ids=[]"], "dataset.question_ids must name a question"),
        (["only=right:abc"], "dataset.only must be wrong:RUN, not 'right:abc'"),
        (["only=wrong:abc"], "unknown run 'abc'"),
    ],
)
def test_invalid_selections_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    done = memeval(tmp_path, *DEMO, *words)
    assert done.status == 2
    assert message in done.err
