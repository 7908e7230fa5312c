"""A PostgreSQL server that accepts connections and never answers."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Iterator

import pytest
from postgres_server import PROGRAMS, Server

from memeval.errors import StorageError, UserError
from memeval.store.postgres import database as module
from memeval.store.postgres import locks
from memeval.store.postgres.cache import PostgresCache
from memeval.store.postgres.database import Database
from memeval.store.postgres.locks import LeasedLocks
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
    """Limits of tenths of seconds."""
    monkeypatch.setenv("PGUSER", "memeval")
    for name, seconds in (("SAY_S", 0.1), ("ANSWER_S", 0.4), ("LOOK_S", 0.05), ("CONNECT_S", 2)):
        monkeypatch.setattr(module, name, seconds)

    return server


def test_a_server_that_never_answers_is_said_and_given_up(hurried: Server) -> None:
    said: list[str] = []
    database = Database(hurried.url, patience_s=0.5)
    database.say = said.append
    hurried.freeze()
    try:
        began = time.monotonic()
        with pytest.raises(StorageError, match=r"was away for 0\.5 s \(store\.patience_s\)"):
            database.run("SELECT 1")

        # Its connection is cut, and the next one waits for `CONNECT_S` at most.
        assert time.monotonic() - began < 5
        assert len(said) == 1
        assert said[0].startswith(f"waiting for the store {hurried.url}: no answer for ")
    finally:
        hurried.thaw()

    assert database.run("SELECT 1") == [(1,)]
    assert said[1:] == [f"the store {hurried.url} is back"]
    database.close()


def test_a_server_that_answers_again_is_waited_for(hurried: Server) -> None:
    database = Database(hurried.url, patience_s=60)
    hurried.freeze()
    thaw = threading.Timer(0.8, hurried.thaw)
    thaw.start()
    assert database.run("SELECT 1") == [(1,)]
    thaw.join()
    database.close()


def test_a_server_that_never_lets_in_is_refused_at_once(hurried: Server) -> None:
    hurried.freeze()
    try:
        with pytest.raises(UserError, match=r"can't be used: .*timeout"):
            Database(hurried.url, patience_s=60)
    finally:
        hurried.thaw()


def test_the_server_gives_up_a_statement_that_takes_too_long(
    hurried: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STATEMENT_S", 0.2)
    monkeypatch.setattr(module, "ANSWER_S", 60)
    database = Database(hurried.url, patience_s=0.1)
    with pytest.raises(StorageError, match="statement timeout"):
        database.run("SELECT pg_sleep(30)")

    database.close()


def test_damaged_entries_are_dropped_and_said(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGUSER", "memeval")
    said: list[str] = []
    database = Database(server.url, patience_s=5)
    cache = PostgresStore(database).cache("embeddings", said.append)
    assert isinstance(cache, PostgresCache)
    cache.put_all({"a": b"1", "b": b"2", "c": b"3"}, "run")
    database.run("UPDATE memeval_entries SET value = 'xx' WHERE key <> 'c'")
    assert set(cache.get_all("abc")) == {"c"}
    assert list(cache.keys()) == ["c"]
    cache.close()
    assert "had a damaged entry" in said[0] and "had 2 damaged entries" in said[1]
    database.close()


def test_a_lease_that_lapsed_while_nobody_was_answered_is_not_taken_over(
    hurried: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.2)
    monkeypatch.setattr(locks, "LEASE_S", 0.0)
    monkeypatch.setattr(locks, "TAKE_OVER_S", 30.0)
    one, other = Database(hurried.url, patience_s=60), Database(hurried.url, patience_s=60)
    held, wanted = LeasedLocks(one, "claims"), LeasedLocks(other, "claims")
    assert held.take(7) and not wanted.take(7)

    # As if the server had answered nobody for longer than a lease lasts.
    one.run(
        "UPDATE memeval_holders SET expires = now() - interval '1 second' WHERE holder = :one",
        {"one": one.holder},
    )
    assert not any(wanted.take(7) for _ in range(20))
    held.give(7)
    assert wanted.take(7)
    one.close()
    other.close()


def test_the_locks_of_a_dead_process_are_taken_over(
    hurried: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LEASE_S", 0.0)
    monkeypatch.setattr(locks, "TAKE_OVER_S", 0.2)
    database = Database(hurried.url, patience_s=60)
    database.run("INSERT INTO memeval_holders VALUES ('dead', now() - interval '1 second')")
    database.run("INSERT INTO memeval_locks VALUES ('claims', 7, 'dead')")
    wanted = LeasedLocks(database, "claims")
    assert not wanted.take(7), "its holder might still renew its lease"
    until = time.monotonic() + 20
    while not wanted.take(7):
        assert time.monotonic() < until

    database.close()
