"""Runs that are already logged are recognised without MLflow, and only if nothing is left to
log.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sample_runs import summary, write_folder

from memeval.config.filing import Filing
from memeval.report.markdown import write_report
from memeval.report.stamp import has_report, stamp_report
from memeval.results import Note, NoteKind, RunSummary
from memeval.tracking.known import logged_urls
from memeval.tracking.log import log_run
from memeval.tracking.store import TrackingStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = write_folder(tmp_path / "outputs" / "runs", summary("rag"))
    write_report(made, plots=False)
    return made


def execute(store: TrackingStore, statement: str) -> None:
    assert store.database is not None
    with closing(sqlite3.connect(store.database)) as connection, connection:
        connection.execute(statement)


def test_logged_run_is_recognised_with_its_url(store: TrackingStore, folder: Path) -> None:
    assert logged_urls({folder: Filing()}, store) == {}
    tracked = log_run(folder, store)
    assert logged_urls({folder: Filing()}, store) == {folder: tracked.url}
    assert not log_run(folder, store).created


CHANGES: dict[str, Callable[[TrackingStore, Path], object]] = {
    "a metric was edited": lambda store, folder: execute(
        store, "UPDATE latest_metrics SET value = value + 1 WHERE key = 'accuracy'"
    ),
    "it was deleted on the page": lambda store, folder: execute(
        store, "UPDATE runs SET lifecycle_stage = 'deleted'"
    ),
    "its experiment was deleted": lambda store, folder: execute(
        store, "UPDATE experiments SET lifecycle_stage = 'deleted'"
    ),
    "it was left half-logged": lambda store, folder: execute(
        store, "DELETE FROM tags WHERE key = 'memeval.complete'"
    ),
    "its results are others": lambda store, folder: replace(
        RunSummary.read(folder), notes=(Note(NoteKind.REMARK, "another"),)
    ).write(folder),
    "another sweep asks for it": lambda store, folder: replace(
        RunSummary.read(folder), sweep="another"
    ).write(folder),
    "the folder does not know": lambda store, folder: (folder / "tracked.json").unlink(),
    "the home was copied": lambda store, folder: (folder.parent.parent / ".home-id").write_text(
        "{}"
    ),
    "the store is damaged": lambda store, folder: execute(store, "DROP TABLE latest_metrics"),
}


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize("change", CHANGES)
def test_run_with_anything_left_to_log_is_not_recognised(
    store: TrackingStore, folder: Path, change: str
) -> None:
    log_run(folder, store)
    CHANGES[change](store, folder)
    assert logged_urls({folder: Filing()}, store) == {}


def test_another_store_does_not_recognise_a_run(
    store: TrackingStore, folder: Path, tmp_path: Path
) -> None:
    log_run(folder, store)
    assert store.database is not None
    copy = tmp_path / "copy.db"
    shutil.copy(store.database, copy)
    assert logged_urls({folder: Filing()}, TrackingStore(f"sqlite:///{copy}", None)) == {}
    assert logged_urls({folder: Filing()}, TrackingStore("http://127.0.0.1:9", None)) == {}


def test_importing_known_loads_no_mlflow() -> None:
    code = "import sys, memeval.tracking.known; assert 'mlflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_report_is_recognised_until_it_or_its_settings_change(folder: Path) -> None:
    assert not has_report(folder, plots=False)
    stamp_report(folder, plots=False)
    assert has_report(folder, plots=False)
    assert not has_report(folder, plots=True)
    (folder / "report.md").write_text("edited", encoding="utf-8")
    assert not has_report(folder, plots=False)


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize(
    "filing",
    [
        Filing(experiment="paper"),
        Filing(tags={"paper": "table2"}),
        Filing(note="mine"),
        Filing(sweep_id="curve-1"),
        Filing(sweep_id="curve-1", group_by_sweep=True),
    ],
)
def test_run_with_changed_filing_is_not_recognised_until_it_is_logged(
    store: TrackingStore, folder: Path, filing: Filing
) -> None:
    log_run(folder, store)
    assert logged_urls({folder: filing}, store) == {}
    tracked = log_run(folder, store, filing)
    assert logged_urls({folder: filing}, store) == {folder: tracked.url}
    assert logged_urls({folder: Filing()}, store) == {folder: tracked.url}
