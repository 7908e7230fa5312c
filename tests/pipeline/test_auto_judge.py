"""`judge=auto` is the protocol's own judge if there is a model, else its offline stand-in."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doubles.endpoint import ScriptedEndpoint
from doubles.replies import scripted_reply
from lone_runs import run_cell
from rich.console import Console

from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.opening import open_cell
from memeval.report.comparison import comparison_markdown, comparison_table
from memeval.results import RunSummary
from memeval.results.judge import JudgeIdentity
from memeval.runs.compose.config import compose_config
from memeval.systems.controls.constant import Constant

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(reply) as served:
        yield served


def reply(body: Mapping[str, Any]) -> str:
    """Replies yes to a judge that has ten tokens for its reply, else as scripted."""
    return "Yes." if body["max_tokens"] == 10 else scripted_reply(body)


def model(endpoint: ScriptedEndpoint) -> list[str]:
    return ["llm=openai", "llm.model=scripted", f"llm.base_url={endpoint.base_url}"]


def opened(*words: str) -> Cell:
    return open_cell(compose_config(["tracking=none", *words]), "")


def run(*words: str) -> RunSummary:
    cell = opened(*words)
    return run_cell(cell)


def printed(summaries: list[RunSummary]) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(comparison_table(summaries, console.width))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize(
    ("dataset", "offline", "with_model"),
    [
        ("demo", "keyword", "llm"),
        ("demo_longmemeval", "keyword", "longmemeval"),
        ("demo_memory_agent_bench", "memory_agent_bench", "memory_agent_bench"),
        ("demo_locomo_mc10", "accuracy", "accuracy"),
        ("demo_opseval", "token_f1", "opseval"),
        ("demo_incidents", "keyword", "llm"),
        ("demo_netops", "keyword", "llm"),
    ],
)
def test_auto_judge_is_the_protocols_judge_offline_and_with_a_model(
    dataset: str, offline: str, with_model: str, endpoint: ScriptedEndpoint
) -> None:
    assert opened(f"dataset={dataset}").config.judge.name == offline
    assert opened(f"dataset={dataset}", *model(endpoint)).config.judge.name == with_model


def test_progress_shows_the_accuracy_and_not_the_mean_score(home: Path) -> None:
    """With several right choices, the score of a wrong answer is its overlap."""
    reported: list[float] = []

    class Reported(Progress):
        def scored(self, score: float) -> None:
            reported.append(score)

    cell = opened("dataset=demo_opseval", "system=constant", "judge=token_f1")
    summary = run_cell(cell, Reported())

    (records,) = home.glob("outputs/runs/*/records.jsonl")
    rows = map(json.loads, records.read_text(encoding="utf-8").splitlines())
    scores = [row["verdict"]["score"] for row in rows if row["verdict"]["score"] is not None]
    assert sum(reported) / len(reported) == pytest.approx(summary.metrics["accuracy"])
    assert sum(scores) > sum(reported)


def test_progress_counts_no_verdict_on_the_earlier_answer_of_a_failed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[float] = []

    class Reported(Progress):
        def scored(self, score: float) -> None:
            reported.append(score)

    words = ("dataset=demo", "dataset.limit_questions=3", "system=constant")
    run(*words)

    def fail(*_: object) -> None:
        raise ValueError("no answer")

    monkeypatch.setattr(Constant, "answer", fail)
    failed = run_cell(opened(*words, "fresh=answer"), Reported())
    assert failed.statuses.keys() == {"answer_failed"}
    assert reported == []


def test_longmemeval_is_judged_by_its_own_protocol(endpoint: ScriptedEndpoint, home: Path) -> None:
    summary = run("dataset=demo_longmemeval", *model(endpoint))

    (records,) = home.glob("outputs/runs/*/records.jsonl")
    verdicts = [json.loads(line)["verdict"] for line in records.read_text("utf-8").splitlines()]
    assert {verdict["judge"] for verdict in verdicts} == {"longmemeval"}
    assert summary.params["judge"] == "longmemeval"
    assert summary.metrics["coverage"] == 1.0
    assert printed([summary]).startswith("judge: longmemeval (scripted, at 127.0.0.1:")


def test_chosen_judge_is_kept(endpoint: ScriptedEndpoint) -> None:
    cell = opened("dataset=demo", "judge=mem0", *model(endpoint))

    assert cell.config.judge.name == "mem0"


def test_table_of_different_judges_has_a_warning() -> None:
    offline = run("dataset=demo", "dataset.limit_cases=1", "dataset.limit_questions=2")
    other = replace(offline, judge=JudgeIdentity("token_f1"))

    assert printed([offline]).startswith("judge: keyword; biased cut: first 2 of each")
    assert comparison_markdown([offline]).startswith("judge: keyword\n\n| run |")
    for table in (printed([offline, other]), comparison_markdown([offline, other])):
        warning = "judges: keyword, token_f1; accuracies by different judges can't be compared"
        assert " ".join(table.replace("\\", "").split()).startswith(warning)
