"""Stores that several homes log to, files that are not MLflow stores, and homes with special
characters in their paths.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run, ViewType
from ports import free_port
from sample_runs import summary, write_folder

from memeval.errors import UserError
from memeval.results import RunSummary
from memeval.tracking.home import HOME_FILE, home_id
from memeval.tracking.log import log_run
from memeval.tracking.store import TrackingStore, check_store, locate, prepare_store

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from command_line import completed, memeval

ODD_HOMES = ["a%20b", "a b", "a#b", "a?b", "über", "a%b%s", "100%", "a&b;c", "a:b@c", "%2e%2e", "'"]
ALL = "tags.`memeval.run_key` LIKE '%'"
CELL = ("dataset=demo", "dataset.limit_cases=1", "dataset.limit_questions=2")


@pytest.fixture
def shared(tmp_path: Path, empty_database: Path) -> TrackingStore:
    (tmp_path / "shared").mkdir()
    shutil.copy(empty_database, tmp_path / "shared" / "mlflow.db")
    return prepare_store(locate(tmp_path, f"sqlite:///{tmp_path}/shared/mlflow.db"))


@pytest.fixture(params=["sqlite", "http"])
def any_shared(
    request: pytest.FixtureRequest, shared: TrackingStore, tmp_path: Path
) -> Iterator[TrackingStore]:
    """One store for two homes: an SQLite file, or a server in front of it."""
    if request.param == "sqlite":
        yield shared
        return
    from memeval.cli.ui import check_free, end, server_command, server_environment, wait_for

    port = free_port()
    check_free("127.0.0.1", port)
    command = server_command("127.0.0.1", port)
    log = tmp_path / "server.log"
    with log.open("w") as output:
        place = server_environment(shared.uri, shared.artifacts or "")
        words = [*command, "--serve-artifacts"]
        process = subprocess.Popen(words, stdout=output, stderr=output, process_group=0, env=place)
        try:
            wait_for(f"http://127.0.0.1:{port}", process, log)
            yield prepare_store(locate(tmp_path, f"http://127.0.0.1:{port}"))
        finally:
            end(process)


def runs(store: TrackingStore, query: str = ALL) -> list[Run]:
    client = MlflowClient(store.uri)
    ids = [experiment.experiment_id for experiment in client.search_experiments()]
    return list(client.search_runs(ids, query, ViewType.ACTIVE_ONLY))


def home(tmp_path: Path, name: str, accuracy: float = 0.5) -> Path:
    """The run folder of one run in the named home."""
    cell = summary("rag", repeats=2)
    return write_folder(
        tmp_path / name / "outputs" / "runs",
        replace(cell, metrics={**cell.metrics, "accuracy": accuracy}),
    )


def change(folder: Path, accuracy: float) -> None:
    cell = RunSummary.read(folder)
    replace(cell, metrics={**cell.metrics, "accuracy": accuracy}).write(folder)


@pytest.mark.slow
def test_home_replaces_only_its_own_runs(any_shared: TrackingStore, tmp_path: Path) -> None:
    mine, yours = home(tmp_path, "mine", 0.1), home(tmp_path, "yours", 0.2)
    first, other = log_run(mine, any_shared), log_run(yours, any_shared)
    assert {run.info.run_id for run in runs(any_shared)} == {first.run_id, other.run_id}

    change(mine, 0.3)
    second = log_run(mine, any_shared)

    assert {run.info.run_id for run in runs(any_shared)} == {second.run_id, other.run_id}
    assert not log_run(yours, any_shared).created
    children = runs(any_shared, f"tags.`mlflow.parentRunId` = '{other.run_id}'")
    assert len(children) == 2


@pytest.mark.slow
def test_two_homes_log_the_same_run_on_the_command_line(
    shared: TrackingStore, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        completed(tmp_path / name, *CELL, f"tracking.uri={shared.uri}")
    assert len(runs(shared)) == 2
    assert len({run.data.tags["memeval.origin"] for run in runs(shared)}) == 2


def test_copied_home_gets_a_new_id(shared: TrackingStore, tmp_path: Path) -> None:
    mine = home(tmp_path, "mine")
    first = log_run(mine, shared)
    shutil.copytree(tmp_path / "mine", tmp_path / "copy")
    copy = tmp_path / "copy" / "outputs" / "runs" / mine.name

    change(copy, 0.9)
    second = log_run(copy, shared)

    assert {run.info.run_id for run in runs(shared)} == {first.run_id, second.run_id}
    assert home_id(copy) != home_id(mine)


def test_moved_home_keeps_its_id(shared: TrackingStore, tmp_path: Path) -> None:
    mine = home(tmp_path, "mine")
    first = log_run(mine, shared)
    (tmp_path / "mine").rename(tmp_path / "moved")
    assert (
        log_run(tmp_path / "moved" / "outputs" / "runs" / mine.name, shared).run_id == first.run_id
    )


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"id": 3, "inode": 1}', "folder", "x" * 1000, '{"id": "../../x"}']
)
def test_damaged_home_id_deletes_no_run(
    shared: TrackingStore, tmp_path: Path, content: str
) -> None:
    mine = home(tmp_path, "mine")
    first = log_run(mine, shared)
    (tmp_path / "mine" / "outputs" / HOME_FILE).write_text(content)
    change(mine, 0.9)
    second = log_run(mine, shared)
    assert {run.info.run_id for run in runs(shared)} == {first.run_id, second.run_id}


@pytest.mark.slow
@pytest.mark.parametrize("origin", [None, "elsewhere:/other/outputs/runs/key", "{folder}"])
def test_runs_of_an_earlier_version_stay_in_a_shared_store(
    shared: TrackingStore, tmp_path: Path, origin: str | None
) -> None:
    mine = home(tmp_path, "mine")
    old = logged_by(shared, mine, origin)
    change(mine, 0.9)
    log_run(mine, shared)
    assert old in {run.info.run_id for run in runs(shared)}


def logged_by(store: TrackingStore, folder: Path, origin: str | None) -> str:
    """Logs a folder, and replaces the origin of the run."""
    run_id = log_run(folder, store).run_id
    client = MlflowClient(store.uri)
    client.delete_tag(run_id, "memeval.origin")
    if origin:
        client.set_tag(
            run_id, "memeval.origin", origin.format(folder=f"some-host:{folder.resolve()}")
        )
    return run_id


@pytest.mark.slow
def test_run_of_another_home_in_tracked_json_is_not_deleted(
    shared: TrackingStore, tmp_path: Path
) -> None:
    mine, yours = home(tmp_path, "mine", 0.1), home(tmp_path, "yours", 0.2)
    other = log_run(yours, shared)
    (mine / "tracked.json").write_text((yours / "tracked.json").read_text())
    log_run(mine, shared)
    assert other.run_id in {run.info.run_id for run in runs(shared)}


@pytest.mark.slow
def test_child_runs_added_by_others_are_not_deleted(shared: TrackingStore, tmp_path: Path) -> None:
    mine = home(tmp_path, "mine")
    tracked = log_run(mine, shared)
    client = MlflowClient(shared.uri)
    notes = client.create_run(
        tracked.experiment_id, tags={"mlflow.parentRunId": tracked.run_id}
    ).info.run_id
    change(mine, 0.9)
    log_run(mine, shared)
    assert client.get_run(notes).info.lifecycle_stage == "active"


@pytest.mark.slow
def test_run_whose_metric_was_changed_in_the_store_is_logged_again(
    shared: TrackingStore, tmp_path: Path
) -> None:
    mine = home(tmp_path, "mine")
    first = log_run(mine, shared)
    with closing(sqlite3.connect(tmp_path / "shared" / "mlflow.db")) as database:
        database.execute(
            "UPDATE latest_metrics SET value = 0.99 WHERE key = 'accuracy' AND run_uuid = ?",
            (first.run_id,),
        )
        database.commit()
    assert log_run(mine, shared).created
    assert len(runs(shared)) == 1


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize("name", ODD_HOMES)
def test_home_with_special_characters_logs_to_its_own_store(
    tmp_path: Path, empty_database: Path, name: str
) -> None:
    root = tmp_path / name
    (root / "mlruns").mkdir(parents=True)
    shutil.copy(empty_database, root / "mlruns" / "mlflow.db")
    store = prepare_store(locate(root))
    assert store.database == root / "mlruns" / "mlflow.db"

    tracked = log_run(home(tmp_path, name), store)

    (records,) = root.glob(f"mlruns/artifacts/locomo/{tracked.run_id}/artifacts/records.jsonl")
    assert records.stat().st_size > 0
    assert not [path for path in tmp_path.iterdir() if path.name != name]


def test_store_is_created_in_a_home_with_an_odd_path(tmp_path: Path) -> None:
    store = prepare_store(locate(tmp_path / "100%20 #1?"))
    assert [experiment.name for experiment in MlflowClient(store.uri).search_experiments()] == [
        "Default"
    ]
    assert (tmp_path / "100%20 #1?" / "mlruns" / "mlflow.db").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["100%20 #1?"]


def test_path_in_a_sqlite_uri_may_be_quoted_or_plain(tmp_path: Path) -> None:
    (tmp_path / "a%20b").mkdir()
    (tmp_path / "c d").mkdir()
    assert (
        locate(tmp_path, f"sqlite:///{tmp_path}/a%20b/x.db").database == tmp_path / "a%20b" / "x.db"
    )
    assert (
        locate(tmp_path, f"sqlite:///{tmp_path}/c%20d/x.db").database == tmp_path / "c d" / "x.db"
    )
    assert locate(tmp_path, "sqlite:///x.db?timeout=5").database == tmp_path / "x.db"
    assert (
        locate(tmp_path, "sqlite:///mlruns/mlflow.db").is_default
        and not locate(tmp_path, "sqlite:///x.db").is_default
    )


def another_program(
    path: Path, journal: str = "delete", tables: tuple[str, ...] = ("moz_places",)
) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA journal_mode={journal}")
        for table in tables:
            database.execute(f'CREATE TABLE "{table}" (id INTEGER)')
        database.commit()


@pytest.mark.parametrize(
    ("journal", "tables"),
    [
        ("delete", ("moz_places",)),
        ("wal", ("moz_places", "moz_hosts")),
        ("delete", ("alembic_version", "users")),
        ("delete", ("runs", "metrics")),
        ("delete", ("\x1b[2J\n",)),
    ],
)
def test_the_database_of_another_program_is_refused(
    tmp_path: Path, journal: str, tables: tuple[str, ...]
) -> None:
    file = tmp_path / "places.sqlite"
    another_program(file, journal, tables)
    before = file.read_bytes()
    with pytest.raises(UserError, match="another program's database") as caught:
        prepare_store(locate(tmp_path, f"sqlite:///{file}"))
    assert "\n" not in caught.value.message and "\x1b" not in caught.value.message
    assert file.read_bytes() == before


@pytest.mark.slow
def test_locked_database_of_another_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "places.sqlite"
    another_program(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UserError, match="another program's database"):
            check_store(locate(tmp_path, f"sqlite:///{file}"))


def test_foreign_database_is_refused_before_the_run_in_two_lines(tmp_path: Path) -> None:
    file = tmp_path / "places.sqlite"
    another_program(file)
    done = memeval(tmp_path / "home", *CELL, f"tracking.uri=sqlite:///{file}")
    assert done.status == 2
    assert "another program's database" in done.message and len(done.err.splitlines()) == 2
    assert not list((tmp_path / "home").glob("outputs/runs/*"))


def test_empty_file_and_mlflow_database_are_accepted(tmp_path: Path, empty_database: Path) -> None:
    (tmp_path / "empty.db").touch()
    check_store(locate(tmp_path, "sqlite:///empty.db"))
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    check_store(locate(tmp_path, "sqlite:///mlflow.db"))


def test_home_id_is_unique_stable_and_private(tmp_path: Path) -> None:
    mine, yours = home(tmp_path, "mine"), home(tmp_path, "yours")
    assert home_id(mine) == home_id(mine) != home_id(yours)
    file = tmp_path / "mine" / "outputs" / HOME_FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["id"] == home_id(mine)
