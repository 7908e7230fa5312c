"""Experiment, tags, note and sweeps, from the command line to the tracking store."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_line import SMALL, memeval

LOGGED = tuple(word for word in SMALL if word != "tracking=none")


@pytest.mark.sampled(kept=4)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["+tags.memeval.run_key=x"],
            "tags.memeval.run_key: names that begin with memeval, mlflow or",
        ),
        (["+tags.mlflow.user=x"], "tags.mlflow.user: names that begin with memeval, mlflow or"),
        (["+tags.MLflow=x"], "tags.MLflow: names that begin with memeval, mlflow or"),
        (["+tags.rounded.cost=x"], "tags.rounded.cost: names that begin with memeval, mlflow or"),
        (["+tags.paper=[1,2]"], "tags.paper must be a string, a number or a boolean"),
        (["+tags.paper=null"], "tags.paper must be a string, a number or a boolean"),
        ([f"+tags.paper={'x' * 4001}"], "tags.paper has 4001 characters; at most 4000 are allowed"),
        (["note='a\tb'"], "note contains a control character"),
        ([f"note={'x' * 4001}"], "note has 4001 characters; at most 4000 are allowed"),
        (["tracking.experiment=' x'"], "tracking.experiment must not be empty"),
        (["tracking.experiment='a\tb'"], "tracking.experiment contains a control character"),
        ([f"tracking.experiment={'x' * 201}"], "tracking.experiment has 201 characters"),
        (["tracking.group=swep"], "unknown tracking.group 'swep'"),
    ],
)
def test_invalid_tags_and_notes_are_refused_before_the_run(
    tmp_path: Path, words: list[str], message: str
) -> None:
    ended = memeval(tmp_path, *LOGGED, *words)
    assert ended.status == 2 and message.lower() in ended.message.lower(), ended.err
    assert not (tmp_path / "outputs" / "answers").exists()


def test_the_environments_experiment_is_checked_before_the_run(tmp_path: Path) -> None:
    ended = memeval(tmp_path, *LOGGED, MLFLOW_EXPERIMENT_NAME="x" * 201)
    assert ended.status == 2 and "MLFLOW_EXPERIMENT_NAME has 201 characters" in ended.message
    assert not (tmp_path / "outputs" / "answers").exists()


def cells(home: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Experiment and tags of each run in the home's store."""
    with closing(sqlite3.connect(home / "mlruns" / "mlflow.db")) as store:
        rows = store.execute(
            "SELECT runs.run_uuid, experiments.name FROM runs JOIN experiments "
            "USING (experiment_id) WHERE runs.lifecycle_stage = 'active'"
        ).fetchall()
        for run_id, experiment in rows:
            query = "SELECT key, value FROM tags WHERE run_uuid = ?"
            tags = dict(store.execute(query, [run_id]))
            if "memeval.run_key" in tags:
                yield experiment, tags


@pytest.mark.slow
def test_sweep_is_logged_and_logged_again_with_new_tags(
    tmp_path: Path, give_store: Callable[[Path], None]
) -> None:
    give_store(tmp_path)
    sweep = ["-m", "system=no_memory,oracle", *LOGGED]

    ended = memeval(tmp_path, *sweep, "+tags.paper=table1", MLFLOW_EXPERIMENT_NAME="draft")
    assert ended.status == 0, ended.err
    first = list(cells(tmp_path))
    assert [experiment for experiment, _ in first] == ["draft", "draft"]
    (sweep_id,) = {tags["memeval.sweep_id"] for _, tags in first}
    assert sweep_id.startswith("sweep-")

    again = [*sweep, "+tags.paper=table2", "note=mine", "tracking.group=sweep"]
    for _ in range(2):
        ended = memeval(tmp_path, *again)
        assert ended.status == 0 and "not published" not in ended.err, ended.err
        (page,) = [line for line in ended.out.splitlines() if line.startswith("page: ")]
        assert Path(page.removeprefix("page: ")).read_bytes().startswith(b"<!doctype html>")

    # The comparison is an artifact of the sweep's parent run.
    assert len(list(tmp_path.glob("mlruns/artifacts/draft/*/artifacts/comparison.html"))) == 1
    second = list(cells(tmp_path))
    assert sorted(tags["mlflow.runName"] for _, tags in second) == ["no_memory", "oracle"]
    for experiment, tags in second:
        assert (experiment, tags["paper"], tags["memeval.note"]) == ("draft", "table2", "mine")
        assert tags["memeval.sweep_id"] == tags["memeval.group"] == sweep_id
        assert "mlflow.parentRunId" in tags and "tags" not in tags["memeval.command"]

    # Published settings of a run contain none of this.
    for config in tmp_path.glob("outputs/runs/*/config.yaml"):
        assert "table" not in config.read_text(encoding="utf-8")


