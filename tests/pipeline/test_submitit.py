"""Whole runs in processes of submitit, as on a SLURM cluster; here with its local executor."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest
from conftest_pipeline import SMALL, Command
from doubles.endpoint import ScriptedEndpoint

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("hydra_plugins") is None
        or importlib.util.find_spec("hydra_plugins.hydra_submitit_launcher") is None,
        reason="needs submitit: pip install 'memeval-bench[submitit]'",
    ),
]
CELLS = (
    "-m",
    "dataset=demo",
    "dataset.limit_cases=3",
    "dataset.limit_questions=3",
    "system=bm25",
    "top_k=3,5",
    "llm=openai",
    "llm.model=gpt-4o-mini",
    "judge=llm",
    "llm.max_concurrency=2",
    "tracking=none",
)


def answers(home: Path) -> dict[str, list[str]]:
    """The answers of each run."""
    found = {}
    for path in (home / "outputs" / "runs").glob("*/records.jsonl"):
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        found[path.parent.name] = [f"{row['question_id']} {row['hypothesis']}" for row in rows]

    return found


def test_submitit_processes_give_the_same_answers(memeval: Command, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    local = ("hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5")
    with ScriptedEndpoint() as endpoint:
        address = f"llm.base_url={endpoint.base_url}"
        memeval(*CELLS, address, home=one)
        calls = endpoint.count()
        done = memeval(*CELLS, address, *local, home=other)
        assert endpoint.count() == 2 * calls and endpoint.peak <= 2

    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("each run is a submitit job; the jobs' output is in ")
    assert answers(one) == answers(other) and len(answers(one)) == 2


def test_killed_job_is_reported_in_one_line(memeval: Command) -> None:
    words = ("-m", "system=no_memory", "system.class=killed_worker:KilledAlways")
    local = ("hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5")
    path = str(Path(__file__).parent)
    done = memeval(*words, *SMALL, *local, PYTHONPATH=path, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "memeval: the launcher failed: Job " in done.stderr


def test_slurm_that_is_missing_is_reported_in_one_line(memeval: Command, tmp_path: Path) -> None:
    words = ("-m", "system=no_memory", *SMALL, "hydra/launcher=submitit_slurm")
    done = memeval(*words, PATH=str(tmp_path), check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert 'memeval: Could not detect "srun"' in done.stderr


def test_jobs_that_slurm_refuses_are_reported_in_one_line(memeval: Command, tmp_path: Path) -> None:
    for name in ("srun", "sbatch"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
        program.chmod(0o755)

    words = ("-m", "system=no_memory", *SMALL, "hydra/launcher=submitit_slurm")
    done = memeval(*words, PATH=f"{tmp_path}:{os.environ['PATH']}", check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "memeval: the launcher failed: sbatch: error: invalid partition" in done.stderr
