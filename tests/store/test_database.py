"""A PostgreSQL store whose server hangs, is slow, or has damaged entries."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from postgres_server import PROGRAMS, Server

from memeval.errors import StorageError, UserError
from memeval.llm.cache_contract import CachedEntry
from memeval.store.postgres import database as module
from memeval.store.postgres import leases
from memeval.store.postgres.cache import PostgresCache
from memeval.store.postgres.database import Database
from memeval.store.postgres.leases import LeasedLocks, RowLeases
from memeval.store.postgres.store import PostgresStore

pytestmark = pytest.mark.skipif(
    not PROGRAMS or importlib.util.find_spec("psycopg") is None,
    reason="needs PostgreSQL's server (apt-get install postgresql) and psycopg",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def hurried(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Shortens the time limits, most of them to tenths of a second."""
    monkeypatch.setenv("PGUSER", "memeval")
    limits = {"SAY_S": 0.1, "ANSWER_S": 0.4, "LOOK_S": 0.05, "CONNECT_S": 3, "REST_S": 0.3}
    for name, seconds in limits.items():
        monkeypatch.setattr(module, name, seconds)

    return server


@pytest.mark.slow
def test_unresponsive_server_is_reported_and_given_up(hurried: Server) -> None:
    messages: list[str] = []
    database = Database(hurried.url, patience_s=0.5)
    database.say = messages.append
    hurried.freeze()
    try:
        began = time.monotonic()
        with pytest.raises(StorageError, match=r"was unreachable for 0\.5 s \(store\.patience_s\)"):
            database.run("SELECT 1")

        # Its connection is cut, and the next one waits up to `CONNECT_S`.
        assert time.monotonic() - began < 20
        assert len(messages) == 1
        assert messages[0].startswith(f"waiting for the store {hurried.url}: no answer for ")
    finally:
        hurried.thaw()

    time.sleep(module.REST_S)
    assert database.run("SELECT 1") == [(1,)]
    assert messages[1:] == [f"the store {hurried.url} is reachable again"]
    database.close()


def test_a_server_that_answers_again_is_waited_for(hurried: Server) -> None:
    database = Database(hurried.url, patience_s=60)
    hurried.freeze()
    thaw = threading.Timer(0.8, hurried.thaw)
    thaw.start()
    assert database.run("SELECT 1") == [(1,)]
    thaw.join()
    database.close()


