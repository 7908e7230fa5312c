"""`stages=retrieve`: measures retrieval without an answer, a judge or a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import completed, memeval

from memeval.comparison.finding import finished_runs
from memeval.results import read_records

DEMO = ("dataset=demo", "tracking=none", "plots=false")


@pytest.mark.slow
def test_retrieval_only_needs_no_key_and_has_the_recall_of_a_full_run(tmp_path: Path) -> None:
    completed(tmp_path, *DEMO, "system=rag")
    # Model and judge can't be reached, and neither is called.
    asked = ("llm=openai", "llm.model=gpt-4o-mini", "llm.base_url=http://127.0.0.1:9", "judge=llm")
    done = completed(tmp_path, *DEMO, "system=rag", "stages=retrieve", *asked, OPENAI_API_KEY="")
    whole, alone = finished_runs(tmp_path / "outputs" / "runs")

    assert alone.summary.tags["stages"] == "retrieve" and alone.summary.valid
    for name in ("recall_at_5", "recall_all_at_10", "mrr", "session_recall_at_5"):
        assert alone.summary.metrics[name] == whole.summary.metrics[name]
    assert alone.summary.metrics["recall_at_5/temporal"] is not None
    assert alone.summary.metrics["accuracy"] is None
    assert alone.summary.metrics["accuracy_worst_case"] is None
    assert alone.summary.metrics["tokens/total"] == 0
    assert "judge" not in alone.summary.params
    assert "(10 reused)" in done.err  # the memories of the full run

    records = list(read_records(alone.folder / "records.jsonl"))
    assert {record.status.value for record in records} == {"retrieved"}
    assert all(record.hypothesis is None and record.verdict is None for record in records)
    report = (alone.folder / "report.md").read_text(encoding="utf-8")
    assert "| category | n | turn R@1 | turn R@5 |" in report and "that failed" not in report
    assert "retrieval only" in " ".join(done.out.split())
    answers = [run.summary.identity["keys"][0]["answer"] for run in (whole, alone)]
    assert answers[0] != answers[1]


def test_judge_and_prompt_do_not_change_a_retrieval_only_run(tmp_path: Path) -> None:
    completed(tmp_path, *DEMO, "stages=retrieve")
    done = completed(tmp_path, *DEMO, "stages=retrieve", "judge=token_f1", "prompt=cot")
    assert "already done: reused" in done.err
    (folder,) = tmp_path.glob("outputs/runs/*")
    assert memeval(tmp_path, "verify").status == 0
    # Retrieval is measured on the questions outside the headline, too.
    assert "142" in completed(tmp_path, "list").out.split()
    assert "questions: 142" in " ".join(completed(tmp_path, "show", folder.name).out.split())


@pytest.mark.slow
def test_retrieval_only_sweep_is_compared_by_recall(tmp_path: Path) -> None:
    done = completed(tmp_path, "-m", *DEMO, "system=bm25,dense", "stages=retrieve", "sample=40")
    assert done.out.startswith("recall_at_10: dense ")
    (file,) = tmp_path.glob("outputs/sweeps/*/comparison.json")
    assert json.loads(file.read_text(encoding="utf-8"))["metric"] == "recall_at_10"


@pytest.mark.slow
def test_invalid_stages_are_refused(tmp_path: Path) -> None:
    done = memeval(tmp_path, *DEMO, "stages=retrieval")
    assert done.status == 2 and "unknown stages 'retrieval'" in done.err

    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"question_id": "demo-1/q0", "hypothesis": "yes"}\n', encoding="utf-8")
    done = memeval(tmp_path, "evaluate", str(answers), *DEMO, "stages=retrieve")
    assert done.status == 2 and "leave it out for evaluate" in done.err
