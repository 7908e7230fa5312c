"""A killed run with an embedder behind an endpoint: the records and the tokens of embeddings equal
those of an uninterrupted run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import Command, environment, records, summary, without_times
from doubles.endpoint import ScriptedEndpoint
from forking import run_command_line
from ports import free_port
from test_kill import wait_until

pytestmark = pytest.mark.slow

CONCURRENCY = 3
CELL = (
    "dataset=demo",
    "dataset.limit_cases=3",
    "dataset.limit_questions=5",
    "tracking=none",
    "system=rag",
    "system.chunk_size=60",
    "system.overlap=20",
    "embedder=openai",
    "embedder.model=text-embedding-3-small",
    "llm=openai",
    "llm.model=gpt-4o-mini",
    "judge=llm",
    f"llm.max_concurrency={CONCURRENCY}",
)


def arguments(endpoint: ScriptedEndpoint, *more: str) -> tuple[str, ...]:
    return (
        *CELL,
        f"llm.base_url={endpoint.base_url}",
        f"embedder.base_url={endpoint.base_url}",
        *more,
    )


def spent(home: Path) -> dict[str, Any]:
    """The tokens, calls and costs that a run reports."""
    metrics = summary(home)["metrics"]
    return {
        name: value
        for name, value in metrics.items()
        if name.startswith(("tokens/", "calls/", "cost_usd"))
    }


def paid_twice(endpoint: ScriptedEndpoint) -> int:
    """How many requests and texts arrived repeatedly."""
    asked: Counter[str] = Counter()
    for _, body in endpoint.requests:
        asked.update(body["input"] if "input" in body else [json.dumps(body)])
    return sum(count - 1 for count in asked.values())


@pytest.fixture(scope="module")
def port() -> int:
    """The same port, and so the same URL, for all runs: the URL is part of a run's identity."""
    return free_port()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, port: int) -> Path:
    home = tmp_path_factory.mktemp("whole")
    with ScriptedEndpoint(port=port) as endpoint:
        done = run_command_line(arguments(endpoint), env=environment(home))
        assert done.returncode == 0, done.stderr
        assert paid_twice(endpoint) == 0
    return home


@pytest.mark.parametrize("after", [1, 3, 6, 12, 24])
def test_killed_run_has_the_records_and_costs_of_an_uninterrupted_one(
    memeval: Command, tmp_path: Path, port: int, uninterrupted: Path, after: int
) -> None:
    with ScriptedEndpoint(port=port, latency_s=0.02) as endpoint:
        process = subprocess.Popen(
            [sys.executable, "-m", "memeval", *arguments(endpoint)],
            env=environment(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        wait_until(endpoint, after, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        memeval(*arguments(endpoint))
    assert without_times(records(tmp_path)) == without_times(records(uninterrupted))
    assert spent(tmp_path) == spent(uninterrupted)
