"""One home with two runs of two repeats, and a package of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import memeval
from memeval.packages.write import Packed, pack


@contextmanager
def environment_of(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMEVAL_HOME", str(folder))
        patch.setenv("MEMEVAL_PLOTS", "false")
        patch.delenv("MEMEVAL_DATA_DIR", raising=False)
        yield


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _environment(home: Path) -> Iterator[None]:
    """Sets the environment of the tests of this folder only; session fixtures outlive them and set
    their own.
    """
    with environment_of(home):
        yield


@pytest.fixture(scope="session")
def runs(home: Path) -> list[memeval.FinishedRun]:
    with environment_of(home):
        return [
            memeval.run(
                "dataset=demo",
                f"system={system}",
                "dataset.limit_questions=3",
                "num_runs=2",
                "tracking=none",
                progress=False,
            )
            for system in ("bm25", "no_memory")
        ]


@pytest.fixture(scope="session")
def packed(runs: list[memeval.FinishedRun], home: Path) -> Packed:
    with environment_of(home):
        return pack(runs, home / "own.memeval", who="the tests")
