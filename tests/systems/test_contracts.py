"""Services that implement the contracts of other benchmarks, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from doubles.contracts import AddSearchResetDouble, ContractDouble, LeaderboardDouble
from served_examples import QUESTION, Under, asked

from memeval.config.settings import read_settings
from memeval.errors import MemevalError, MemoryServiceError, UserError
from memeval.systems.base import TRIED_AGAIN, MemorySystem, SystemContext
from memeval.systems.external import remote
from memeval.systems.external.http import HttpMemory, HttpSettings
from memeval.testing.contract import MemorySystemContract
from memeval.testing.sample import sample_chunks
from memeval.testing.under_test import SystemUnderTest, play

DOUBLES: dict[str, type[ContractDouble]] = {
    "aml": LeaderboardDouble,
    "add_search_reset": AddSearchResetDouble,
}


class Speaking(Under):
    """A service with a contract, driven as the checks do it."""

    def __init__(self, address: str, contract: str, **settings: Any) -> None:
        given = {"base_url": address, "contract": contract, "max_retries": 0, "patience_s": 0}
        self.settings = read_settings(HttpSettings, given | settings)

    def build(self, parts: SystemContext) -> MemorySystem:
        return HttpMemory(self.settings, parts)


@pytest.fixture
def aml(monkeypatch: pytest.MonkeyPatch) -> Iterator[LeaderboardDouble]:
    monkeypatch.setattr(remote, "_answered", set())  # a port may be used again
    with LeaderboardDouble() as serving:
        yield serving


@pytest.fixture
def beliefs(monkeypatch: pytest.MonkeyPatch) -> Iterator[AddSearchResetDouble]:
    monkeypatch.setattr(remote, "_answered", set())
    with AddSearchResetDouble() as serving:
        yield serving


class TestLeaderboard(MemorySystemContract):
    @pytest.fixture(autouse=True)
    def serve(self, aml: LeaderboardDouble) -> None:
        self.served = Speaking(aml.address, "aml")

    def build(self, parts: SystemContext) -> MemorySystem:
        return self.served.build(parts)


class TestAddSearchReset(MemorySystemContract):
    @pytest.fixture(autouse=True)
    def serve(self, beliefs: AddSearchResetDouble) -> None:
        self.served = Speaking(beliefs.address, "add_search_reset")

    def build(self, parts: SystemContext) -> MemorySystem:
        return self.served.build(parts)


def bodies(service: ContractDouble, path: str) -> list[dict[str, Any]]:
    return [request.json() for request in service.requests if request.path == path]


def test_aml_receives_messages_per_session_after_its_health_check(
    aml: LeaderboardDouble,
) -> None:
    answer, ledger = asked(Speaking(aml.address, "aml"))
    assert (aml.requests[0].method, aml.requests[0].path) == ("GET", "/health")
    added = bodies(aml, "/add")
    assert [len(body["messages"]) for body in added] == [4, 4, 4]
    assert len({body["session_id"] for body in added}) == 3
    assert len({body["request_id"] for body in added}) == 3
    assert added[0]["messages"][0] == {
        "role": "user",
        "content": "Ilse: I adopted a greyhound called Quill last weekend.",
        "timestamp": "2021-03-04T09:30:00",
    }
    (search,) = bodies(aml, "/search")
    assert search == {"query": QUESTION, "user_id": added[0]["user_id"], "top_k": 20}
    assert answer.retrieved is not None and answer.ranking is not None
    first = answer.retrieved[0]
    assert first.text.startswith("[8:05 pm on 18 June 2021] Tomas: Kayaks, from cedar.")
    assert first.turn_ids == ("s2:3",), "by quotation: the id is the service's own"
    assert len(answer.ranking) == 12
    assert "turn_ids" not in str(ledger.remarks)


def test_a_session_that_is_imported_again_is_stored_again(aml: LeaderboardDouble) -> None:
    """The service drops a request whose id it has seen."""

    async def import_twice(sut: SystemUnderTest) -> None:
        memory = await sut.fill_system()
        for chunk in sample_chunks():
            await memory.call("ingest", chunk)

        await memory.call("consolidate")

    asyncio.run(play(import_twice, Speaking(aml.address, "aml")))
    [stored] = aml.users.values()
    texts = [item["text"] for item in stored]
    assert len(texts) == 24 and texts[:12] == texts[12:]


def test_request_that_is_too_large_names_the_setting(
    aml: LeaderboardDouble, beliefs: AddSearchResetDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubles = [
        (aml, "aml", "a smaller system.batch_size"),
        (beliefs, "add_search_reset", "granularity=turn"),
    ]
    for double, contract, setting in doubles:
        monkeypatch.setattr(double, "add", lambda body: (413, {"detail": "too large"}))
        with pytest.raises(MemevalError, match=rf"HTTP 413: too large; use {setting}"):
            asked(Speaking(double.address, contract))


def test_times_of_the_services_own_clock_are_ignored(
    aml: LeaderboardDouble,
) -> None:
    aml.clock = "2026-08-01T00:00:00Z"
    answer, _ = asked(Speaking(aml.address, "aml"))
    assert answer.retrieved is not None
    assert answer.retrieved[0].time is None
    assert answer.retrieved[0].text.startswith("Tomas: Kayaks")


def test_repeated_request_stores_nothing_twice(aml: LeaderboardDouble) -> None:
    first = aml.add

    def lost_reply(body: dict[str, Any]) -> Any:
        aml.add = first  # type: ignore[method-assign]
        first(body)
        return 503, {"detail": "the reply was lost"}

    aml.add = lost_reply  # type: ignore[method-assign]
    answer, ledger = asked(Speaking(aml.address, "aml", max_retries=2, patience_s=5))
    assert [len(stored) for stored in aml.users.values()] == [12]
    assert answer.ranking is not None and len(answer.ranking) == 12
    assert TRIED_AGAIN not in ledger.remarks or "503" in ledger.remarks[TRIED_AGAIN]


def test_memevals_ids_in_results_are_mapped_to_turns(beliefs: AddSearchResetDouble) -> None:
    answer, _ = asked(Speaking(beliefs.address, "add_search_reset"))
    added = bodies(beliefs, "/add")
    assert len({body["metadata"]["beliefId"] for body in added}) == len(added) == 12
    assert added[0]["text"].startswith("[9:30 am on 4 March 2021] Ilse: I adopted")
    assert answer.retrieved is not None and answer.retrieved[0].turn_ids == ("s2:3",)
    assert beliefs.count("DELETE", "/reset") == 0, "it empties the memories of all users"


def test_result_without_an_id_is_matched_by_quotation(beliefs: AddSearchResetDouble) -> None:
    said = "He promised the first one to Bertil."
    quoted = "Kayaks, from cedar. The first one is promised to my neighbour Bertil."
    rows = [{"id": "x", "memory": text, "score": None} for text in (said, quoted)]
    beliefs.search = lambda body: (200, {"results": rows})  # type: ignore[method-assign]
    answer, _ = asked(Speaking(beliefs.address, "add_search_reset"))
    assert answer.ranking == ((), ("s2:3",))


@pytest.mark.parametrize("header", ["bearer", "x-api-key"])
@pytest.mark.parametrize("contract", DOUBLES)
def test_key_is_sent_in_the_configured_header(
    contract: str, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-42-of-this-test")
    by_header = {"api_key_env": "MY_KEY"}
    if header == "x-api-key":
        by_header = {"headers": {"X-Api-Key": "MY_KEY"}}  # type: ignore[dict-item]

    with DOUBLES[contract]("sk-42-of-this-test") as service:
        answer, _ = asked(Speaking(service.address, contract, **by_header))
        assert answer.retrieved
        with pytest.raises(MemevalError, match="401"):
            asked(Speaking(service.address, contract))


def reply(**members: Any) -> Callable[[dict[str, Any]], Any]:
    """A reply to an add request, with these members changed."""
    return lambda body: (200, {"success": True, **body, **members})


@pytest.mark.parametrize(
    ("contract", "operation", "answered", "message"),
    [
        ("aml", "add", reply(success=False), "success must be true, but is false"),
        (
            "aml",
            "add",
            reply(success=False, error="quota"),
            "success must be true, but is false: quota",
        ),
        ("aml", "add", reply(request_id="other"), 'request_id must be "add-'),
        ("aml", "search", lambda body: (200, {}), "object missing required field `data`"),
        (
            "aml",
            "search",
            lambda body: (200, {"data": [7]}),
            "data[0]: expected `object`, got `int`",
        ),
        (
            "aml",
            "search",
            lambda body: (200, {"data": [{"content": 5}]}),
            "data[0].content: expected `str`, got `int`",
        ),
        (
            "aml",
            "search",
            lambda body: (200, {"data": [{"content": "x", "score": "high"}]}),
            "data[0].score: expected `float | null`, got `str`",
        ),
        ("add_search_reset", "add", lambda body: (200, {}), "ok must be true, but is null"),
        (
            "add_search_reset",
            "search",
            lambda body: (200, {"results": [{"text": "x"}]}),
            "results[0]: object missing required field `memory`",
        ),
    ],
)
def test_invalid_reply_names_the_member(
    contract: str, operation: str, answered: Any, message: str
) -> None:
    with DOUBLES[contract]() as service:
        setattr(service, operation, answered)
        with pytest.raises(MemoryServiceError) as raised:
            asked(Speaking(service.address, contract))

    named = (
        f"the memory service at {service.address} sent a reply that does not match the schema: "
        f"{message}"
    )
    assert str(raised.value).startswith(named) and "\n" not in str(raised.value)


def test_failed_health_check_is_a_user_error(aml: LeaderboardDouble) -> None:
    aml.health = lambda body: (200, {"ok": False})  # type: ignore[method-assign]
    with pytest.raises(UserError, match=r'GET /health must return 200 \{"ok": true\}, but: 200'):
        asked(Speaking(aml.address, "aml"))
    assert bodies(aml, "/add") == []


def test_a_health_check_that_is_cut_off_is_told_in_plain_words(aml: LeaderboardDouble) -> None:
    aml.health = lambda body: 1 / 0  # type: ignore[method-assign]
    with pytest.raises(UserError, match=r'\{"ok": true\}, but: connection '):
        asked(Speaking(aml.address, "aml"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"contract": "amll"}, "Did you mean: aml"),
        ({"contract": "aml", "answers": True}, "system.answers is only for"),
        ({"contract": "aml", "search_path": "/find"}, "system.search_path is only for"),
        ({"contract": "aml", "api_key_env": "NOT_SET_HERE"}, "NOT_SET_HERE is not set"),
    ],
)
def test_mistakes_in_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        given = read_settings(HttpSettings, {"base_url": "http://127.0.0.1:9", **settings})
        HttpMemory.resolve_settings(given, has_language_model=False)


@pytest.mark.parametrize(
    "said",
    [
        {"error": "index not ready"},
        {"error": {"code": 7}},
        {"success": False},
        {"ok": False, "error": None},
    ],
)
@pytest.mark.parametrize("contract", DOUBLES)
def test_failed_search_is_not_an_empty_result(
    contract: str, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_answered", set())
    with DOUBLES[contract]() as service:
        service.search = lambda body: (200, {"data": [], "results": [], **said})  # type: ignore[method-assign]
        with pytest.raises(MemoryServiceError, match=r"it reports an? "):
            asked(Speaking(service.address, contract))


@pytest.mark.parametrize("name", ["add", "search"])
@pytest.mark.parametrize("contract", DOUBLES)
def test_request_accepted_for_later_is_an_error(
    contract: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_answered", set())
    with DOUBLES[contract]() as service:
        done = getattr(service, name)
        monkeypatch.setattr(service, name, lambda body: (202, done(body)[1]))
        with pytest.raises(MemevalError, match=f"/{name}: HTTP 202: the request was only"):
            asked(Speaking(service.address, contract, max_retries=2))

        assert service.count("POST", f"/{name}") == 1
