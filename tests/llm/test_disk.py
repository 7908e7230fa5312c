"""On a full disk no further call is sent, and lost replies are counted."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping
from pathlib import Path

import pytest
from doubles.endpoint import ScriptedEndpoint

from memeval.errors import StorageError
from memeval.llm.breaker import Breaker
from memeval.llm.cache import Cache
from memeval.llm.cached_call import CachedCalls
from memeval.llm.disk import RESERVE, Disk, free_bytes, is_about_disk
from memeval.llm.endpoint import Endpoint, EndpointSettings, as_object
from memeval.llm.in_flight import in_flight

PLACES = 4
CALLS = 60


class FullCache(Cache):
    """A cache on a disk that has room for ten replies."""

    room = 10

    def put_all(
        self, values: Mapping[str, bytes], origin: str, tokens: Mapping[str, int] | None = None
    ) -> None:
        if self.room < 1:
            raise StorageError("the cache can't be written: no space left on the disk")

        self.room -= 1
        super().put_all(values, origin, tokens)


def ask_all(address: str, cache: Cache, breaker: Breaker) -> None:
    """Runs two jobs that send different requests to one endpoint; both must end in a
    StorageError.
    """

    async def play() -> None:
        settings = EndpointSettings(address, "k", PLACES, timeout_s=5.0, patience_s=5.0)
        endpoint = Endpoint(settings, breaker=breaker)
        calls = CachedCalls(cache, "run", endpoint.lose_store)

        async def ask(key: str) -> dict[str, object]:
            await endpoint.post("/chat/completions", {"model": "m", "key": key}, as_object)
            return {"text": key, "latency_s": 0.0, "wait_s": 0.0}

        async def work(name: str) -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(CALLS // 2):
                    key = f"{name}{number}"
                    group.create_task(
                        calls.once(key, read=lambda _: None, call=lambda key=key: ask(key))  # type: ignore[misc]
                    )

        try:
            options = {address: "llm.base_url"}
            kept = [breaker.run(work(name), options, 20) for name in ("a", "b")]
            outcomes = await asyncio.gather(*kept, return_exceptions=True)
            for outcome in outcomes:
                error = outcome.exceptions[0] if isinstance(outcome, ExceptionGroup) else outcome
                assert isinstance(error, StorageError), outcome
        finally:
            await endpoint.aclose()
            cache.close()

    asyncio.run(play())


def test_after_a_reply_that_could_not_be_stored_no_call_is_sent(tmp_path: Path) -> None:
    before = in_flight.lost
    with ScriptedEndpoint(latency_s=0.01) as endpoint:
        ask_all(endpoint.base_url, FullCache(tmp_path / "c.sqlite"), Breaker())
        # Calls that were under way when the first reply could not be stored, or that had just been
        # given a slot: slots are passed on first.
        assert endpoint.count() <= FullCache.room + 2 * PLACES
        assert in_flight.lost - before == endpoint.count() - FullCache.room > 0


def test_work_ends_before_the_disk_is_full_and_loses_no_reply(tmp_path: Path) -> None:
    before, looks = in_flight.lost, iter([RESERVE] * 8 + [RESERVE - 1] * 999)
    times = iter(range(9999))
    disk = Disk((tmp_path,), lambda _: next(looks), lambda: next(times))
    with ScriptedEndpoint(latency_s=0.01) as endpoint:
        cache = FullCache(tmp_path / "c.sqlite")
        ask_all(endpoint.base_url, cache, Breaker(disk))
        assert endpoint.count() == 8

    assert in_flight.lost == before
    assert cache.room == FullCache.room - 8, "all replies were stored"


def test_check_of_a_nearly_full_disk_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(
        StorageError, match=rf"only 1\.0 MiB are free in {tmp_path}, but storing replies needs 8"
    ):
        Disk((tmp_path,), lambda _: 2**20).check()

    # Other processes write to the same disk.
    free = pytest.approx(free_bytes(tmp_path), rel=0.01)
    assert free_bytes(tmp_path) > RESERVE
    assert free_bytes(tmp_path / "not" / "made" / "yet") == free


@pytest.mark.parametrize(
    ("number", "is_about"), [(errno.ENOSPC, True), (errno.EFBIG, True), (errno.EACCES, False)]
)
def test_only_a_full_disk_or_file_size_limit_is_about_the_disk(number: int, is_about: bool) -> None:
    error = StorageError("x")
    error.__cause__ = OSError(number, "x")
    assert is_about_disk(error) is is_about
