"""What is imported when: nobody waits seconds for `--help`, or needs every provider's SDK to read a
page of it.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

HEAVY = ("mlflow", "chromadb", "openai", "mem0", "pandas", "hydra", "numpy", "rich")
LOADED = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"


def loaded_by(code: str) -> str:
    """The heavy packages that a fresh interpreter has loaded once it ran `code`: the last line that
    it prints.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code}\n{LOADED}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "code",
    [
        "import memeval",
        "import memeval.cli.run, memeval.runs.cell, memeval.cli.comparison",
        "from memeval.cli.main import run_command; assert run_command(['--help']) == 0",
        "from memeval.cli.main import run_command; assert run_command(['--version']) == 0",
        "from memeval.cli.main import run_command; assert run_command(['data', 'list']) == 0",
        "from memeval.cli.main import run_command; assert run_command(['runn']) == 2",
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    assert loaded_by(code) == "[]"


def test_the_measure_sees_an_import() -> None:
    assert loaded_by("import rich") == "['rich']"


@pytest.mark.parametrize("arguments", [["-c", "import memeval"], ["-m", "memeval", "--help"]])
def test_it_takes_less_than_a_second(arguments: list[str]) -> None:
    """The best of three: other work on the machine is no fault of ours."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, timeout=60, check=True)
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 1.0
