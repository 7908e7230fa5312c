"""A new SQLite store without delay: a copy of one whose migrations have run."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

import memeval.tracking  # noqa: F401 - settles MLflow's environment before its import
from memeval.tracking.store import TrackingStore, locate, prepare_store


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignores a warning in these tests: MLflow's mappers use a loader that SQLAlchemy 2.1
    deprecates, which warns once, when the store is first imported.
    """
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy"))


@pytest.fixture
def store(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> TrackingStore:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "mlruns").mkdir()
    shutil.copy(empty_database, tmp_path / "mlruns" / "mlflow.db")
    return prepare_store(locate(tmp_path))
