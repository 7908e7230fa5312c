"""The tracking store: its location, concurrent first starts, and one-line errors."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from mlflow import MlflowClient
from ports import free_port

from memeval.errors import UserError, WorldError
from memeval.tracking.store import TrackingStore, locate, prepare_store, store_errors

START = (
    "import sys; from pathlib import Path; "
    "from memeval.tracking.store import locate, prepare_store; "
)


def test_default_store_is_below_the_home(tmp_path: Path) -> None:
    store = locate(tmp_path, None)
    assert store == TrackingStore(
        f"sqlite:///{tmp_path}/mlruns/mlflow.db", f"file://{tmp_path}/mlruns/artifacts"
    )
    assert not store.remote and store.page == "http://127.0.0.1:5000"
    assert not (tmp_path / "mlruns").exists()


def test_given_tracking_uris_are_resolved(tmp_path: Path) -> None:
    assert locate(tmp_path, "sqlite:///here/a.db").uri == f"sqlite:///{tmp_path}/here/a.db"
    assert locate(tmp_path, "sqlite:////there/a.db") == TrackingStore(
        "sqlite:////there/a.db", "file:///there/artifacts"
    )
    assert locate(tmp_path, "https://mlflow.example/x/") == TrackingStore(
        "https://mlflow.example/x/", None
    )
    assert (
        locate(tmp_path, "postgresql+psycopg://db/x").artifacts
        == f"file://{tmp_path}/mlruns/artifacts"
    )


def test_setting_overrides_the_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://one:1")
    assert locate(tmp_path).uri == "http://one:1"
    assert locate(tmp_path, "http://two:2").uri == "http://two:2"


def test_passwords_are_not_shown() -> None:
    assert TrackingStore("http://me:secret@host:5000", None).page == "http://host:5000"
    with (
        pytest.raises(WorldError) as caught,
        store_errors(TrackingStore("postgresql://me:secret@host/db", None)),
    ):
        raise OSError("Connection refused")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "uri", ["mlruns", "./mlruns", "file:///tmp/mlruns", "sqlite://", "sqlite:///", "ftp://host"]
)
def test_invalid_tracking_uri_is_refused(tmp_path: Path, uri: str) -> None:
    with pytest.raises(UserError, match="is not a tracking URI"):
        locate(tmp_path, uri)


@pytest.mark.slow
def test_concurrent_first_starts_create_one_complete_store(tmp_path: Path) -> None:
    code = f"{START}from memeval.tracking.log import open_early as early; "
    code += "early(prepare_store(locate(Path(sys.argv[1]))))"
    # With an empty cache, so that both processes may have to run MLflow's migrations.
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
        )
        for _ in range(2)
    ]
    output = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], output
    assert output == ["", ""], "MLflow chatters"
    database = tmp_path / "mlruns" / "mlflow.db"
    with sqlite3.connect(database) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert len(connection.execute("select * from alembic_version").fetchall()) == 1
    connection.close()
    client = MlflowClient(f"sqlite:///{database}")
    assert [experiment.name for experiment in client.search_experiments()] == ["Default"]


def test_leftovers_of_a_killed_first_start_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "mlruns"
    folder.mkdir()
    for unfinished in (".mlflow.db.new", ".mlflow.db.copy"):
        (folder / unfinished).write_bytes(b"half a database")

    (folder / "mlflow.db").touch()
    store = prepare_store(locate(tmp_path))
    assert [experiment.name for experiment in MlflowClient(store.uri).search_experiments()] == [
        "Default"
    ]
    assert sorted(path.name for path in folder.iterdir()) == [".mlflow.db.lock", "mlflow.db"]


def test_file_in_place_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mlruns").write_text("")
    with pytest.raises(WorldError, match="a file is where a folder should be"):
        prepare_store(locate(tmp_path))


@pytest.mark.slow
def test_full_disk_is_reported_and_leaves_no_database(tmp_path: Path) -> None:
    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    code = START + "prepare_store(locate(Path(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        preexec_fn=small_files,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("memeval.errors.WorldError: MLflow store sqlite:///"), done.stderr
    assert "disk" in last
    assert not (tmp_path / "mlruns" / "mlflow.db").exists()


def test_unreachable_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from memeval.tracking.log import open_early

    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    port = free_port()
    with pytest.raises(WorldError) as caught:
        open_early(TrackingStore(f"http://127.0.0.1:{port}", None))
    assert str(caught.value) == f"MLflow store http://127.0.0.1:{port}: the server can't be reached"


def test_error_status_of_a_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from memeval.tracking.log import open_early

    class Failing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(503)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    with HTTPServer(("127.0.0.1", 0), Failing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(WorldError, match="the server answers with status 503"):
            open_early(TrackingStore(f"http://127.0.0.1:{server.server_port}", None))
        server.shutdown()


def test_redirect_sends_no_body_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    bodies: list[bytes] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"experiment_id": "1"}')

        def log_message(self, *_: object) -> None:
            pass

    class Redirects(Elsewhere):
        def do_POST(self) -> None:
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{elsewhere.server_port}{self.path}")
            self.end_headers()

    with (
        HTTPServer(("127.0.0.1", 0), Elsewhere) as elsewhere,
        HTTPServer(("127.0.0.1", 0), Redirects) as server,
    ):
        for each in (elsewhere, server):
            threading.Thread(target=each.serve_forever, daemon=True).start()

        client = MlflowClient(f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(MlflowException):
            client.create_experiment("private")

        for each in (elsewhere, server):
            each.shutdown()

    assert bodies == []


def test_damaged_database_is_reported(tmp_path: Path) -> None:
    from memeval.tracking.log import open_early

    (tmp_path / "mlruns").mkdir()
    (tmp_path / "mlruns" / "mlflow.db").write_text(
        "not a database at all, but long enough to be taken for one" * 100
    )
    with pytest.raises(WorldError, match="damaged"):
        open_early(prepare_store(locate(tmp_path)))


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("(sqlite3.OperationalError) database is locked", "another process locked it"),
        ("[Errno 28] No space left on device", "the disk is full"),
        ("(sqlite3.OperationalError) attempt to write a readonly database", "it can't be written"),
        (
            "API request to endpoint /api/2.0/mlflow/runs/create failed with error code 403 != "
            "200. Response body: 'Permission denied'",
            "the server refuses this user",
        ),
        (
            "Detected out-of-date database schema (found version 1)",
            "it was made by a different version of MLflow",
        ),
        ("something new\nin two lines", "something new in two lines"),
    ],
)
def test_causes_of_store_errors_are_named(message: str, cause: str) -> None:
    with (
        pytest.raises(WorldError, match=f"MLflow store x: {cause}"),
        store_errors(TrackingStore("x", None)),
    ):
        raise OSError(message)


class Home:
    """Creates stores with a separate user cache."""

    def __init__(
        self, folder: Path, patch: pytest.MonkeyPatch, output: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self._output = output
        patch.setenv("XDG_CACHE_HOME", str(self.cache))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)

    def make(self, name: str) -> Path:
        """Creates a store and returns its database.

        Asserts that MLflow prints nothing, and that the artifacts of its default experiment are
        next to it.
        """
        root = self.folder / name
        experiment = MlflowClient(prepare_store(locate(root)).uri).get_experiment("0")
        assert experiment.artifact_location == (root / "mlruns" / "artifacts" / "0").as_uri()
        assert self._output.readouterr() == ("", "")
        return root / "mlruns" / "mlflow.db"

    @property
    def migrated(self) -> dict[str, int]:
        """Modification time of each file in the cache of empty stores, in nanoseconds."""
        return {file.name: file.stat().st_mtime_ns for file in (self.cache / "memeval").iterdir()}


@pytest.fixture
def home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Home:
    return Home(tmp_path, monkeypatch, capfd)


def schema_of(database: Path) -> list[tuple[str, str]]:
    """Tables, indexes and revision; the order of constraints varies between migrations."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(
            "SELECT type, name FROM sqlite_master "
            "UNION SELECT 'revision', version_num FROM alembic_version ORDER BY 1, 2"
        ).fetchall()


