"""A connection to PostgreSQL that outlives the server's restarts, and the leases of this process.

Requests of an event loop run in threads: a server that does not answer blocks nothing else. Each
statement is its own transaction, and may be sent twice: if the connection breaks, it is unknown
whether the server has executed it.
"""

import asyncio
import atexit
import logging
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from queue import Queue
from typing import Any, NoReturn, TypeVar

import sqlalchemy
import sqlalchemy.exc
from msgspec import Struct

from memeval.errors import StorageError, UserError, require_library
from memeval.text.shown import one_line

VERSION = 1

TABLES = (
    "CREATE TABLE IF NOT EXISTS memeval_store (version integer PRIMARY KEY)",
    f"INSERT INTO memeval_store SELECT {VERSION} WHERE NOT EXISTS (SELECT 1 FROM memeval_store)",
    # `number` counts the lines of a file: a line that is sent twice is stored once.
    "CREATE TABLE IF NOT EXISTS memeval_rows (name text NOT NULL, number bigint NOT NULL,"
    " line bytea NOT NULL, PRIMARY KEY (name, number))",
    "CREATE TABLE IF NOT EXISTS memeval_texts (name text NOT NULL, reference text NOT NULL,"
    " line bytea NOT NULL, PRIMARY KEY (name, reference))",
    "CREATE TABLE IF NOT EXISTS memeval_entries (cache text NOT NULL, key text NOT NULL,"
    " value bytea NOT NULL, origin text NOT NULL, crc bigint NOT NULL, tokens bigint,"
    " PRIMARY KEY (cache, key))",
    # The locks of a process end with its lease.
    "CREATE TABLE IF NOT EXISTS memeval_holders (holder text PRIMARY KEY,"
    " expires timestamptz NOT NULL)",
    "CREATE TABLE IF NOT EXISTS memeval_locks (name text NOT NULL, number bigint NOT NULL,"
    " holder text NOT NULL, PRIMARY KEY (name, number))",
    # Leases of processes that died long ago. The processes of younger leases may only be suspended.
    "DELETE FROM memeval_holders WHERE expires < now() - interval '1 hour'",
    "DELETE FROM memeval_locks l WHERE NOT EXISTS"
    " (SELECT 1 FROM memeval_holders h WHERE h.holder = l.holder)",
)


