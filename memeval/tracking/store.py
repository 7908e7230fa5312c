"""Store of logged runs: the project's own SQLite store, or the one whose URI the user sets."""

import os
import re
import shutil
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, unquote

from memeval.errors import UserError, WorldError
from memeval.results.private import FILE_MODE, make_folder
from memeval.text.redaction import keep_address, redacted, without_userinfo
from memeval.text.shown import one_line

LOCAL_PAGE = "http://127.0.0.1:5000"
"""URL at which `python -m memeval ui` serves a local store by default."""

WORKFLOW = "workflowType=machine_learning"
"""Part of the URL of MLflow's page.

Without it the page shows traces, which memeval does not log, and hides metrics and descriptions.
"""

DEFAULT_DATABASE = "mlflow.db"
"""MLflow's default store, in the working directory."""

LOCK_WAIT_S = 120.0
"""Seconds that a process waits for another that creates the store or logs the same run."""

SQLITE = "sqlite:///"
SQLITE_BY_DRIVER = "sqlite+pysqlite:///"
"""The prefix with the driver's name: with `sqlite:///`, MLflow creates folders named after the
quoted path; with this prefix it does not.
"""
DATABASE_SERVERS = frozenset({"postgresql", "mysql", "mssql"})
MLFLOW_TABLES = frozenset({"experiments", "runs", "metrics", "params", "tags"})
"""Tables that an MLflow store of any version has."""


@dataclass(frozen=True)
class TrackingStore:
    uri: str
    artifacts: str | None
    """Artifact location of new experiments; None if the server decides."""

    is_default: bool = field(default=False, compare=False)
    """Whether it is the home's own store, which other homes should not log to."""

    @property
    def database(self) -> Path | None:
        """The file of an SQLite store; None for any other."""
        scheme, mark, rest = self.uri.partition(":///")
        if scheme + mark not in (SQLITE, SQLITE_BY_DRIVER):
            return None

        return Path(unquote(rest.partition("?")[0]))

    @property
    def remote(self) -> bool:
        """Whether the store is behind a server, which others may share."""
        return self.uri.startswith(("http://", "https://"))

    @property
    def name(self) -> str:
        """The URI without user and password, safe to show and store."""
        if "://" not in self.uri or self.uri.startswith("sqlite:"):
            return self.uri

        return without_userinfo(self.uri)

    @property
    def page(self) -> str:
        """URL of MLflow's page for this store."""
        return self.name.rstrip("/") if self.remote else LOCAL_PAGE

    def run_page(self, experiment_id: str, run_id: str) -> str:
        """URL of a run on MLflow's page."""
        return f"{self.page}/#/experiments/{experiment_id}/runs/{run_id}?{WORKFLOW}"


def prepare_store(store: TrackingStore) -> TrackingStore:
    """The same store, ready for use: a missing SQLite file is created.

    Parallel first starts are safe: migrations run on a file of another name, under a lock, and the
    finished file is renamed.

    Raises `UserError` for another program's database, `WorldError` if the store can't be created.
    """
    check_store(store)
    keep_address(store.uri)  # its password is removed from all further output
    if store.database is not None and not exists(store.database):
        with store_errors(store):
            create(store.database, store.artifacts)
    elif store.uri.partition(":")[0].split("+")[0] in DATABASE_SERVERS:
        with store_errors(store):
            refuse_foreign(store, tables_on_server(store.uri))

    if store.is_default and store.database is not None:
        link_default(store.database)

    return store


def link_default(database: Path) -> None:
    """Makes `mlflow.db`, MLflow's default, a link to the home's own store.

    So `mlflow.search_runs()` finds the runs without a URI. Does nothing if the file exists, or if
    the file system has no links.
    """
    root = database.parent.parent
    link = root / DEFAULT_DATABASE
    if not link.is_symlink() and not link.exists():
        with suppress(OSError):
            link.symlink_to(database.relative_to(root))


def check_store(store: TrackingStore) -> None:
    """Raises `UserError` if an SQLite file is another program's.

    Called before MLflow puts its tables into it. Loads nothing heavy.
    """
    if store.database is not None and exists(store.database):
        refuse_foreign(store, tables_in(store.database))


