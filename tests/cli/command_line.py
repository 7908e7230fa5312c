"""Runs the real command line, in its own process and with its own home."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forking import run_command_line

ROOT = Path(__file__).parents[2]
OF_THE_USER = (
    "MEMEVAL_HOME",
    "MEMEVAL_DATA_DIR",
    "MEMEVAL_INVOCATION",
    "MLFLOW_TRACKING_URI",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
)
"""Variables that would make a test depend on who runs it."""
SMALL = ("tracking=none", "dataset.limit_cases=1", "dataset.limit_questions=3")
"""The smallest useful run."""


@dataclass(frozen=True)
class Ended:
    """Exit status and output of a command."""

    status: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The first line of stderr, which has the error message."""
        return self.err.partition("\n")[0]


def memeval(home: Path, *arguments: str, **environment: str) -> Ended:
    """Runs `python -m memeval` with warnings as errors, away from the checkout."""
    inherited = {name: value for name, value in os.environ.items() if name not in OF_THE_USER}
    place = home if home.is_dir() else home.parent
    done = run_command_line(
        arguments,
        env=inherited | {"MEMEVAL_HOME": str(home), **environment},
        cwd=place if place.is_dir() else None,
        timeout=600,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def completed(home: Path, *arguments: str, **environment: str) -> Ended:
    """As `memeval`, but asserts that the command succeeds."""
    done = memeval(home, *arguments, **environment)
    assert done.status == 0, done.out + done.err
    return done


def runs(home: Path) -> list[dict[str, Any]]:
    """`run.json` of every run in a home."""
    return [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(home.glob("outputs/runs/*/run.json"))
    ]


def records(folder: Path) -> list[dict[str, Any]]:
    """The records of a run folder, or of the only run in a home."""
    (path,) = [*folder.glob("records.jsonl"), *folder.glob("outputs/runs/*/records.jsonl")]
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answers(path: Path, rows: Iterable[tuple[str, str | None]]) -> Path:
    """Writes a file of answers as another program would."""
    lines = (
        json.dumps({"question_id": question_id, "hypothesis": hypothesis})
        for question_id, hypothesis in rows
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def kept(home: Path) -> dict[str, bytes]:
    """Content of every file in a home, except the records of invocations below `sweeps`."""
    files = (path for path in home.rglob("*") if path.is_file() and "sweeps" not in path.parts)
    return {str(path.relative_to(home)): path.read_bytes() for path in files}