def test_second_store_is_a_copy_of_the_empty_first_store(home: Home) -> None:
    first = home.make("first")
    migrated = home.migrated
    second = home.make("second")

    assert home.migrated == migrated and len(migrated) == 1
    assert schema_of(first) == schema_of(second)
    assert [database.stat().st_mode & 0o777 for database in (first, second)] == [0o600, 0o600]
    assert {file.name for file in second.parent.iterdir()} == {"mlflow.db", ".mlflow.db.lock"}


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["junk", "another schema", "another version"])
def test_cached_empty_store_that_does_not_fit_is_replaced(
    home: Home,
    user_cache: Path,
    empty_database: Path,
    damage: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The shared cache was filled for `empty_database`.
    shutil.copytree(user_cache / "memeval", home.cache / "memeval", copy_function=shutil.copy2)
    (name,) = [name for name in home.migrated if name.endswith(".db")]
    empty = home.cache / "memeval" / name
    if damage == "junk":
        empty.write_bytes(b"junk")
    elif damage == "another schema":
        with closing(sqlite3.connect(empty)) as connection:
            connection.execute("UPDATE alembic_version SET version_num = 'older'")
            connection.commit()
    else:
        monkeypatch.setattr("mlflow.version.VERSION", "3.99.0")

    before = home.migrated
    second = home.make("second")
    migrated = home.migrated
    assert migrated != before and schema_of(second) == schema_of(empty_database)

    home.make("third")
    assert home.migrated == migrated


@pytest.mark.slow
def test_store_is_created_even_if_the_cache_cannot_be_written(
    home: Home, empty_database: Path
) -> None:
    home.cache.write_text("a file")

    assert schema_of(home.make("first")) == schema_of(empty_database)
