"""Runs the real command line against a real endpoint on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from doubles.endpoint import ScriptedEndpoint
from forking import NO_PLOTS, Done, run_command_line

SMALL = ("dataset=demo", "dataset.limit_cases=3", "dataset.limit_questions=8", "tracking=none")
QUESTIONS = 24
"""Three conversations of the demo set, eight questions each."""
HURRIED = {
    "memeval.llm.outage.FIRST_WAIT_S": 0.05,
    "memeval.llm.outage.FIRST_UNSOUND_WAIT_S": 0.075,
    "memeval.llm.outage.QUIET_S": 0.2,
}
"""Waits between tries, shortened to a tenth. The waits themselves are tested in tests/llm."""

Command = Callable[..., Done]


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMEVAL_", "OPENAI_", "MLFLOW_"))
    }
    return {**kept, **NO_PLOTS, "MEMEVAL_HOME": str(home), "OPENAI_API_KEY": "test", **more}


def start(
    home: Path, *words: str, stderr: int = subprocess.STDOUT, **more: str
) -> subprocess.Popen[str]:
    """A running `python -m memeval ...`, in its own process group."""
    return subprocess.Popen(
        [sys.executable, "-m", "memeval", *words],
        env=environment(home, **more),
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        process_group=0,
    )


@pytest.fixture
def memeval(tmp_path: Path) -> Command:
    """Runs `python -m memeval ...` with results below `tmp_path`."""

    def run(
        *arguments: str,
        check: bool = True,
        home: Path = tmp_path,
        constants: Mapping[str, float] | None = None,
        **more: str,
    ) -> Done:
        done = run_command_line(arguments, env=environment(home, **more), constants=constants)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    return run


def records(home: Path) -> list[dict[str, Any]]:
    """The records of the newest run below `home`."""
    newest = max(
        (home / "outputs" / "runs").glob("*/records.jsonl"),
        key=lambda path: path.stat().st_mtime_ns,
    )
    return [json.loads(line) for line in newest.read_text(encoding="utf-8").splitlines()]


def without_times(rows: list[dict[str, Any]]) -> list[str]:
    """Records in the form in which their bytes are compared, without times."""
    return [
        json.dumps({name: value for name, value in row.items() if name != "times"}) for row in rows
    ]


def summary(home: Path) -> Mapping[str, Any]:
    newest = max(
        (home / "outputs" / "runs").glob("*/run.json"), key=lambda path: path.stat().st_mtime_ns
    )
    loaded: Mapping[str, Any] = json.loads(newest.read_text(encoding="utf-8"))
    return loaded


def outcomes(home: Path) -> dict[str, list[str]]:
    """The records of each run, without times and without who paid."""
    found = {}
    for path in (home / "outputs" / "runs").glob("*/records.jsonl"):
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        found[path.parent.name] = [
            json.dumps(
                {name: row[name] for name in row if name not in ("times", "usage", "origin")}
            )
            for row in rows
        ]

    return found


def repeated(endpoint: ScriptedEndpoint) -> int:
    asked = Counter(repr(body) for _, body in endpoint.requests)
    return sum(count - 1 for count in asked.values())