CONNECT_S = 4
"""Time limit for the server to accept a connection."""
LEASE_S = 20.0
"""A process that does not renew its lease for this long has lost it."""
RENEW_S = 5.0
"""Seconds between two renewals of the lease."""
STATEMENT_S = 15.0
"""Time limit after which the server cancels a statement."""
ANSWER_S = 20.0
"""Seconds without an answer before a connection is cut: a stopped server keeps it open."""
SAY_S = 3.0
"""Seconds after which a statement that is still waiting is reported."""
SAY_EVERY_S = 10.0
"""Seconds between two messages about an unreachable server."""
REST_S = 10.0
"""Seconds for which a server that was given up is not tried again."""
THREADS = 8
"""Threads that run the requests of event loops."""
CLOSING_S = 5.0
"""Seconds for which the process waits at its end for pending writes to the database or the home."""
LOOK_S = 0.5
"""Seconds between two checks of the statements under way."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0
"""Seconds between two attempts to reach a server that does not answer, at first and at most."""
_SETUP_LOCK = 7_301_552_001
"""The advisory lock under which the tables are created: an arbitrary constant."""
_PASSING = ("08", "53", "57P", "57014", "40")
"""SQL state prefixes of temporary errors: connection, resources, shutdown, timeout, rollback."""
# A refused connection has no SQL state.
_REFUSED_FOR_NOW = re.compile(
    "too many clients|too many connections|slots are reserved|the database system is "
)
"""Messages of a server that has no connection left, or that is starting or shutting down."""

T = TypeVar("T")
Row = Sequence[Any]
_log = logging.getLogger(__name__)


class _Statement(Struct, frozen=True):
    """A statement that the server has not answered yet."""

    file: int
    """Descriptor of its connection."""
    began: float

    def cut(self) -> None:
        """Ends the connection: the thread that waits for the answer gets an error."""
        with suppress(OSError), socket.socket(fileno=os.dup(self.file)) as connection:
            connection.shutdown(socket.SHUT_RDWR)


class Database:
    """One database, as one process uses it."""

    def __init__(
        self, url: str, patience_s: float, say: Callable[[str], None] | None = None
    ) -> None:
        """Raises `UserError` if the database can't be used, or contains the store of another
        version, and `StorageError` if it accepts no connection for `patience_s`.
        """
        self.url, self.patience_s = url, patience_s
        self.holder = uuid.uuid4().hex
        """The id of this process in the leases."""
        self.say = say
        self._engine = _engine(url)
        self._closed = threading.Event()
        self._under_way: dict[int, _Statement] = {}
        self._away_since: float | None = None
        """When the first of the statements that failed since the last answer began."""
        self._failed_at = 0.0
        self._said_at: float | None = None
        self._trying = threading.Lock()
        self._jobs: Queue[Callable[[], None]] = Queue()
        threading.Thread(target=self._keep_watching, name="memeval-store", daemon=True).start()
        self._set_up()

        # Before the first lock is taken: any process may take a lock without a live lease.
        self._persist(self._renew)
        threading.Thread(target=self._keep_renewing, name="memeval-lease", daemon=True).start()
        for _ in range(THREADS):
            threading.Thread(target=self._work, name="memeval-store", daemon=True).start()

        atexit.register(self.close)

    def run(self, statement: str, values: Mapping[str, Any] | None = None) -> list[Row]:
        """The rows of a statement; waits while the server is unreachable. Event loops use `call`.

        Raises `StorageError` if it refuses, or is unreachable for longer than `patience_s`.
        """
        return self._persist(lambda: self._run_once(statement, values))

    def _persist(self, work: Callable[[], T]) -> T:
        """The result of `work`, repeated while the server is unreachable. Raises as `run` does."""
        first, wait_s = time.monotonic(), FIRST_WAIT_S
        while True:
            # While the server is unreachable, only one statement at a time tries to reach it.
            with nullcontext() if self._away_since is None else self._trying:
                began = time.monotonic()
                self._refuse_if_given_up(began)
                try:
                    result = work()
                except sqlalchemy.exc.SQLAlchemyError as error:
                    self._note_failure(error, first=first, began=began)
                else:
                    self._note_answer()
                    return result

                self._closed.wait(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _refuse_if_given_up(self, now: float) -> None:
        """Raises `StorageError` while a server that was given up is not tried again."""
        since = self._away_since
        if since is None or now - self._failed_at >= REST_S:
            return
        if self._failed_at - since >= self.patience_s:
            self._give_up("it did not answer")

    def _note_failure(self, error: Exception, *, first: float, began: float) -> None:
        """Records a failure; raises `StorageError` if it is permanent or the patience is used up.

        `first` is when the statement was first requested, `began` when this attempt began.
        """
        reason = one_line(getattr(error, "orig", None) or error, 300)
        if not _is_passing(error):
            raise StorageError(f"the store {self.url} refused: {reason}") from error

        self._failed_at = time.monotonic()
        self._away_since = since = began if self._away_since is None else self._away_since
        if self._failed_at - min(first, since) >= self.patience_s or self._closed.is_set():
            self._give_up(reason, error)

        self._report_wait(reason)

    def _give_up(self, reason: str, error: Exception | None = None) -> NoReturn:
        raise StorageError(
            f"the store {self.url} was unreachable for {self.patience_s:g} s "
            f"(store.patience_s): {reason}"
        ) from error

    def _note_answer(self) -> None:
        self._away_since = None
        if self.say is not None and self._said_at is not None:
            self._said_at = None
            self.say(f"the store {self.url} is reachable again")

    async def call(self, work: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        """The result of `work`, run in a thread; `undo` gets it if the caller was cancelled."""
        done: Future[T] = Future()
        # As if it already ran: the work of a cancelled caller is done as well.
        done.set_running_or_notify_cancel()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                done.set_exception(error)

        self._jobs.put(run)
        try:
            return await asyncio.wrap_future(done)
        except asyncio.CancelledError:
            if undo is not None:
                done.add_done_callback(lambda _: self.post(lambda: undo(done.result())))
            raise

    def post(self, work: Callable[[], object]) -> None:
        """Runs `work` in a thread, without waiting for it."""

        def run() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - the next use of the result reports it
                _log.debug("%s", error)

        self._jobs.put(run)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            job()
            self._jobs.task_done()

    def _run_once(self, statement: str, values: Mapping[str, Any] | None) -> list[Row]:
        with self._engine.connect() as connection, self._watch(connection):
            result = connection.execute(sqlalchemy.text(statement), values or {})
            return list(map(tuple, result)) if result.returns_rows else []

    @contextmanager
    def _watch(self, connection: Any) -> Iterator[None]:
        """Has the connection cut if the server does not answer in time."""
        statement = _Statement(connection.connection.dbapi_connection.fileno(), time.monotonic())
        self._under_way[id(statement)] = statement
        try:
            yield
        finally:
            del self._under_way[id(statement)]

    def _keep_watching(self) -> None:
        while not self._closed.wait(LOOK_S):
            now = time.monotonic()
            for statement in list(self._under_way.values()):
                waited_s = now - statement.began
                if waited_s >= SAY_S:
                    self._report_wait(f"no answer for {waited_s:.0f} s")

                if waited_s >= ANSWER_S:
                    statement.cut()

    def _report_wait(self, reason: str) -> None:
        """Reports that memeval waits for the server, immediately and then every few seconds."""
        now = time.monotonic()
        if self.say is None or (self._said_at is not None and now - self._said_at < SAY_EVERY_S):
            return

        self._said_at = now
        self.say(f"waiting for the store {self.url}: {reason} (up to {self.patience_s:g} s)")

    def _set_up(self) -> None:
        version = self._persist(self._make_tables)
        if version != VERSION:
            raise UserError(
                f"store.url={self.url} contains the store of a different version of memeval "
                f"({one_line(version)}; this one writes {VERSION})",
                "use a separate database",
            )

    def _make_tables(self) -> object:
        """Creates the missing tables, and returns the version of the store.

        Raises `UserError` for errors that another attempt would not fix.
        """
        try:
            with self._engine.connect() as connection, self._watch(connection):
                connection.execution_options(isolation_level="READ COMMITTED")
                with connection.begin():
                    # Two processes that create one table at the same time would fail.
                    connection.execute(
                        sqlalchemy.text(f"SELECT pg_advisory_xact_lock({_SETUP_LOCK})")
                    )
                    for statement in TABLES:
                        connection.execute(sqlalchemy.text(statement))

                    return connection.execute(
                        sqlalchemy.text("SELECT version FROM memeval_store")
                    ).scalar()
        except sqlalchemy.exc.SQLAlchemyError as error:
            if _is_passing_at_start(error):
                raise

            reason = one_line(getattr(error, "orig", None) or error, 300)
            raise UserError(
                f"the store {self.url} can't be used: {reason}",
                "set user and password:  PGUSER and PGPASSWORD, or ~/.pgpass",
                "or run without it:      store.url=null",
            ) from error

    def _keep_renewing(self) -> None:
        """Renews the leases until the process ends."""
        # Statements wait for an unreachable server when its rows are needed; this thread does not.
        while not self._closed.wait(RENEW_S):
            with suppress(Exception):
                self._renew()
                self._note_answer()

    def _renew(self) -> None:
        self._run_once(
            "INSERT INTO memeval_holders (holder, expires) "
            "VALUES (:holder, now() + make_interval(secs => :lease)) "
            "ON CONFLICT (holder) DO UPDATE SET expires = excluded.expires",
            {"holder": self.holder, "lease": LEASE_S},
        )

    def _finish_jobs(self, is_worth_it: Callable[[], bool]) -> None:
        until = time.monotonic() + CLOSING_S
        while self._jobs.unfinished_tasks and is_worth_it() and time.monotonic() < until:
            time.sleep(LOOK_S / 10)

    def _is_away(self) -> bool:
        oldest = min((job.began for job in list(self._under_way.values())), default=None)
        is_silent = oldest is not None and time.monotonic() - oldest >= SAY_S
        return is_silent or self._away_since is not None

    def close(self) -> None:
        """Releases the leases of this process."""
        if self._closed.is_set():
            return

        self._finish_jobs(lambda: not self._is_away())
        is_away = self._is_away()
        self._closed.set()
        # Waiting callers get an error, and keep in the home what can't be stored.
        for statement in list(self._under_way.values()):
            statement.cut()

        self._finish_jobs(lambda: True)
        if not is_away:
            with suppress(Exception):
                values = {"holder": self.holder}
                # Tried once: the process is ending, and its leases expire anyway.
                self._run_once("DELETE FROM memeval_locks WHERE holder = :holder", values)
                self._run_once("DELETE FROM memeval_holders WHERE holder = :holder", values)

        self._engine.dispose()


def open_database(
    url: str, patience_s: float, say: Callable[[str], None] | None = None
) -> Database:
    """The process's connection to a database. Raises as `Database` does."""
    with _opening:
        if url not in _open:
            _open[url] = Database(url, patience_s, say)

        database = _open[url]
        database.patience_s, database.say = patience_s, say or database.say
        return database


