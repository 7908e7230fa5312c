"""The cache: shared by processes, and damage loses only the damaged entries."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from doubles.endpoint import Faults, ScriptedEndpoint

from memeval.config.schema import LlmConfig
from memeval.errors import ModelError, StorageError
from memeval.llm.cache import Cache, content_key
from memeval.llm.cache_contract import CachedEntry
from memeval.llm.cache_file import SELECT_ENTRIES, connect_to_read, describe
from memeval.llm.cached_call import CachedCalls
from memeval.llm.contract import ChatPrompt
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.llm.metering import Ledger, metered
from memeval.llm.openai import OpenAIModel, Sampling
from memeval.records import Role

PROMPT = ChatPrompt(({"role": "user", "content": "who?"},))


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with closing(Cache(tmp_path / "c.sqlite")) as opened:
        yield opened


def test_the_first_writer_of_a_key_wins(cache: Cache) -> None:
    cache.put_all({"k": b"1"}, "one")
    cache.put_all({"k": b"2"}, "two")
    assert cache.get_all(["k", "other"]) == {"k": CachedEntry(b"1", "one")}


def test_deleted_entry_can_be_written_again(cache: Cache) -> None:
    cache.put_all({"k": b"unsound"}, "one")
    for key in ("k", "new"):
        cache.delete(key)
    cache.put_all({"k": b"sound", "new": b"sound"}, "two")
    sound = CachedEntry(b"sound", "two")
    assert cache.get_all(["k", "new"]) == {"k": sound, "new": sound}


def test_file_that_is_not_a_database_is_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with closing(Cache(path)) as cache:
        cache.put_all({"k": b"1"}, "one")
        assert cache.get_all(["k"])

    assert list(tmp_path.glob("c.sqlite.damaged-*"))


def test_cache_that_another_program_locks_is_not_taken_for_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.sqlite"
    for module in ("cache", "cache_file"):
        monkeypatch.setattr(f"memeval.llm.{module}.WAIT_S", 0.01)

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE entries (key)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="database is locked"):
            Cache(path)

    assert not list(tmp_path.glob("c.sqlite.damaged-*"))


def test_fault_of_a_disk_with_free_space_is_not_called_a_full_disk(tmp_path: Path) -> None:
    fault = sqlite3.OperationalError("disk I/O error")
    fault.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert describe(fault, tmp_path / "c.sqlite").endswith("can't be used: disk I/O error")


def test_cache_that_cannot_be_created_raises_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cache"):
        Cache(tmp_path / "file" / "c.sqlite")


def test_cache_on_a_read_only_disk_is_read_without_new_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Cache(tmp_path / "c.sqlite")) as cache:
        cache.put_all({"k": b"1"}, "one")

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(os, "access", lambda *_: False)
    with closing(connect_to_read(tmp_path / "c.sqlite")) as connection:
        assert len(connection.execute(SELECT_ENTRIES).fetchall()) == 1
        assert sorted(tmp_path.iterdir()) == before


def test_processes_share_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    write = (
        "import sys; from memeval.llm.cache import Cache; from pathlib import Path\nc = "
        "Cache(Path(sys.argv[1]))\n"
    )
    write += "for i in range(200): c.put_all({f'{sys.argv[2]}-{i}': b'v'}, 'o')"
    workers = [
        subprocess.Popen([sys.executable, "-c", write, str(path), str(worker)])
        for worker in range(3)
    ]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    with closing(Cache(path)) as cache:
        keys = [f"{worker}-{i}" for worker in range(3) for i in range(200)]
        assert cache.get_all(keys).keys() == set(keys)


def test_content_key_depends_on_values_but_not_on_their_order() -> None:
    assert content_key({"a": 1, "b": "é"}) == content_key({"b": "é", "a": 1})
    assert content_key({"a": 1}) != content_key({"a": "1"})


def ask(
    server: ScriptedEndpoint,
    cache: Cache,
    *,
    origin: str = "run",
    seed: int = 0,
    scope: str = "q",
    temperature: float = 0.0,
) -> Ledger:
    async def once() -> Ledger:
        endpoint = Endpoint(EndpointSettings(server.base_url, "key", 2, 60.0, 0))
        model = OpenAIModel(
            endpoint,
            Sampling(LlmConfig(model="m", temperature=temperature, max_tokens=10)),
            cache,
            origin,
        )
        try:
            with metered(Ledger(scope=scope)) as ledger:
                ledger.usages.append(
                    (await model.complete(PROMPT, role=Role.ANSWER, seed=seed)).usage
                )
                return ledger
        finally:
            await endpoint.aclose()

    return asyncio.run(once())


def is_cached(ledger: Ledger) -> bool:
    return all(usage.cached for usage in ledger.usages)


def test_seed_scope_and_temperature_are_part_of_the_key(cache: Cache) -> None:
    with ScriptedEndpoint() as server:
        ask(server, cache)
        ask(server, cache)
        assert server.count() == 1
        for calls, change in enumerate(
            ({"seed": 1}, {"scope": "q2"}, {"temperature": 0.5}), start=2
        ):
            ask(server, cache, **change)  # type: ignore[arg-type]
            assert server.count() == calls


def test_reply_counts_as_cached_only_for_runs_that_did_not_pay_for_it(cache: Cache) -> None:
    with ScriptedEndpoint() as server:
        assert not is_cached(ask(server, cache, origin="one"))
        assert not is_cached(ask(server, cache, origin="one")), (
            "the same run, resumed after a crash"
        )
        assert is_cached(ask(server, cache, origin="two"))


def test_reply_of_which_a_filter_withheld_a_part_is_not_stored(cache: Cache) -> None:
    reply = {"role": "assistant", "content": "7 May", "finish_reason": "content_filter"}
    with ScriptedEndpoint(lambda body: reply) as server:
        for calls in (1, 2):
            ask(server, cache)
            assert server.count() == calls


def test_wait_for_a_reply_counts_only_for_the_run_that_paid_for_it(cache: Cache) -> None:
    async def call() -> dict[str, Any]:
        return {"wait_s": 2.0}

    waits = []
    for origin in ("one", "one", "two"):
        calls = CachedCalls(cache, origin, pytest.fail)
        with metered(Ledger(scope="q")) as ledger:
            asyncio.run(calls.once(content_key({}), read=json.loads, call=call))

        waits.append(ledger.wait_s)

    assert waits == [2.0, 2.0, 0.0]


def test_stored_reply_that_cannot_be_read_is_replaced_by_the_next(cache: Cache) -> None:
    key, replies = content_key({}), iter([{"wait_s": 2.0}])
    cache.put_all({key: b"{}"}, "one")

    async def call() -> dict[str, Any]:
        return next(replies)

    for _ in range(2):
        calls = CachedCalls(cache, "two", pytest.fail)
        asked = calls.once(key, read=lambda data: json.loads(data) or None, call=call)
        assert asyncio.run(asked) == ({"wait_s": 2.0}, False)


@pytest.mark.parametrize("kind", ["empty", "null", "no_choices", "malformed", "bad_request"])
def test_errors_and_empty_replies_are_never_stored(cache: Cache, kind: str) -> None:
    with ScriptedEndpoint(lambda body: "fine", faults=Faults({kind: 1.0})) as server:
        with pytest.raises(ModelError):
            ask(server, cache)
        server.faults = Faults()
        assert not is_cached(ask(server, cache))
        assert server.count() == 2


def test_usage_contains_the_tokens_that_the_provider_read_from_its_cache(tmp_path: Path) -> None:
    from memeval.llm.reply.chat import usage_of

    details = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    assert usage_of(details, [], "x")[0]["cached_tokens"] == 64
    deepseek = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 32}
    assert usage_of(deepseek, [], "x")[0]["cached_tokens"] == 32
    kimi = {"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 16}
    assert usage_of(kimi, [], "x")[0]["cached_tokens"] == 16
