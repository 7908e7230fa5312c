"""Hydra composes a run once, and the jobs follow the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.hydra_config import HydraConfig

from memeval.cli.main import run_command
from memeval.errors import UserError
from memeval.runs.compose.errors import explaining_config_errors
from memeval.runs.launch import application
from memeval.runs.launch.application import hydra_application
from memeval.runs.launch.launcher import planning


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Any]]:
    """The overrides of each composition."""
    for name in ("MEMEVAL_INVOCATION", "MEMEVAL_SWEEP", "HYDRA_FULL_ERROR"):
        monkeypatch.setenv(name, str(tmp_path / "session"))

    monkeypatch.setattr(sys, "argv", ["memeval"])
    overrides: list[Any] = []
    load = ConfigLoaderImpl.load_configuration

    def count(self: ConfigLoaderImpl, *given: Any, **named: Any) -> Any:
        overrides.append(named.get("overrides"))
        return load(self, *given, **named)

    monkeypatch.setattr(ConfigLoaderImpl, "load_configuration", count)
    yield overrides
    HydraConfig.instance().cfg = None


def jobs_of(*words: str) -> list[tuple[str, int]]:
    """System and seed of each job that runs."""
    jobs: list[tuple[str, int]] = []

    def job(config: Any) -> None:
        jobs.append((config.system.name, config.seed))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(application, "run_job", job)
        hydra_application(words)()

    return jobs


def test_run_is_composed_once(composed: list[Any]) -> None:
    assert jobs_of("system=rag", "seed=3") == [("rag", 3)]
    assert len(composed) == 1


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("system=rag,bm25", "seed=3,4", "-m"), 2),
        (("system=rag,bm25", "seed=3,4", "--multirun"), 2),
        (("+sweep=evidence", "seed=3,4"), 5),
        (("-m", "+sweep=evidence", "seed=3,4"), 5),
    ],
)
def test_sweep_is_composed_once_plus_once_per_option(
    composed: list[Any], words: Sequence[str], options: int
) -> None:
    with planning(lambda plan, start: None):
        assert jobs_of(*words) == []

    assert len(composed) == 1 + options


@pytest.mark.parametrize(
    "words",
    [
        ("system=rag,bm25", "system.timeout_s=null"),
        ("system=bm25,http", "system.base_url=http://127.0.0.1:9", "system.operations=[forget]"),
        ("system=bm25,http", "system.base_url=http://127.0.0.1:9", "system.headers={X-Key: HOME}"),
        ("system=bm25,command", "system.command=python memory.py"),
    ],
)
def test_a_field_of_one_option_may_have_any_value(
    composed: list[Any], words: Sequence[str]
) -> None:
    plans: list[Any] = []
    with planning(lambda plan, start: plans.append(plan)):
        jobs_of(*words, "-m")

    assert len(plans) == 1


def test_a_named_launcher_gets_a_single_run(composed: list[Any]) -> None:
    """Hydra itself ignores it without `-m`: the run stayed on the machine of the command."""
    plans: list[Any] = []
    with planning(lambda plan, start: plans.append(plan)):
        assert jobs_of("hydra/launcher=memeval", "system=rag") == []

    assert len(plans[0].cells) == 1


def test_a_named_launcher_does_not_hide_a_mistake_or_an_option_of_hydra(
    composed: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("system=rag", "dataset.limit_cases=1")
    with (
        pytest.raises(UserError, match="unknown hydra/launcher 'nope'"),
        explaining_config_errors(),
    ):
        jobs_of(*words, "hydra/launcher=nope")

    assert jobs_of(*words, "hydra/launcher=memeval", "--cfg", "job", "--package", "dataset") == []
    assert "limit_cases: 1\n" in capsys.readouterr().out


@pytest.mark.slow
def test_jobs_run_in_the_order_of_the_command_line(composed: list[Any]) -> None:
    words = ("hydra/launcher=basic", "system=rag,bm25", "seed=3", "-m")
    assert jobs_of(*words) == [("rag", 3), ("bm25", 3)]


@pytest.mark.slow
def test_sweep_file_starts_several_runs(composed: list[Any]) -> None:
    words = ("+sweep=baselines", "hydra/launcher=basic", "hydra.sweeper.params=null")
    assert len(jobs_of(*words, "seed=1,2")) == 2


def test_own_sweep_file_needs_no_mode(composed: list[Any], tmp_path: Path) -> None:
    varied = "hydra: {sweeper: {params: {seed: '1,2'}}}"
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "own.yaml").write_text(f"# @package _global_\n{varied}\n")
    plans: list[Any] = []
    with planning(lambda plan, start: plans.append(plan)):
        assert jobs_of("+sweep=own", "--config-dir", str(tmp_path)) == []

    assert [planned.cell.config.seed for planned in plans[0].cells] == [1, 2]


def test_the_second_command_of_a_process_does_not_show_the_first_one_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("MEMEVAL_INVOCATION", "MEMEVAL_SWEEP", "HYDRA_FULL_ERROR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    monkeypatch.setenv("MEMEVAL_PLOTS", "false")
    monkeypatch.setattr(sys, "argv", ["memeval"])
    small = ("dataset.limit_cases=1", "dataset.limit_questions=1", "tracking=none")
    assert run_command(["-m", "system=bm25", "top_k=5,0", "--keep-going", *small]) == 2
    assert "top_k must be" in capsys.readouterr().err
    assert run_command(["system=bm25", "top_k=3", *small]) == 0
    captured = capsys.readouterr()
    assert "top_k must be" not in captured.err and "difference" not in captured.out
