"""mem0's hosted API, through mem0's own client, against a double on loopback."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.mem0 import Mem0Double

import memeval
from memeval.cli.plan_text import call_lines
from memeval.errors import ModelError, UserError
from memeval.llm.metering import Ledger, metered
from memeval.pipeline.open.called import check_budget
from memeval.pipeline.open.opening import open_cell
from memeval.records import (
    Answer,
    CorrectRequest,
    ForgetRequest,
    Query,
    Role,
    Usage,
    format_time,
)
from memeval.runs.cell import run_alone
from memeval.runs.compose.config import compose_config
from memeval.systems.base import MemorySystem, SystemContext
from memeval.systems.external import mem0_cloud, remote
from memeval.systems.external.mem0 import Mem0, Mem0Settings
from memeval.systems.external.mem0_cloud import (
    FIRST_POLL_S,
    LONGEST_S,
    SLOWEST_POLL_S,
    TRIES,
    CloudMemory,
)
from memeval.systems.external.mem0_library import prepare_import
from memeval.testing.contract import MemorySystemContract

from .conftest import DATES, Builder, Driver, conversation

QUESTION = Query("Where does Clara play the violin?")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mem0Double]:
    monkeypatch.setenv("MEM0_API_KEY", "m0-key")
    monkeypatch.setattr(remote, "_answered", set())  # a port may be used again
    with Mem0Double(polls=0) as double:
        yield double
        join_discards()


def waits_of(waits: list[float], host: Mem0Double) -> CloudMemory:
    prepare_import()
    return CloudMemory(host.address, host.key, "case", waits.append)


def let_go(driver: Driver) -> None:
    """Closes the system, and waits until its data is deleted."""
    driver.system.close()
    join_discards()


def join_discards() -> None:
    for thread in threading.enumerate():
        if thread.name == "memeval-discard":
            thread.join()


def test_chunks_come_back_with_their_turns_and_dates(host: Mem0Double, build: Builder) -> None:
    driver = build("mem0", mode="cloud", host=host.address, top_k=2)
    driver.remember(conversation())
    answer = driver.ask(QUESTION)
    assert answer.retrieved is not None
    assert answer.retrieved[0].text == conversation()[3].text
    assert answer.retrieved[0].turn_ids == ("D1:4",)
    assert len(answer.retrieved) == 2
    assert answer.ranking is not None
    assert len(answer.ranking) >= 2


def test_requests_have_the_date_of_the_turn(host: Mem0Double, build: Builder) -> None:
    driver = build("mem0", mode="cloud", host=host.address)
    driver.remember([conversation()[0], replace(conversation()[5], time=None)])
    dated, undated = (request.json() for request in host.requests if request.path.endswith("/add/"))
    assert dated["timestamp"] == 1683554160
    assert json.loads(dated["metadata"]["turn_ids"]) == ["D1:1"]
    assert dated["metadata"]["date"] == DATES[0].isoformat()
    assert dated["infer"] is False
    assert "timestamp" not in undated
    assert undated["metadata"]["date"] == ""


def test_extracted_memories_show_the_date_of_their_chunk(host: Mem0Double, build: Builder) -> None:
    driver = build("mem0", mode="cloud", host=host.address, infer=True, top_k=1)
    driver.remember(conversation())
    retrieved = driver.ask(QUESTION).retrieved or ()
    assert retrieved[0].text == f"[{format_time(DATES[0])}] {conversation()[3].text.upper()}"


def test_extracting_requests_are_sent_one_after_another(host: Mem0Double, build: Builder) -> None:
    driver = build("mem0", mode="cloud", host=host.address, infer=True)
    driver.remember(conversation()[:3])
    assert [request.path.split("/")[2] for request in host.requests[1:]] == [
        "memories",
        "event",
    ] * 3


def test_cloud_mode_needs_no_model() -> None:
    hosted = Mem0Settings(mode="cloud", infer=True)
    assert not Mem0.needs_language_model(hosted)
    assert not Mem0.uses_llm_at_ingest(hosted)
    assert Mem0.needs_language_model(Mem0Settings(infer=True))


def test_answer_notes_that_usage_is_unknown(host: Mem0Double, build: Builder) -> None:
    driver = build("mem0", mode="cloud", host=host.address)
    for chunk in conversation():
        driver.call("ingest", chunk)

    async def metered_answer() -> tuple[Answer, list[Usage]]:
        with metered(Ledger()) as ledger:
            await asyncio.to_thread(driver.system.consolidate)
            return await driver.system.answer(QUESTION), ledger.usages

    answer, usages = asyncio.run(metered_answer())
    assert answer.notes == {"mem0_mode": "cloud", "mem0_usage": "not reported by the host"}
    assert [(usage.role, usage.calls) for usage in usages] == [(Role.INGEST, 9), (Role.EMBED, 1)]
    assert {(usage.prompt_tokens, usage.completion_tokens) for usage in usages} == {(None, None)}


def test_two_runs_of_one_case_are_isolated(host: Mem0Double, build: Builder) -> None:
    drivers = [build("mem0", mode="cloud", host=host.address, case_id="conv 26") for _ in range(2)]
    drivers[0].remember(conversation()[:5])
    drivers[1].remember(conversation()[5:])
    assert len(host.users) == 2
    found = [driver.ask(Query("the bakery")).retrieved or () for driver in drivers]
    sessions = [{turn[:3] for chunk in chunks for turn in chunk.turn_ids} for chunks in found]
    assert "D2:" not in sessions[0] and "D2:" in sessions[1]


def test_concurrent_questions_are_answered_as_if_alone(host: Mem0Double, build: Builder) -> None:
    driver = build("mem0", mode="cloud", host=host.address)
    driver.remember(conversation())
    queries = [QUESTION, Query("bakery"), Query("")]
    assert driver.ask_at_once(queries * 3) == [driver.ask(query) for query in queries] * 3


def test_memories_are_deleted_when_the_case_is_done(host: Mem0Double, build: Builder) -> None:
    driver = build("mem0", mode="cloud", host=host.address)
    driver.remember(conversation())
    assert host.users
    let_go(driver)
    assert host.users == []
    assert host.count("DELETE", "/v1/memories/") == 1


def test_memories_are_deleted_when_the_ingest_fails(host: Mem0Double, build: Builder) -> None:
    host.failing = True
    driver = build("mem0", mode="cloud", host=host.address)
    with pytest.raises(ModelError, match="mem0 failed to add a memory"):
        driver.remember(conversation())
    let_go(driver)
    assert host.users == []


def test_memories_that_cannot_be_deleted_are_named(
    host: Mem0Double, build: Builder, caplog: pytest.LogCaptureFixture
) -> None:
    driver = build("mem0", mode="cloud", host=host.address)
    driver.remember(conversation()[:1])
    (user,) = host.users
    host.failures = [("DELETE", "/v1/memories/", 403)]
    let_go(driver)
    assert f"mem0 user {user} at {host.address} could not be deleted" in caplog.text


def test_forgotten_memories_are_deleted_at_the_host(
    host: Mem0Double, build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mem0_cloud, "PAGE_SIZE", 2)
    driver = build("mem0", mode="cloud", host=host.address, infer=False)
    driver.remember(conversation())
    request = ForgetRequest(words="Forget the puppy.", about="puppy Biscuit")
    assert [driver.call("forget", request), driver.call("forget", request)] == [1, 0]
    change = CorrectRequest(words="Not Norway, Iceland.", old="Norway", new="Iceland")
    assert driver.call("correct", change) == 2

    (rows,) = host.memories.values()
    texts = " ".join(row["memory"] for row in rows)
    assert "puppy" not in texts and "Norway" not in texts
    assert len(rows) == len(conversation()) - 1
    found = driver.call("probe", Query("Iceland"), 5)
    assert [unit.turn_ids for unit in found] == [("D1:2",), ("D1:3",)]


def test_cloud_memory_cannot_be_saved(host: Mem0Double, build: Builder, folder: Path) -> None:
    driver = build("mem0", mode="cloud", host=host.address)
    driver.remember(conversation()[:1])
    with pytest.raises(NotImplementedError):
        driver.call("save", folder)


def test_empty_conversation_has_an_empty_answer(host: Mem0Double, build: Builder) -> None:
    driver = build("mem0", mode="cloud", host=host.address)
    driver.remember([])
    assert driver.ask(QUESTION).text == ""


def test_missing_key_is_named(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEM0_API_KEY", raising=False)
    with pytest.raises(
        UserError,
        match=r"needs a key for https://api\.mem0\.ai: "
        r"the environment variable MEM0_API_KEY is not set",
    ):
        build("mem0", mode="cloud")


def test_refused_key_is_a_user_error(
    host: Mem0Double, build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEM0_API_KEY", "another")
    driver = build("mem0", mode="cloud", host=host.address)
    with pytest.raises(UserError, match="refused the key"):
        driver.remember(conversation()[:1])


def test_unreachable_host_is_a_user_error(build: Builder) -> None:
    driver = build("mem0", mode="cloud", host="http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"no answer from mem0's API at http://127\.0\.0\.1:9"):
        driver.remember(conversation()[:1])


def test_failing_search_is_a_model_error(host: Mem0Double, build: Builder) -> None:
    driver = build("mem0", mode="cloud", host=host.address)
    driver.remember(conversation()[:1])
    host.failures = [("POST", "/search/", 400)]
    with pytest.raises(ModelError, match="HTTP_400"):
        driver.ask(QUESTION)


def test_events_are_polled_with_growing_pauses(host: Mem0Double) -> None:
    waits: list[float] = []
    host.polls = 7
    memory = waits_of(waits, host)
    memory.add(conversation()[:1], infer=False)
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert max(waits) == SLOWEST_POLL_S
    memory.close()


def test_an_event_that_never_ends_is_given_up(host: Mem0Double) -> None:
    waits: list[float] = []
    host.polls = 10_000
    memory = waits_of(waits, host)
    with pytest.raises(ModelError, match="has not added a memory within 600 s"):
        memory.add(conversation()[:1], infer=False)
    assert LONGEST_S <= sum(waits) <= LONGEST_S + SLOWEST_POLL_S
    memory.close()


@pytest.mark.parametrize("status", [429, 503])
def test_transient_failure_is_retried(host: Mem0Double, status: int) -> None:
    waits: list[float] = []
    host.failures = [("POST", "/add/", status)] * 2 + [("GET", "/event/", status)]
    memory = waits_of(waits, host)
    memory.add(conversation()[:2], infer=False)
    assert len(waits) == 3
    assert len(host.memories[memory.user]) == 2
    memory.close()


def test_plan_sends_no_request_and_a_budget_is_refused(
    host: Mem0Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    words = [
        *("dataset=demo", "dataset.limit_cases=1", "dataset.limit_questions=1", "tracking=none"),
        *("system=mem0", "system.mode=cloud", f"system.host={host.address}"),
        *("llm=openai", "llm.model=gpt-4o-mini", "llm.base_url=http://localhost:9"),
    ]
    planned = memeval.plan(*words).estimate
    uncounted = "the calls of system=mem0 are not counted: its own server makes them"
    assert uncounted in planned.basis and planned.usd is None
    assert list(call_lines(planned)) == ["cost unknown"]
    with pytest.raises(UserError, match=f"at an unknown cost \\({uncounted}\\): confirm_above"):
        run_alone(open_cell(compose_config([*words, "confirm_above_usd=5"]), ""))
    assert host.requests == []
    with pytest.raises(UserError, match="a budget can't be enforced with system=mem0"):
        check_budget(open_cell(compose_config([*words, "budget.calls=5"]), ""))


@pytest.mark.parametrize(("header", "waited"), [("-5", 0.0), ("2", 2.0), ("86400", 600.0)])
def test_retry_after_is_respected_within_limits(
    host: Mem0Double, header: str, waited: float
) -> None:
    waits: list[float] = []
    host.failures, host.retry_after = [("POST", "/add/", 429)], header
    memory = waits_of(waits, host)
    memory.add(conversation()[:1], infer=False)
    assert waits == [waited]
    memory.close()


def test_persistent_failure_is_given_up(host: Mem0Double) -> None:
    waits: list[float] = []
    host.failures = [("POST", "/add/", 503)] * TRIES
    memory = waits_of(waits, host)
    with pytest.raises(ModelError, match="HTTP_503"):
        memory.add(conversation()[:1], infer=False)
    assert waits == [FIRST_POLL_S * 2**attempt for attempt in range(TRIES - 1)]
    memory.close()


class TestMem0CloudContract(MemorySystemContract):
    """The conformance suite, against the double."""

    @pytest.fixture(autouse=True)
    def served(self, host: Mem0Double) -> Iterator[None]:
        self.address = host.address
        self.built: list[MemorySystem] = []
        yield
        for system in self.built:
            system.close()
        join_discards()
        assert host.users == []

    def build(self, parts: SystemContext) -> MemorySystem:
        self.built.append(Mem0(Mem0Settings(mode="cloud", host=self.address), parts))
        return self.built[-1]