def _engine(url: str) -> Any:
    require_library("psycopg", "store.url=postgresql://… needs psycopg", "postgres")
    return sqlalchemy.create_engine(
        url.replace("postgresql://", "postgresql+psycopg://", 1),
        # Each statement is a transaction: no lock of the server outlives it.
        isolation_level="AUTOCOMMIT",
        connect_args={
            "connect_timeout": CONNECT_S,
            "options": f"-c statement_timeout={STATEMENT_S:g}s",
            "application_name": "memeval",
            # A machine that failed sends nothing: without keep-alives, that is never noticed.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
        },
    )


def _is_passing(error: Exception) -> bool:
    """Whether the same statement may succeed later."""
    if not isinstance(error, sqlalchemy.exc.DBAPIError):
        return isinstance(error, sqlalchemy.exc.TimeoutError)

    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        # There is no state if the server was not reached, or the connection broke.
        return error.connection_invalidated or isinstance(error, sqlalchemy.exc.OperationalError)

    return str(state).startswith(_PASSING)


def _is_passing_at_start(error: Exception) -> bool:
    """Whether a running server's refusal is temporary: a wrong URL or password stays wrong."""
    reason = getattr(error, "orig", None)
    if getattr(reason, "sqlstate", None) or getattr(error, "connection_invalidated", False):
        return _is_passing(error)

    return _REFUSED_FOR_NOW.search(str(reason)) is not None


_open: dict[str, Database] = {}
_opening = threading.Lock()
# A child process that used the sockets of its parent would break the connections of both.
os.register_at_fork(after_in_child=_open.clear)
