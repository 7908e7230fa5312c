"""A run that is killed while a model writes a memory, and again while it reads one, pays no
finished call twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from conftest_pipeline import SMALL, Command, environment, records
from doubles.endpoint import ScriptedEndpoint

pytestmark = pytest.mark.slow

CELL = (
    *SMALL,
    "dataset.limit_cases=1",
    "reader=tools",
    "writer=tools",
    "llm=openai",
    "llm.model=gpt-4o-mini",
    "judge=keyword",
    # One call is under way at a time, so only that call may be repeated.
    "llm.max_concurrency=1",
)


def wrote(endpoint: ScriptedEndpoint) -> int:
    """Number of requests so far that concern a session."""
    return sum("<session-" in repr(body) for _, body in endpoint.requests)


def is_writing(endpoint: ScriptedEndpoint) -> bool:
    return wrote(endpoint) >= 4


def is_reading(endpoint: ScriptedEndpoint) -> bool:
    return endpoint.count() - wrote(endpoint) >= 4


def test_run_killed_in_tool_loops_repeats_only_calls_under_way(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint(latency_s=0.05) as endpoint:
        words = (*CELL, f"llm.base_url={endpoint.base_url}")
        for is_time in (is_writing, is_reading):
            process = subprocess.Popen(
                [sys.executable, "-m", "memeval", *words],
                env=environment(tmp_path),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
            while not is_time(endpoint) and process.poll() is None:
                time.sleep(0.005)

            assert process.poll() is None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

        endpoint.latency_s = 0.0
        memeval(*words)
        asked = Counter(repr(body) for _, body in endpoint.requests)
        assert sum(count - 1 for count in asked.values()) <= 2

    rows = records(tmp_path)
    assert {row["status"] for row in rows} == {"ok"}
    assert {len(row["steps"]) for row in rows} == {2}
