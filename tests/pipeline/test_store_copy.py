"""`store copy` between the files of a home and a real PostgreSQL server."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest_pipeline import Command, records, without_times
from doubles.endpoint import ScriptedEndpoint
from filelock import FileLock
from postgres_server import PROGRAMS, Server

from memeval.results.store import sealed_line
from memeval.store.copying import Copying, missing_lines
from memeval.store.inventory import Copied, CopyDirection, Home, list_items
from memeval.store.postgres import leases
from memeval.store.postgres.database import Database
from memeval.store.postgres.store import PostgresStore

CELL = (
    "dataset=demo",
    "dataset.limit_questions=3",
    "dataset.limit_cases=1",
    "system=rag",
    "tracking=none",
    "llm=openai",
    "llm.model=gpt-4o-mini",
    "judge=llm",
    "embedder=openai",
)
needs_server = pytest.mark.skipif(
    not PROGRAMS or importlib.util.find_spec("psycopg") is None,
    reason="needs PostgreSQL's server (apt-get install postgresql) and psycopg",
)


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def server(running: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, with an empty database."""
    monkeypatch.setenv("PGUSER", "memeval")
    running.ask("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return running


def entries(home: Path) -> dict[str, list[tuple[object, ...]]]:
    """The entries of each cache of a home."""
    found = {}
    for path in (home / "data" / "cache").glob("*.sqlite"):
        with sqlite3.connect(path) as connection:
            statement = (
                "SELECT e.key, value, origin, crc, tokens FROM entries e "
                "JOIN seals s ON s.key = e.key ORDER BY e.key"
            )
            found[path.stem] = connection.execute(statement).fetchall()
        connection.close()

    return found


def home_with_rows(folder: Path) -> tuple[Home, str]:
    """A home with one file of rows, and the name of the file."""
    home = Home(folder / "outputs", folder / "prepared", folder / "cache")
    rows = home.outputs / "answers" / "0123456789abcdef.jsonl"
    rows.parent.mkdir(parents=True)
    header = {"answer": rows.stem}
    lines = [sealed_line(header, {"header": header}), sealed_line(header, {"id": "one"})]
    rows.write_bytes(b"".join(lines))
    return home, f"answers/{rows.name}"


def copy_to(database: Database, home: Home) -> Copied:
    """The result of copying the only file of a home."""
    store = PostgresStore(database, home.cache)
    copying = Copying(home, store, CopyDirection.TO_DATABASE, do_it=True, items=list_items(home))
    (copied,) = copying.run()
    database.close()
    return copied


def lines(home: Path) -> dict[str, set[bytes]]:
    """The lines of each file of rows and texts."""
    return {
        f"{path.parent.name}/{path.name}": set(path.read_bytes().splitlines())
        for path in (home / "outputs").glob("*/*.jsonl")
    }


@needs_server
def test_home_copied_to_a_database_and_back_is_unchanged(
    memeval: Command, tmp_path: Path, server: Server
) -> None:
    one, other, shared = (tmp_path / name for name in ("one", "other", "shared"))
    memories = ("--memories", f"file://{shared}")
    with ScriptedEndpoint() as endpoint:
        address = (f"llm.base_url={endpoint.base_url}", f"embedder.base_url={endpoint.base_url}")
        memeval(*CELL, *address, home=one)
        calls = endpoint.count()

        to = ("store", "copy", "--to", server.url, *memories)
        listed = memeval(*to, home=one).stdout
        assert "would copy" in listed and "to copy them, add --yes" in listed
        assert server.ask("SELECT count(*) FROM memeval_rows") == "0"
        assert "copied and compared" in memeval(*to, "--yes", home=one).stdout
        assert memeval(*to, "--yes", home=one).stdout.startswith("nothing to copy")

        back = ("store", "copy", "--from", server.url, *memories, "--yes")
        assert "copied and compared" in memeval(*back, home=other).stdout
        assert memeval(*back, home=other).stdout.startswith("nothing to copy")
        assert lines(other) == lines(one) and entries(other) == entries(one)
        assert set(entries(one)) == {"responses", "embeddings"}
        assert "problems: 0" in memeval("store", "verify", home=other).stdout

        memeval(*CELL, *address, home=other)
        memeval(*CELL, *address, f"store.url={server.url}", home=tmp_path / "third")
        assert endpoint.count() == calls

    assert without_times(records(one)) == without_times(records(other))


@pytest.mark.slow
@needs_server
def test_copy_skips_files_in_use_and_continues_later(
    memeval: Command, tmp_path: Path, server: Server
) -> None:
    memeval("dataset=demo", "dataset.limit_cases=3", "dataset.limit_questions=3", "tracking=none")
    to = ("store", "copy", "--to", server.url, "--yes")
    (verdicts,) = (tmp_path / "outputs" / "verdicts").glob("*.jsonl")
    with FileLock(f"{verdicts}.lock"):
        done = memeval(*to, check=False)

    assert done.returncode == 1 and "in use by a running process" in done.stdout
    assert "nothing to copy" not in done.stdout
    server.ask("DELETE FROM memeval_rows WHERE number > 3")
    server.ask("UPDATE memeval_rows SET line = line")
    again = memeval(*to).stdout
    assert "answers" in again and "verdicts" in again
    assert memeval(*to).stdout.startswith("nothing to copy")


@needs_server
def test_copy_takes_over_the_lock_of_a_killed_process(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_S", 0.0)
    monkeypatch.setattr(leases, "TAKE_OVER_S", 0.7)
    home, name = home_with_rows(tmp_path)
    database = Database(server.url, patience_s=60)
    database.run("INSERT INTO memeval_holders VALUES ('dead', now() - interval '1 second')")
    lock = {"name": f"rows-{name}"}
    database.run("INSERT INTO memeval_locks VALUES (:name, 0, 'dead')", lock)
    copied = copy_to(database, home)
    assert (copied.name, copied.new, copied.problem) == (name, 2, "")


@needs_server
def test_a_copy_that_cannot_be_read_back_is_reported(tmp_path: Path, server: Server) -> None:
    home, name = home_with_rows(tmp_path)
    database = Database(server.url, patience_s=60)
    body = "BEGIN NEW.line := ''x'' || NEW.line; RETURN NEW; END"
    database.run(f"CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS '{body}'")
    database.run(
        "CREATE TRIGGER spoil BEFORE INSERT ON memeval_rows FOR EACH ROW EXECUTE FUNCTION spoil()"
    )
    copied = copy_to(database, home)
    assert (copied.name, copied.problem) == (name, "the copy can't be read back")


@pytest.mark.slow
@needs_server
def test_path_in_a_database_name_is_never_written(
    memeval: Command, tmp_path: Path, server: Server
) -> None:
    memeval("store", "copy", "--to", server.url)
    server.ask("INSERT INTO memeval_rows VALUES ('../../outside.jsonl', 0, 'line')")
    server.ask("INSERT INTO memeval_entries VALUES ('../outside', 'k', 'v', 'o', 1, NULL)")
    done = memeval("store", "copy", "--from", server.url, "--yes")
    assert done.stdout.startswith("nothing to copy")
    assert not list(tmp_path.rglob("*outside*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "mysql://host/database"), "the store's URL must begin with postgresql://"),
        (("--to", "postgresql://user:secret@host/d"), "contains a user name or a password"),
        (("--from", "postgresql://127.0.0.1:1/none"), "can't be used"),
        (("--to", "postgresql://h/d", "--from", "postgresql://h/d"), "not allowed with"),
        ((), "one of the arguments --to --from is required"),
    ],
)
def test_invalid_copy_arguments_are_reported_in_one_line(
    memeval: Command, words: tuple[str, ...], message: str
) -> None:
    done = memeval("store", "copy", *words, check=False)
    assert done.returncode == 2 and message in done.stderr
    assert "Traceback" not in done.stderr and "secret" not in done.stderr


def test_a_target_keeps_its_own_rows() -> None:
    source = [b'{"header":{}}\n', b'{"id":"a","n":1}\n', b'{"id":"a","n":2}\n', b'{"id":"b"}\n']
    assert missing_lines(source, b"") == (source, 0)
    assert missing_lines(source, b"".join(source[:2])) == (source[2:], 2)
    assert missing_lines(source, b"".join(source)) == ([], 4)
    own = source[0] + b'{"id":"a","n":3}\n'
    assert missing_lines(source, own) == ([source[3]], 3)