def test_a_server_that_is_slow_at_the_start_is_waited_for(
    hurried: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = f"pg_advisory_lock({module._SETUP_LOCK})"
    holding = threading.Thread(target=hold_for_a_minute, args=[hurried, lock])
    holding.start()
    of_holder = "FROM pg_locks WHERE locktype = 'advisory' AND granted"
    while not hurried.ask(f"SELECT pid {of_holder}"):
        assert holding.is_alive()

    failures: list[str] = []

    def note(message: str) -> None:
        if not message.startswith("waiting for") or "no answer for" in message:
            return

        # The connection that runs the setup was cut after `ANSWER_S`, and setup is tried again.
        failures.append(message)
        if len(failures) == 2:
            hurried.ask(f"SELECT pg_terminate_backend(pid) {of_holder}")

    monkeypatch.setattr(module, "SAY_EVERY_S", 0)
    Database(hurried.url, patience_s=60, say=note).close()
    assert len(failures) >= 2
    holding.join()


def hold_for_a_minute(server: Server, lock: str) -> None:
    with suppress(subprocess.CalledProcessError):  # its connection is terminated
        server.ask(f"SELECT {lock}, pg_sleep(60)")


@pytest.mark.slow
def test_server_that_never_accepts_a_connection_is_refused(hurried: Server) -> None:
    hurried.freeze()
    try:
        with pytest.raises(UserError, match=r"can't be used: .*timeout"):
            Database(hurried.url, patience_s=60)
    finally:
        hurried.thaw()


def test_server_cancels_a_statement_that_takes_too_long(
    hurried: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STATEMENT_S", 0.2)
    monkeypatch.setattr(module, "ANSWER_S", 60)
    # On a slow machine, creating a table may take longer than that and is then tried again.
    database = Database(hurried.url, patience_s=60)
    database.patience_s = 0.1
    with pytest.raises(StorageError, match="statement timeout"):
        database.run("SELECT pg_sleep(30)")

    database.close()


def test_damaged_entries_are_dropped_and_reported(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PGUSER", "memeval")
    messages: list[str] = []
    database = Database(server.url, patience_s=5)
    cache = PostgresStore(database, tmp_path).cache("embeddings", messages.append)
    assert isinstance(cache, PostgresCache)
    cache.put_all({"a": b"1", "b": b"2", "c": b"3"}, "run")
    database.run("UPDATE memeval_entries SET value = 'xx' WHERE key <> 'c'")
    assert set(cache.get_all("abc")) == {"c"}
    assert cache.keys() == {"c"}
    cache.close()
    assert "had a damaged entry" in messages[0] and "had 2 damaged entries" in messages[1]
    database.close()


def test_lease_that_lapsed_while_the_server_was_unresponsive_is_kept(
    hurried: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.2)
    monkeypatch.setattr(leases, "LEASE_S", 0.0)
    monkeypatch.setattr(leases, "TAKE_OVER_S", 30.0)
    one, other = Database(hurried.url, patience_s=60), Database(hurried.url, patience_s=60)
    held, wanted = LeasedLocks(one, "claims"), LeasedLocks(other, "claims")
    assert held.acquire(7) and not wanted.acquire(7)

    # As if the server had been unresponsive for longer than a lease lasts.
    one.run(
        "UPDATE memeval_holders SET expires = now() - interval '1 second' WHERE holder = :one",
        {"one": one.holder},
    )
    assert not any(wanted.acquire(7) for _ in range(20))
    held.release(7)
    assert wanted.acquire(7)
    one.close()
    other.close()


def test_the_locks_of_a_dead_process_are_taken_over(
    hurried: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_S", 0.0)
    monkeypatch.setattr(leases, "TAKE_OVER_S", 0.2)
    database = Database(hurried.url, patience_s=60)
    database.run("INSERT INTO memeval_holders VALUES ('dead', now() - interval '1 second')")
    database.run("INSERT INTO memeval_locks VALUES ('claims', 7, 'dead')")
    wanted = LeasedLocks(database, "claims")
    assert not wanted.acquire(7), "its holder might still renew its lease"
    until = time.monotonic() + 20
    while not wanted.acquire(7):
        assert time.monotonic() < until

    database.close()


KEY = "7" * 64


@pytest.fixture
def database(hurried: Server) -> Iterator[Database]:
    database = Database(hurried.url, patience_s=60)
    yield database
    hurried.thaw()
    database.close()


def test_event_loop_keeps_running_while_the_server_is_unresponsive(
    hurried: Server, database: Database
) -> None:
    async def scene() -> None:
        asked = [
            asyncio.create_task(database.call(lambda: database.run("SELECT 1"))) for _ in range(20)
        ]
        # A blocked event loop would get here only after a request has ended.
        for _ in range(80):
            await asyncio.sleep(0.01)

        assert not any(task.done() for task in asked)
        hurried.thaw()
        assert await asyncio.gather(*asked) == [[(1,)]] * 20

    hurried.freeze()
    asyncio.run(scene())


def test_idle_connections_to_an_unreachable_server_are_closed(hurried: Server) -> None:
    database = Database(hurried.url, patience_s=60)
    assert database._engine.pool.checkedin() == 1
    database._away_since = time.monotonic()
    database.close()
    assert database._engine.pool.checkedin() == 0


def test_all_requests_waiting_for_a_server_share_one_patience(
    hurried: Server, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    database.say, database.patience_s = messages.append, 0.5

    async def scene() -> list[object]:
        asked = [database.call(lambda: database.run("SELECT 1")) for _ in range(30)]
        return await asyncio.gather(*asked, return_exceptions=True)

    hurried.freeze()
    began = time.monotonic()
    outcomes = asyncio.run(scene())
    assert {type(outcome) for outcome in outcomes} == {StorageError}
    # One request takes 0.4 s until it is cut, and the next connection attempt takes 3 s. One after
    # another they would take a minute and a half.
    assert time.monotonic() - began < 20
    assert len(messages) == 1
    hurried.thaw()
    # Allows slow answers from here on: the server is no longer considered unreachable.
    monkeypatch.setattr(module, "ANSWER_S", 60)
    time.sleep(module.REST_S)
    assert database.run("SELECT 1") == [(1,)]
    assert messages[-1] == f"the store {hurried.url} is reachable again"


def test_cancelled_request_releases_a_lease_that_it_was_taking(
    hurried: Server, database: Database
) -> None:
    other = Database(hurried.url, patience_s=60)
    ours, theirs = (RowLeases(one, PostgresStore(one, Path()).locks) for one in (database, other))

    async def scene() -> None:
        hurried.freeze()
        taking = asyncio.create_task(ours.acquire([KEY]))
        await asyncio.sleep(0.2)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking

        hurried.thaw()
        async with asyncio.timeout(30):
            while not await theirs.acquire([KEY]):  # noqa: ASYNC110 - a lease rings no bell
                await asyncio.sleep(0.05)

        assert await ours.acquire([KEY]) == set()

    asyncio.run(scene())
    other.close()


def test_request_cancelled_as_its_result_arrives_is_undone(database: Database) -> None:
    undone: list[int] = []

    async def scene() -> None:
        asked = asyncio.create_task(database.call(lambda: 7, undone.append))
        await asyncio.sleep(0)
        # The result waits for the event loop, which cancels the task before it can wake.
        database._jobs.join()
        asyncio.get_running_loop().call_soon(asked.cancel)
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(scene())
    database._jobs.join()
    assert undone == [7]


def test_rows_are_sent_in_the_background_in_order(hurried: Server, database: Database) -> None:
    rows = PostgresStore(database, Path()).rows(Path("answers/some.jsonl"))
    assert rows.acquire() and rows.read() == b""
    hurried.freeze()
    began = time.monotonic()
    for number in range(500):
        rows.append(b"%d\n" % number)

    # A blocking append would take as long as the patience.
    assert time.monotonic() - began < database.patience_s / 2
    hurried.thaw()
    rows.flush()
    assert rows.read() == b"".join(b"%d\n" % number for number in range(500))
    rows.release()


def test_rows_that_were_not_stored_are_reported_by_the_next_call(
    hurried: Server, database: Database
) -> None:
    rows = PostgresStore(database, Path()).rows(Path("answers/other.jsonl"))
    assert rows.acquire() and rows.read() == b""
    database.run("INSERT INTO memeval_rows VALUES ('answers/other.jsonl', 0, 'of another')")
    rows.append(b"ours\n")
    with pytest.raises(StorageError, match="another process appends to"):
        rows.flush()

    with pytest.raises(StorageError, match="another process appends to"):
        rows.append(b"ours\n")

    with pytest.raises(StorageError, match="another process"):
        rows.release()

    assert rows.acquire(), "its lock was given back nevertheless"
    with pytest.raises(StorageError):
        rows.release()


def test_a_forgotten_entry_is_gone_at_the_next_look(
    hurried: Server, database: Database, tmp_path: Path
) -> None:
    cache = PostgresStore(database, tmp_path).cache("responses", None)
    cache.put_all({KEY: b"useless"}, "run")
    hurried.freeze()
    began = time.monotonic()
    cache.forget(KEY)
    assert time.monotonic() - began < database.patience_s / 2
    hurried.thaw()
    assert not cache.get_all([KEY])


def test_replies_that_could_not_be_stored_are_kept_and_stored_later(
    hurried: Server, database: Database, tmp_path: Path
) -> None:
    store = PostgresStore(database, tmp_path)
    cache = store.cache("embeddings", None)
    # A server that is unreachable for longer than the patience raises the same error.
    database.run("ALTER TABLE memeval_entries RENAME TO away")
    cache.put_all({KEY: b"paid for"}, "run", {KEY: 7})
    database.run("ALTER TABLE away RENAME TO memeval_entries")
    cache.close()

    # The next command in this home stores it, and only then can another home find it.
    elsewhere = PostgresStore(database, tmp_path / "other").cache("embeddings", None)
    assert not elsewhere.get_all([KEY])
    expected = {KEY: CachedEntry(b"paid for", "run", 7)}
    with closing(store.cache("embeddings", None)) as again:
        assert again.get_all([KEY]) == expected == elsewhere.get_all([KEY])
