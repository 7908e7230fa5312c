"""Fixtures and hooks shared by all tests."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain, groupby, islice
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings
from tables import leave_out

# A busy machine must not fail a test, so there is no deadline.
settings.register_profile("memeval", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memeval")

# A runner under nohup, or in the background of a script, ignores these signals, and so would the
# processes that tests start.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# Collection creates about a million objects that stay, so garbage collection would find nothing.
gc.disable()

LONG = (
    *("pipeline", "cli", "tracking", "packages", "page", "api", "claims"),
    *("test_followed_pages.py", "test_readme.py", "test_python_api_docs.py"),
)
"""Folders and modules whose tests start processes."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Thins out large parametrized tests before pytest selects by marks; orders the selection."""
    leave_out(items)
    yield
    put_long_first(items)


def put_long_first(items: list[pytest.Item]) -> None:
    """Puts long tests first, so that short ones keep all workers busy at the end.

    Each worker of xdist starts with an equal part of the list; when that is done, it takes tests
    from the end of another part. Long modules are placed at the starts of the parts in turn, so few
    modules are divided between workers, each of which would set up the module's fixtures.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    short: list[pytest.Item] = []
    for path, of_module in groupby(items, key=lambda item: item.path):
        if set(LONG).isdisjoint(path.parts):
            short.extend(of_module)
        else:
            min(parts, key=len).extend(of_module)

    size = len(items) // workers
    rest = iter(short)
    for part in parts:
        part.extend(islice(rest, max(0, size - len(part))))

    items[:] = [*chain.from_iterable(parts), *rest]


def pytest_collection_finish() -> None:
    """Excludes everything that collection created from garbage collection."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the real data sets. Skips the test without it.

    The folders `outputs` and `reference` next to it have recorded values.
    """
    named = os.environ.get("MEMEVAL_DATA_DIR")
    if not named or not Path(named, "locomo", "locomo10.json").is_file():
        pytest.skip(
            "needs the real data sets: "
            "MEMEVAL_DATA_DIR names no folder that holds locomo/locomo10.json"
        )
    return Path(named)


@pytest.fixture(scope="session", autouse=True)
def user_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A user cache shared by all tests, instead of that of the person who runs them. It has the
    empty MLflow store that new stores are copied from.
    """
    folder = tmp_path_factory.getbasetemp() / "user-cache"
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent.parent / "user-cache"

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow store to copy. Migrations take seconds, so they run once for all workers."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    code = (
        "import sys; from pathlib import Path; "
        "from memeval.tracking.store import locate, prepare_store; "
        "prepare_store(locate(Path(sys.argv[1]), 'sqlite:///empty.db'))"
    )
    with FileLock(root / "empty.lock"):
        if not (root / "empty.db").exists():
            subprocess.run([sys.executable, "-c", code, str(root)], check=True)

    return root / "empty.db"


@pytest.fixture(scope="session")
def give_store(empty_database: Path) -> Callable[[Path], None]:
    """Gives a home an empty MLflow store, so that no migrations are needed."""

    def give(home: Path) -> None:
        (home / "mlruns").mkdir(parents=True, exist_ok=True)
        shutil.copy(empty_database, home / "mlruns" / "mlflow.db")

    return give


def pytest_make_parametrize_id(argname: str) -> str | None:
    """Plain ids under mutmut, which passes test names on its command line: our texts may contain
    `::`.
    """
    return argname if "MUTANT_UNDER_TEST" in os.environ else None
