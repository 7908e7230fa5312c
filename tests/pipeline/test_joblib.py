"""`hydra/launcher=joblib`: the worker processes divide the limit of an endpoint, and pay nothing
twice.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from pathlib import Path

import pytest
from conftest_pipeline import SMALL, Command
from doubles.endpoint import ScriptedEndpoint
from omegaconf import OmegaConf

from memeval.runs.job import processes_of
from memeval.runs.launch.launcher import PrepareLauncher

JOBLIB = ("-m", "hydra/launcher=joblib", "llm=openai", "llm.model=m", "judge=llm")
needs_joblib = pytest.mark.skipif(
    importlib.util.find_spec("hydra_plugins.hydra_joblib_launcher") is None,
    reason="needs hydra-joblib-launcher",
)


@pytest.mark.slow
@needs_joblib
def test_processes_share_the_limit_and_pay_nothing_twice(memeval: Command) -> None:
    with ScriptedEndpoint(latency_s=0.05) as endpoint:
        memeval(
            *JOBLIB,
            *SMALL,
            "system=no_memory,bm25",
            "hydra.launcher.n_jobs=2",
            "llm.max_concurrency=5",
            f"llm.base_url={endpoint.base_url}",
        )
        asked = Counter(repr(body) for _, body in endpoint.requests)
        assert set(asked.values()) == {1}
        assert 2 < endpoint.peak <= 4, "two of the five slots each, and both had work"


@pytest.mark.slow
@needs_joblib
def test_fewer_slots_than_processes_are_refused_in_one_line(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        done = memeval(
            *JOBLIB,
            *SMALL,
            "top_k=3,5",
            "hydra.launcher.n_jobs=2",
            "llm.max_concurrency=1",
            f"llm.base_url={endpoint.base_url}",
            check=False,
        )
        assert done.returncode == 2 and not endpoint.count()
        assert f"2 processes can't share max_concurrency=1 at {endpoint.base_url}" in done.stderr
        assert "hydra.launcher.n_jobs=1" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
@needs_joblib
def test_killed_process_is_reported_in_one_line(memeval: Command) -> None:
    words = ("system=no_memory", "system.class=killed_worker:KilledAlways", "top_k=1,2")
    path = str(Path(__file__).parent)
    done = memeval(*JOBLIB[:2], *SMALL, *words, PYTHONPATH=path, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "memeval: the launcher failed: " in done.stderr


@needs_joblib
def test_processes_end_with_the_sweep() -> None:
    from joblib.externals.loky import get_reusable_executor

    worker = get_reusable_executor(max_workers=1).submit(os.getpid).result()
    PrepareLauncher().on_multirun_end(OmegaConf.create())
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


@pytest.mark.parametrize(
    ("settings", "count"), [({}, 1), ({"n_jobs": 3}, 3), ({"n_jobs": None}, 1)]
)
def test_number_of_processes_is_that_of_the_launcher(
    settings: dict[str, int | None], count: int
) -> None:
    assert processes_of(settings) == count


def test_negative_n_jobs_counts_from_the_processors_as_in_joblib(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert [processes_of({"n_jobs": jobs}) for jobs in (-1, -2, -20)] == [8, 7, 1]