def refuse_foreign(store: TrackingStore, tables: Collection[str]) -> None:
    """Raises `UserError` for a database that contains tables, but not those of MLflow."""
    if tables and not set(tables) >= MLFLOW_TABLES:
        named = one_line(", ".join(sorted(tables)[:3]), 60)
        raise UserError(
            f"tracking.uri: {store.name} is another program's database: it contains tables "
            f"({named}), but not MLflow's",
            "use another database:  tracking.uri=sqlite:///runs/mlflow.db",
        )


def tables_in(database: Path) -> set[str]:
    """Names of the tables in an SQLite file, which is only read.

    Empty if it is not a readable SQLite file.
    """
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"

    # `immutable` reads a file that another process has locked.
    for options in ("mode=ro", "immutable=1"):
        uri = f"{database.absolute().as_uri()}?{options}"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                return {str(name) for (name,) in connection.execute(query)}
        except sqlite3.Error:
            continue

    return set()


def tables_on_server(uri: str) -> set[str]:
    """Names of the tables in a database on a server."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri)
    try:
        return set(sqlalchemy.inspect(engine).get_table_names())
    finally:
        engine.dispose()


def locate(root: Path, uri: str | None = None) -> TrackingStore:
    """The store at `uri`, else at MLFLOW_TRACKING_URI, else `mlruns/mlflow.db` below `root`.

    It is neither opened nor created. Raises `UserError` for a string that is not a tracking URI.
    """
    local = root / "mlruns"
    uri = uri or os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        return TrackingStore(
            sqlite_uri(local / "mlflow.db"), (local / "artifacts").as_uri(), is_default=True
        )

    scheme, colon, rest = uri.partition(":")
    if scheme == "sqlite" and rest.startswith("///") and rest != "///":
        path, mark, options = rest.removeprefix("///").partition("?")
        # The path may be percent-encoded or not: it is taken as it is if its folder exists.
        if not (root / path).parent.is_dir():
            path = unquote(path)

        database = root / path
        is_default = not mark and database.absolute() == local.absolute() / "mlflow.db"
        return TrackingStore(
            uri=sqlite_uri(database) + mark + options,
            artifacts=(database.parent / "artifacts").as_uri(),
            is_default=is_default,
        )

    if scheme in {"http", "https", "databricks"}:
        return TrackingStore(uri, None)
    if colon and scheme.split("+")[0] in DATABASE_SERVERS:
        return TrackingStore(uri, (local / "artifacts").as_uri())

    raise UserError(
        f"'{one_line(uri)}' is not a tracking URI: expected http(s):// or a database such as "
        "sqlite:///",
        "on this machine:  leave tracking.uri out, or use tracking.uri=sqlite:///runs/mlflow.db",
        "on a server:      tracking.uri=http://host:5000",
    )


def sqlite_uri(database: Path) -> str:
    """The URI of an SQLite file.

    `%`, `#` and `?` have a special meaning in a URI: in a path they are percent-encoded.
    """
    path = str(database)
    if any(character in path for character in "%#?"):
        return SQLITE_BY_DRIVER + quote(path)

    return SQLITE + path


def create(database: Path, artifacts: str | None) -> None:
    """Creates an SQLite store if it is missing.

    MLflow's migrations damage a file permanently if they are interrupted. So they run on a file
    that no other process sees, and only if this user has no empty store of this MLflow version yet.
    """
    from filelock import FileLock

    make_folder(database.parent)
    with FileLock(database.with_name(f".{database.name}.lock"), timeout=LOCK_WAIT_S):
        if exists(database):
            return

        # Two names: MLflow remembers what it has opened under a name, even if it was not a store.
        copied = clear_remains(database.with_name(f".{database.name}.copy"))
        migrated = clear_remains(database.with_name(f".{database.name}.new"))
        made = copied
        if not copy_empty(copied, artifacts):
            made = migrated
            open_new(migrated, artifacts)
            keep_empty(migrated)

        made.chmod(FILE_MODE)
        made.replace(database)


def copy_empty(copied: Path, artifacts: str | None) -> bool:
    """Copies this user's empty store; returns whether there is one whose schema MLflow accepts."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        shutil.copyfile(empty_store(), copied)
        open_new(copied, artifacts)
    except (OSError, RuntimeError, MlflowException, SQLAlchemyError):
        copied.unlink(missing_ok=True)
        return False

    return True