optuna_installed = pytest.mark.skipif(
    find_spec("hydra_plugins.hydra_optuna_sweeper") is None if find_spec("hydra_plugins") else True,
    reason="the extra optuna is not installed",
)


def searched(
    home: Path, *words: str, direction: str = "maximize"
) -> subprocess.CompletedProcess[str]:
    """What a search of the best `top_k` for the metric `token_f1` prints."""
    search = ["hydra/sweeper=optuna", f"hydra.sweeper.direction={direction}", "objective=token_f1"]
    # Warnings are not errors here: Optuna itself imports what SQLAlchemy deprecates.
    command = [sys.executable, "-m", "memeval", "-m", *SMALL, *search, *words]
    environment = {**os.environ, "MEMEVAL_HOME": str(home), "MEMEVAL_PLOTS": "false"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@optuna_installed
@pytest.mark.slow
@pytest.mark.parametrize("values", ["choice(1,3,9)", "int(interval(1,9))"])
def test_optuna_maximizes_the_objective(tmp_path: Path, values: str) -> None:
    ended = searched(
        tmp_path, "hydra.sweeper.n_trials=3", "hydra.sweeper.n_jobs=1", f"top_k={values}"
    )
    assert ended.returncode == 0, ended.stderr
    (results,) = tmp_path.glob("outputs/sweeps/*/optimization_results.yaml")
    text = results.read_text(encoding="utf-8")
    best = max(
        json.loads(run.read_text(encoding="utf-8"))["metrics"]["token_f1"]
        for run in tmp_path.glob("outputs/runs/*/run.json")
    )
    assert f"best_value: {best}" in text


@optuna_installed
@pytest.mark.slow
def test_optuna_whose_runs_all_fail_says_why_they_did(tmp_path: Path) -> None:
    refused = ["llm=openai", "llm.model=x", "llm.base_url=http://127.0.0.1:9/v1"]
    ended = searched(tmp_path, "hydra.sweeper.n_trials=1", "top_k=choice(1,3)", *refused)
    assert ended.returncode == 2 and "Traceback" not in ended.stderr
    assert "connection refused by 127.0.0.1" in ended.stderr


@optuna_installed
@pytest.mark.slow
def test_optuna_does_not_search_for_the_worst_value(tmp_path: Path) -> None:
    """Its own default is to minimize."""
    words = ("hydra.sweeper.n_trials=2", "hydra.sweeper.n_jobs=1", "top_k=choice(1,3)")
    ended = searched(tmp_path, *words, direction="minimize")
    assert ended.returncode == 2
    assert "the search minimizes token_f1, but more is better" in ended.stderr
    assert "use:  hydra.sweeper.direction=maximize" in ended.stderr


@optuna_installed
@pytest.mark.slow
def test_optuna_without_a_value_of_the_objective_says_so(tmp_path: Path) -> None:
    ended = searched(tmp_path, "hydra.sweeper.n_trials=1", "top_k=choice(1,3)", "stages=retrieve")
    assert ended.returncode == 2 and "Traceback" not in ended.stderr
    assert "no run of the search has a value of its objective" in ended.stderr
