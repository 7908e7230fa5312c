"""The commands as functions: sweeps, plans, comparisons, gates, judges."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pandas as pd
import pytest

import memeval
from memeval.errors import UserError

SMALL = ("dataset.limit_questions=3", "tracking=none")


class Mine(memeval.RecallSystem):
    """A class passed where its import path is expected."""


@pytest.fixture(scope="module")
def swept(home: Path) -> memeval.Sweep:
    return memeval.sweep(*SMALL, system="bm25,no_memory", progress=False)


@pytest.mark.slow
def test_sweep_has_its_runs_and_their_comparisons(swept: memeval.Sweep) -> None:
    assert [run.params["system"] for run in swept.runs] == ["bm25", "no_memory"]
    assert not swept.failures
    lead, figures = repr(swept.comparisons).splitlines()
    assert " is higher than no_memory " in lead
    assert figures.startswith("no_memory is lower than bm25 by ")
    assert {"comparison.md", "comparison.csv", "comparison.html"} <= {
        path.name for path in swept.folder.iterdir()
    }


def test_cells_that_no_setting_distinguishes_are_one_run_of_a_sweep(home: Path) -> None:
    """cogcanvas has its own top_k."""
    swept = memeval.sweep(*SMALL, system="cogcanvas,bm25", top_k=[3, 9], progress=False)
    assert [run.params["top_k"] for run in swept.runs] == [15, 3, 9]
    assert len(swept.table(["accuracy"]).content.names) == len(swept.to_pandas()) == 3


def test_comparisons_become_a_table_of_differences(swept: memeval.Sweep) -> None:
    table = swept.comparisons.to_pandas()
    (whole,) = table[table["scope"] == "all"].to_dict("records")
    assert whole["delta"] == swept.comparisons[0].differences[0].result.mean
    assert whole["adjusted_p"] <= 0.05


@pytest.mark.slow
def test_sweep_reports_progress_unless_turned_off(
    swept: memeval.Sweep, capfd: pytest.CaptureFixture[str]
) -> None:
    memeval.sweep(*SMALL, system="bm25,no_memory")
    assert "2 runs, both already finished" in capfd.readouterr().err
    memeval.sweep(*SMALL, system="bm25,no_memory", progress=False)
    assert capfd.readouterr() == ("", "")


def test_a_sweep_may_be_awaited(swept: memeval.Sweep) -> None:
    async def again() -> memeval.Sweep:
        return await memeval.asweep(*SMALL, system="bm25,no_memory", progress=False)

    assert [run.key for run in asyncio.run(again()).runs] == [run.key for run in swept.runs]


def test_joblib_launcher_is_refused_from_python(home: Path) -> None:
    with pytest.raises(UserError, match="hydra/launcher=joblib can't run a sweep from Python"):
        memeval.sweep(*SMALL, "hydra/launcher=joblib", system="bm25,no_memory", progress=False)

    # A supported launcher gets as far as checking its settings; this one starts no worker.
    words = ("hydra/launcher=ray", "hydra.launcher.workers=0", "fresh=judge")
    with pytest.raises(UserError, match=r"hydra\.launcher\.workers must be at least 1, got 0"):
        memeval.sweep(*SMALL, *words, system="bm25,no_memory", progress=False)


def test_sweep_with_an_unknown_system_runs_nothing(home: Path) -> None:
    before = len(memeval.load_runs())
    with pytest.raises(UserError, match="unknown system 'bm52'"):
        memeval.sweep(*SMALL, system="oracle,bm52", progress=False)

    assert len(memeval.load_runs()) == before


@pytest.mark.slow
def test_sweep_with_keep_going_runs_the_valid_cells(home: Path) -> None:
    swept = memeval.sweep(*SMALL, system="bm25,bm52", progress=False, keep_going=True)
    assert [run.params["system"] for run in swept.runs] == ["bm25"]
    (failure,) = swept.failures
    assert failure.status == 2 and "bm52" in failure.message


def test_plan_counts_cells_and_refuses_invalid_settings(swept: memeval.Sweep) -> None:
    before = dict(os.environ)
    plan = memeval.plan(*SMALL, system="bm25,no_memory,oracle")
    assert dict(os.environ) == before
    assert (plan.cells, plan.finished_cells, plan.estimate.calls) == (3, 2, 0)
    with pytest.raises(UserError, match="unknown system"):
        memeval.plan(system="bm25,bm52")
    assert memeval.plan(*SMALL, system=["bm25", "no_memory"], seed=range(2)).cells == 4
    with pytest.raises(UserError, match=r"seed has no values: range\(0, 0\) is empty"):
        memeval.plan(*SMALL, seed=range(0))
    assert memeval.plan(*SMALL, seed=numpy.arange(3)).cells == 3
    with pytest.raises(UserError, match=r"Mine'> is not a setting") as refused:
        memeval.plan(*SMALL, system=Mine)
    assert "name its path:  {'class': 'my_module:MyClass'}" in refused.value.hints[0]
    with pytest.raises(UserError, match="5} is not a setting") as refused:
        memeval.plan(*SMALL, top_k={5})
    assert refused.value.hints == ("for several values, use a list",)
    with pytest.raises(UserError, match="an override is a string such as 'system=bm25', not 5"):
        memeval.plan(5)  # type: ignore[arg-type]


def test_runs_are_compared_by_several_metrics(swept: memeval.Sweep) -> None:
    for runs in (swept, swept.runs):
        assert memeval.compare(runs).sentences == memeval.compare(*swept.runs).sentences
    bm25, no_memory = swept.runs
    names: Any = pd.Series(["accuracy", "f1"])
    accuracy, f1 = memeval.compare(no_memory, bm25, baseline=bm25, metric=names)
    assert accuracy.baseline == f1.baseline == bm25.key
    assert accuracy.differences == swept.comparisons[0].differences
    with pytest.raises(UserError, match="only one run"):
        memeval.compare(bm25)


def test_gate_fails_a_run_worse_than_its_baseline(swept: memeval.Sweep, tmp_path: Path) -> None:
    bm25, no_memory = swept.runs
    baseline = tmp_path / "baseline.json"
    memeval.bless(bm25, baseline)
    assert memeval.gate(bm25, baseline).status == 0
    worse = memeval.gate(no_memory, baseline)
    assert worse.status == 1
    assert repr(worse).startswith("Worse than the baseline: −")
    # As joblib, Ray and caches of notebooks do.
    assert pickle.loads(pickle.dumps(worse)) == worse
    with pytest.raises(UserError, match="between 0 and 100 points"):
        memeval.gate(bm25, baseline, margin=-1)


def test_answers_of_another_program_are_judged(swept: memeval.Sweep, tmp_path: Path) -> None:
    records = swept.runs[0].records()
    answers = tmp_path / "answers.jsonl"
    rows = zip(records["question_id"], records["hypothesis"], strict=True)
    lines = [json.dumps({"question_id": name, "hypothesis": text}) for name, text in rows]
    answers.write_text("\n".join(lines), encoding="utf-8")
    run = memeval.evaluate(answers, *SMALL, progress=False, only_listed=True)
    assert run.metrics["accuracy"] == swept.runs[0].metrics["accuracy"]
    shown = f"python -m memeval evaluate {answers} dataset.limit_questions=3 --only-listed"
    assert run.summary.command == shown


def test_rankings_of_another_program_are_evaluated(tmp_path: Path) -> None:
    found = tmp_path / "found.jsonl"
    found.write_text('{"question_id": "demo-1/q0", "ranked": []}\n', encoding="utf-8")
    words = ["dataset.limit_questions=3", "stages=retrieve"]
    run = memeval.evaluate(found, *words, "tracking=none", ranked=True, progress=False)
    assert run.metrics["context_tokens"] == 0
    assert run.summary.command == f"python -m memeval evaluate {found} {' '.join(words)} --ranked"
    with pytest.raises(UserError, match="--ranked takes neither --only-listed"):
        memeval.evaluate(found, ranked=True, only_listed=True)


def test_judge_probe_accepts_right_answers_more_often_than_vague_ones(home: Path) -> None:
    result = memeval.judge_probe(judge="keyword", progress=False)
    accepted = {kind.kind: kind.accepted for kind in result.kinds}
    assert accepted["right"] > accepted["vague"]


def test_labels_equal_to_verdicts_keep_the_accuracy(swept: memeval.Sweep, tmp_path: Path) -> None:
    run = swept.runs[0]
    records = run.records()
    rows = [
        {"run": run.key, "question_id": name, "repeat": 0, "label": label == "correct"}
        for name, label in zip(records["question_id"], records["verdict.label"], strict=True)
    ]
    labels = tmp_path / "labels.jsonl"
    labels.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    calibration = memeval.calibrate(run, labels)
    assert calibration.accuracy == pytest.approx(calibration.raw)


def test_a_forked_process_publishes_its_own_runs(swept: memeval.Sweep) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns: threads
        pid = os.fork()

    if pid == 0:
        # The child inherited the publisher but not its thread, and waited for it forever.
        signal.alarm(120)
        with contextlib.suppress(BaseException):
            memeval.run(*SMALL, system="bm25", top_k=9, progress=False)
            os._exit(0)
        os._exit(1)

    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: memeval.run(progres=False), "run: unknown argument 'progres'. Did you mean: prog"),
        (lambda: memeval.sweep(keepgoing=True), "sweep: .* Did you mean: keep_going"),
        (lambda: memeval.plan(exakt=True), "plan: .* Did you mean: exact"),
        (lambda: memeval.evaluate("a.jsonl", ansers="b"), "evaluate: .* Did you mean: answers"),
        (lambda: memeval.run(setting={"top_k": 5}), "unknown field or group 'setting"),
        (lambda: memeval.run(override="top_k=5"), "unknown field or group 'override'"),
        (lambda: memeval.run(sytem="bm25"), "unknown field or group 'sytem'. Did you mean: system"),
    ],
)
def test_misspelt_argument_names_the_nearest_one(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call()