def clear_remains(unfinished: Path) -> Path:
    """The path, cleared of the remains of a killed process: SQLite would replay its journal."""
    unfinished.unlink(missing_ok=True)
    unfinished.with_name(f"{unfinished.name}-journal").unlink(missing_ok=True)

    return unfinished


def open_new(database: Path, artifacts: str | None) -> None:
    """Has MLflow create the missing parts of a store: its tables, or the default experiment."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore(sqlite_uri(database), artifacts)  # type: ignore[no-untyped-call]
    # Closed before it is renamed: SQLite finds its journal by the name that it opened.
    store.engine.dispose()


def empty_store() -> Path:
    """File of this user's empty store of the installed MLflow version. New stores are copies of it,
    because MLflow's migrations take longer than a small run.

    Raises `RuntimeError` for a user without a home directory.
    """
    from mlflow.version import VERSION

    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "memeval", f"mlflow-{VERSION}.db")


def keep_empty(new_store: Path) -> None:
    """Keeps a copy of a new store for later ones to be copied from, unless the disk refuses it."""
    with suppress(OSError, RuntimeError, sqlite3.Error):
        empty = empty_store()
        make_folder(empty.parent)
        with TemporaryDirectory(prefix=".", dir=empty.parent) as folder:
            copy = Path(folder) / empty.name
            shutil.copyfile(new_store, copy)
            with closing(sqlite3.connect(copy)) as connection:
                # The default experiment names the artifacts' location; MLflow creates it again.
                connection.execute("DELETE FROM experiments")
                connection.commit()

            # A rename: a process that copies the file gets the whole old file or the whole new one.
            copy.replace(empty)


def exists(database: Path) -> bool:
    """Whether there is a store. An empty file is not one."""
    # SQLite creates an empty file as soon as a path is opened.
    return database.is_file() and database.stat().st_size > 0


@contextmanager
def store_errors(store: TrackingStore) -> Iterator[None]:
    """Turns errors of MLflow, its database, the network or the disk into a one-line `WorldError`.

    A missing driver of a database is a `UserError`.
    """
    # Imported here, and not at the top: this module is also used where MLflow is not loaded.
    import requests
    from filelock import Timeout
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except ModuleNotFoundError as error:
        raise UserError(
            f"MLflow store {store.name} needs the Python package '{error.name}', which is not "
            "installed",
            f"install it:  pip install {error.name}",
        ) from error
    except (
        MlflowException,
        SQLAlchemyError,
        requests.RequestException,
        Timeout,
        OSError,
        ValueError,
    ) as error:
        raise WorldError(f"MLflow store {store.name}: {plain_cause(error)}") from error


CAUSES = {
    "error code 40[13]": (
        "the server refuses this user (MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD)"
    ),
    "connection refused|max retries|timeout exception|name resolution|failed to resolve": (
        "the server can't be reached"
    ),
    "database is locked|file lock": "another process locked it for too long",
    "no space left|disk is full|disk quota|file too large": "the disk is full",
    "readonly database|read-only file system|permission denied|unable to open database": (
        "it can't be written"
    ),
    "not a directory|file exists": "a file is where a folder should be",
    "file is not a database|malformed|no such table": (
        "the file is damaged, or is not an MLflow database: move it away"
    ),
    "out-of-date database schema": (
        "it was made by a different version of MLflow: back it up, then run `mlflow db upgrade` "
        "on it"
    ),
    "disk i/o error": "the disk refused to write; is it full?",
}
"""The meaning of an error, by a pattern for its text."""


def plain_cause(error: Exception) -> str:
    """The cause on one line; the error's own words if the cause is unknown."""
    message = one_line(error, 4000)
    # The error also says "max retries", but the server did answer.
    if answered := re.search(r"too many (\d+) error responses", message):
        return f"the server answers with status {answered[1]}"

    for pattern, cause in CAUSES.items():
        if re.search(pattern, message, re.IGNORECASE):
            detail = getattr(error, "filename", None)
            return f"{cause} ({detail})" if detail else cause

    return one_line(redacted(message), 300) or type(error).__name__
