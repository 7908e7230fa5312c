"""A memory behind HTTP: the documented examples, what is sent, and faults of services."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import pytest
import yaml
from served_examples import (
    EXAMPLES,
    QUESTION,
    ScriptedMemory,
    Under,
    asked,
    example_server,
    started,
)

from memeval.config.settings import read_settings
from memeval.errors import MemoryServiceError, ModelError, UserError
from memeval.llm.in_flight import in_flight
from memeval.records import Answer, Query, Role
from memeval.systems.base import MORE_THAN_ASKED, TRIED_AGAIN, MemorySystem, SystemContext
from memeval.systems.external import remote, wire
from memeval.systems.external.http import HttpMemory, HttpSettings
from memeval.systems.external.served import (
    USAGE_UNKNOWN,
    WITHOUT_IDS,
    WITHOUT_TEXT,
    namespace_of,
)
from memeval.testing.contract import MemorySystemContract
from memeval.testing.sample import sample_case
from memeval.testing.under_test import SystemUnderTest, play

SCHEMAS = EXAMPLES.parent / "http_memory.openapi.yaml"


class Served(Under):
    """A service with the given settings, driven as the checks do it."""

    def __init__(self, address: str, **settings: Any) -> None:
        self.settings = read_settings(
            HttpSettings, {"base_url": address, "max_retries": 0, "patience_s": 0, **settings}
        )

    def build(self, parts: SystemContext) -> MemorySystem:
        return HttpMemory(self.settings, parts, sleep=no_sleep)


async def no_sleep(seconds: float) -> None:
    """Returns without waiting."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedMemory]:
    monkeypatch.setattr(remote, "_answered", set())  # a port may be used again
    with ScriptedMemory() as serving:
        yield serving


@pytest.fixture(scope="module")
def in_python() -> Iterator[str]:
    with example_server() as address:
        yield address


@pytest.fixture(scope="module")
def in_typescript(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    script = tmp_path_factory.mktemp("node") / "memory_server.mjs"
    shutil.copy(EXAMPLES / "memory_server.ts", script)
    with started("node", str(script), "0") as address:
        yield address


class TestExampleInPython(MemorySystemContract):
    @pytest.fixture(autouse=True)
    def serve(self, in_python: str) -> None:
        self.served = Served(in_python)

    def build(self, parts: SystemContext) -> MemorySystem:
        return self.served.build(parts)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
class TestExampleInTypeScript(MemorySystemContract):
    @pytest.fixture(autouse=True)
    def serve(self, in_typescript: str) -> None:
        self.served = Served(in_typescript)

    def build(self, parts: SystemContext) -> MemorySystem:
        return self.served.build(parts)


@pytest.mark.slow
def test_python_example_starts_as_documented() -> None:
    with started(sys.executable, str(EXAMPLES / "memory_server.py"), "0") as address:
        answer, _ = asked(Served(address))
    assert "cedar" in answer.retrieved[0].text  # type: ignore[index]


# Requests and replies fit the published schemas


@cache
def validator(name: str) -> Any:
    document = yaml.safe_load(SCHEMAS.read_text(encoding="utf-8"))
    schema = {**document, "$ref": f"#/components/schemas/{name}"}
    return jsonschema.Draft202012Validator(schema)


def test_requests_match_the_published_schemas(service: ScriptedMemory) -> None:
    asked(Served(service.address))
    asked(Served(service.address, answers=True))
    for operation in ("reset", "ingest", "ready", "search", "answer"):
        bodies = service.sent(operation)
        assert bodies, operation
        for body in bodies:
            validator(f"{operation.title()}Request").validate(body)

    assert "sample" not in json.dumps(service.sent("search")), "no id of the data is in it"


REPLIES: list[tuple[str, Any, str | None]] = [
    ("search", {"results": []}, None),
    ("search", {"results": [], "usage": None, "more": 1}, None),
    ("search", {"results": [{"text": "x", "turn_ids": [], "score": 1, "time": None}]}, None),
    ("search", {"results": [{"text": "x", "turn_ids": None}]}, None),
    ("search", {}, "object missing required field `results`"),
    ("search", {"results": {}}, "results: expected `array`, got `object`"),
    ("search", {"results": ["x"]}, "results[0]: expected `object`, got `str`"),
    (
        "search",
        {"results": [{"turn_ids": []}]},
        "results[0]: object missing required field `text`",
    ),
    (
        "search",
        {"results": [{"text": "x" * 10_000_000}]},
        "results[0].text: expected `str` of length <= 1000000",
    ),
    (
        "search",
        {"results": [{"text": "x", "turn_ids": "s1:1"}]},
        "turn_ids: expected `array | null`",
    ),
    (
        "search",
        {"results": [{"text": "x", "turn_ids": [5]}]},
        "turn_ids[0]: expected `str`, got `int`",
    ),
    ("search", {"results": [{"text": "x", "score": "high"}]}, "score: expected `float | null`"),
    (
        "search",
        {"results": [], "usage": {"prompt_tokens": -1}},
        "usage.prompt_tokens: expected `int` >= 0",
    ),
    ("search", {"results": [], "usage": [7]}, "usage[0]: expected `object`, got `int`"),
    (
        "search",
        {"results": [], "usage": {"kind": "magic"}},
        "usage.kind: invalid enum value 'magic'",
    ),
    ("ready", {"ready": True}, None),
    ("ready", {"ready": "yes"}, "ready: expected `bool`, got `str`"),
    ("ready", {}, "object missing required field `ready`"),
    ("ingest", {"lost": 0}, None),
    ("ingest", {"lost": -1}, "lost: expected `int` >= 0"),
    ("answer", {"text": "cedar"}, None),
    ("answer", {"results": []}, "object missing required field `text`"),
]


@pytest.mark.parametrize(("operation", "reply", "message"), REPLIES)
def test_reply_is_accepted_iff_it_matches_the_schema(
    service: ScriptedMemory, operation: str, reply: Any, message: str | None
) -> None:
    assert validator(f"{operation.title()}Reply").is_valid(reply) is (message is None)
    service.change[operation] = lambda body, usual: reply
    served = Served(service.address, answers=operation == "answer")
    if message is None:
        assert asked(served)[0].text
        return

    with pytest.raises(ModelError) as raised:
        asked(served)
    assert message in str(raised.value)
    assert (
        f"the memory service at {service.address} sent a reply that does not match the schema"
        in str(raised.value)
    )
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"text": "x", "turn_ids": ["s9:9"]},
            "names 's9:9', which memeval did not send for this case",
        ),
        (
            {"text": "x", "time": "yesterday"},
            "results[0].time: Invalid isoformat string: 'yesterday'",
        ),
        ({"text": "x", "score": 10**400}, "results[0].score: number out of range"),
    ],
)
def test_constraints_beyond_the_schema_are_checked(
    service: ScriptedMemory, row: dict[str, Any], message: str
) -> None:
    service.change["search"] = lambda body, usual: {"results": [row]}
    with pytest.raises(ModelError, match="does not match the schema") as raised:
        asked(Served(service.address))
    assert message in str(raised.value)


# How replies are used


def test_texts_without_turn_ids_are_shown_but_have_no_ranking(service: ScriptedMemory) -> None:
    service.change["search"] = lambda body, usual: {"results": [{"text": "Kayaks, from cedar."}]}
    answer, ledger = asked(Served(service.address))
    assert answer.retrieved is not None and answer.retrieved[0].turn_ids == ()
    assert answer.ranking is None
    assert "1 of 1 results have no turn_ids" in ledger.remarks[WITHOUT_IDS]


def test_results_beyond_the_requested_number_are_cut_and_noted(service: ScriptedMemory) -> None:
    rows = [{"text": f"text {number}", "turn_ids": []} for number in range(30)]
    service.change["search"] = lambda body, usual: {"results": rows, "usage": []}
    answer, ledger = asked(Served(service.address))
    assert len(answer.retrieved or ()) == 3 and len(answer.ranking or ()) == 20
    assert "30 results, but was asked for 20" in ledger.remarks[MORE_THAN_ASKED]


def test_usage_is_as_reported_and_otherwise_unknown(service: ScriptedMemory) -> None:
    paid = {"model": "m", "provider": "openai", "prompt_tokens": 7, "completion_tokens": 2}
    vectors = {"kind": "embed", "model": "e", "prompt_tokens": 5, "completion_tokens": 0}
    service.change["ingest"] = lambda body, usual: {"usage": [paid, vectors]}
    service.change["search"] = lambda body, usual: {"results": usual["results"]}
    _, ledger = asked(Served(service.address))
    counted = [(one.role, one.model, one.prompt_tokens) for one in ledger.usages]
    assert counted[:3] == [
        (Role.INGEST, "m", 7),
        (Role.EMBED, "e", 5),
        (Role.ANSWER, "unknown", None),
    ]
    assert USAGE_UNKNOWN in ledger.remarks


def test_chunks_are_sent_in_batches_and_in_order(service: ScriptedMemory) -> None:
    asked(Served(service.address, batch_size=5))
    batches = [body["chunks"] for body in service.sent("ingest")]
    assert [len(batch) for batch in batches] == [5, 5, 2]
    sent = [chunk["id"] for batch in batches for chunk in batch]
    assert len(set(sent)) == 12
    assert "cedar" in batches[1][1]["content"], "in the order of the conversation"


def test_ids_are_unique_across_cases_and_mapped_back(
    service: ScriptedMemory,
) -> None:
    async def fill(sut: SystemUnderTest) -> None:
        for case_id in ("first", "second"):
            system = await sut.fill_system(case=sample_case(case_id))
            answers.append(await sut.ask(system, QUESTION))

    answers: list[Answer] = []
    asyncio.run(play(fill, Served(service.address)))
    assert [answer.ranking[0] for answer in answers if answer.ranking] == [("s2:3",)] * 2
    chunks = [chunk for body in service.sent("ingest") for chunk in body["chunks"]]
    for name, count in (("id", 24), ("session_id", 6)):
        assert len({chunk[name] for chunk in chunks}) == count, name
    assert len({turn for chunk in chunks for turn in chunk["turn_ids"]}) == 24


@pytest.mark.parametrize("with_ids", [True, False])
def test_a_result_of_another_case_fails_the_question(
    service: ScriptedMemory, with_ids: bool
) -> None:
    kept: list[dict[str, Any]] = []

    def store(body: Any, usual: Any) -> Any:
        kept.extend(body["chunks"])
        return {}

    def find_first(body: Any, usual: Any) -> Any:
        row = {"text": kept[0]["text"]}
        return {"results": [{**row, "turn_ids": kept[0]["turn_ids"]} if with_ids else row]}

    service.change |= {"ingest": store, "search": find_first}

    async def fill(sut: SystemUnderTest) -> None:
        first = await sut.fill_system(case=sample_case("first", ("s1",)))
        second = await sut.fill_system(case=sample_case("second", ("s2",)))
        assert (await sut.ask(first, QUESTION)).retrieved, "its own"
        with pytest.raises(MemoryServiceError) as raised:
            await sut.ask(second, QUESTION)

        messages.append(str(raised.value))

    messages: list[str] = []
    asyncio.run(play(fill, Served(service.address)))
    expected = (
        "which memeval did not send for this case" if with_ids else "does not keep cases separate"
    )
    assert expected in messages[0]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("No results found.", {}),
        ("There are no memories matching 'cedar'", {}),
        ("Ask me something else", {"no_results": "^Ask me"}),
    ],
)
def test_message_that_nothing_was_found_is_not_a_result(
    service: ScriptedMemory, text: str, settings: dict[str, Any]
) -> None:
    service.change["search"] = lambda body, usual: {"results": [{"text": text}], "usage": []}
    answer, ledger = asked(Served(service.address, **settings))
    assert answer.retrieved == () and answer.ranking == ()
    assert ledger.remarks == {}


def test_a_result_without_text_is_left_out_and_noted(service: ScriptedMemory) -> None:
    """Its turns would count as found, though the reader gets nothing of them."""

    def change(body: Any, usual: Any) -> Any:
        results = usual["results"]
        return {**usual, "results": [{**results[0], "text": " "}, *results[1:]]}

    service.change["search"] = change
    answer, ledger = asked(Served(service.address))
    assert answer.retrieved and all(chunk.text.strip() for chunk in answer.retrieved)
    shown = tuple(chunk.turn_ids for chunk in answer.retrieved)
    assert answer.ranking is not None and answer.ranking[: len(shown)] == shown
    assert "1 of " in ledger.remarks[WITHOUT_TEXT]


def test_an_error_sent_as_a_result_fails_the_question(service: ScriptedMemory) -> None:
    service.change["search"] = lambda body, usual: {"results": [{"text": "Error: index locked"}]}
    with pytest.raises(MemoryServiceError, match="sent an error as a result: Error: index locked"):
        asked(Served(service.address))


def test_chunks_sent_twice_are_stored_once(service: ScriptedMemory) -> None:
    usual = service.operate

    def twice(operation: str, body: dict[str, Any]) -> Any:
        if operation == "ingest":
            usual(operation, body)

        return usual(operation, body)

    service.operate = twice
    answer, _ = asked(Served(service.address))
    ranking = answer.ranking or ()
    assert len(ranking) == len(set(ranking)) == 12


def test_search_waits_until_the_service_is_ready(service: ScriptedMemory) -> None:
    states = iter([False, False, True])
    service.change["ready"] = lambda body, usual: {"ready": next(states)}
    asked(Served(service.address))
    assert len(service.sent("ready")) == 3
    service.change["ready"] = lambda body, usual: {"ready": False}
    with pytest.raises(ModelError, match=r"was not ready within 1 s \(system.ready_timeout_s\)"):
        asked(Served(service.address, ready_timeout_s=1))


def test_a_service_that_is_not_ready_has_not_failed() -> None:
    assert not wire.read_ready({"ready": False, "ok": False, "error": None})
    with pytest.raises(wire.WireError, match="it reports an error: disk full"):
        wire.read_ready({"ready": False, "error": "disk full"})


def test_losses_that_a_service_reports_are_counted(service: ScriptedMemory) -> None:
    service.change["ingest"] = lambda body, usual: {"lost": 1}
    healths: list[Any] = []

    async def fill(sut: SystemUnderTest) -> None:
        healths.append((await sut.fill_system()).system.health())

    asyncio.run(play(fill, Served(service.address, batch_size=4)))
    assert (healths[0].asked, healths[0].stored, healths[0].lost) == (12, 9, 3)


def test_answer_of_an_answering_service_is_used(service: ScriptedMemory) -> None:
    answer, _ = asked(Served(service.address, answers=True))
    assert "cedar" in answer.text and answer.ranking
    assert len(answer.retrieved or ()) <= 3 and answer.context_tokens
    assert not service.sent("search")
    assert read_settings(HttpSettings, {"answers": True}).own_prompt


def test_case_is_reset_at_its_end_unless_forget_is_false(service: ScriptedMemory) -> None:
    asked(Served(service.address))
    assert len(service.sent("reset")) == 2
    asked(Served(service.address, forget=False))
    assert len(service.sent("reset")) == 3


def test_case_is_reset_at_its_end_after_ctrl_c_too(
    service: ScriptedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupt(sut: SystemUnderTest) -> None:
        await sut.fill_system()
        monkeypatch.setattr(in_flight, "closing", True)

    asyncio.run(play(interrupt, Served(service.address)))
    assert len(service.sent("reset")) == 2


def test_namespace_is_unique_and_contains_no_case_id() -> None:
    def named(case_id: str, seed: int, origin: str) -> str:
        return namespace_of(
            SystemContext(None, None, None, 3, seed, case_id, None, {"origin": origin})  # type: ignore[arg-type]
        )

    names = [named(*one) for one in (("Ann", 0, "k"), ("Bob", 0, "k"), ("Ann", 1, "k"))]
    assert len({*names, named("Ann", 0, "other")}) == 4
    assert not any("Ann" in name for name in names)


# Faults


def test_transient_failure_is_retried_and_noted(service: ScriptedMemory) -> None:
    service.failures = [("POST", "/search", 429), ("POST", "/ingest", 503)]
    _, ledger = asked(Served(service.address, max_retries=4, patience_s=30))
    assert "repeated after: HTTP" in ledger.remarks[TRIED_AGAIN]


class SlowMemory(ScriptedMemory):
    """The example server, with the number of requests that it gets at once, and the connections
    that they come over.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open = self.most = 0
        self.writers: set[Any] = set()

    async def respond(self, request: Any, writer: Any) -> bool:
        self.open += 1
        self.most = max(self.most, self.open)
        self.writers.add(writer)
        await asyncio.sleep(0.01)
        self.open -= 1
        return await super().respond(request, writer)


def test_cases_share_the_limit_on_requests_and_the_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "_answered", set())

    async def fill_five(sut: SystemUnderTest) -> None:
        await asyncio.gather(*(sut.fill_system() for _ in range(5)))

    with SlowMemory() as service:
        asyncio.run(play(fill_five, Served(service.address, max_concurrency=2)))

    assert service.most == 2
    assert len(service.writers) == 2


@pytest.mark.parametrize("status", [400, 401, 500])
def test_refusal_names_url_path_and_status(service: ScriptedMemory, status: int) -> None:
    service.failures = [("POST", "/search", status)]
    with pytest.raises(ModelError) as raised:
        asked(Served(service.address))
    message = str(raised.value)
    assert message.startswith(f"the memory service at {service.address} failed at /search: HTTP")
    assert str(status) in message and f"scripted {status}" in message


@pytest.mark.parametrize("said", [{"error": "disk full"}, {"error": True}, {"success": False}])
@pytest.mark.parametrize("operation", ["reset", "ingest", "ready", "search"])
def test_reply_with_status_200_that_reports_a_failure_is_one(
    service: ScriptedMemory, operation: str, said: dict[str, Any]
) -> None:
    service.change[operation] = lambda body, usual: usual | said
    with pytest.raises(ModelError, match=r"it reports an? "):
        asked(Served(service.address))


def test_ingest_that_is_too_large_names_the_setting(service: ScriptedMemory) -> None:
    service.failures = [("POST", "/ingest", 413)]
    with pytest.raises(ModelError, match=r"HTTP 413.*; use a smaller system\.batch_size, or gra"):
        asked(Served(service.address))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"<html><body>Hello</body></html>", "an HTML page instead of JSON"),
        (b"[]", "not a JSON object"),
        (b"", "the reply is empty"),
        (b"{" * 100_000, "not JSON"),
    ],
)
def test_non_json_reply_is_reported(service: ScriptedMemory, raw: bytes, message: str) -> None:
    service.raw["search"] = raw
    with pytest.raises(ModelError, match=message):
        asked(Served(service.address))


@pytest.mark.parametrize("raw", [b"<html><body>Hello</body></html>", b""])
def test_html_or_empty_reply_with_status_200_is_not_retried(
    service: ScriptedMemory, raw: bytes
) -> None:
    service.raw["search"] = raw
    with pytest.raises(ModelError, match=r"failed at /search: the reply is (an HTML page|empty)"):
        asked(Served(service.address, max_retries=9, patience_s=600))
    assert len(service.sent("search")) == 1


def test_service_that_never_answered_is_a_user_error(service: ScriptedMemory) -> None:
    service.raw["reset"] = b"<!doctype html>"
    with pytest.raises(UserError, match="an HTML page instead of JSON"):
        asked(Served(service.address, max_retries=0))


def test_refused_key_at_the_first_request_leads_to_the_headers(service: ScriptedMemory) -> None:
    service.failures = [("POST", "/reset", 401)]
    with pytest.raises(UserError, match="HTTP 401, the key was refused") as raised:
        asked(Served(service.address))
    assert "system.headers=..." in raised.value.hints[0]


def test_refused_connection_is_reported_without_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_answered", set())
    with ScriptedMemory() as gone:
        address = gone.address
    with pytest.raises(UserError, match="can't be reached: connection refused") as raised:
        asked(Served(address, max_retries=9, patience_s=600))
    assert raised.value.hints == ("Is the server running, and is the URL correct?",)


def test_behind_a_proxy_the_host_name_is_left_to_the_proxy(
    service: ScriptedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", service.address)
    answer, _ = asked(Served("http://memory.invalid"))
    assert answer.retrieved


def test_secrets_are_read_from_the_environment(
    service: ScriptedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_MEMORY_KEY", "Bearer kept-out-of-files")
    asked(Served(service.address, headers={"Authorization": "MY_MEMORY_KEY"}))
    assert {request.headers["authorization"] for request in service.requests} == {
        "Bearer kept-out-of-files"
    }
    with pytest.raises(UserError, match="environment variable NOT_THERE is not set"):
        asked(Served(service.address, headers={"X-Key": "NOT_THERE"}))
    asked(Served(service.address))
    assert "authorization" not in service.requests[-1].headers


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_url": None}, "needs the URL of a memory service"),
        ({"base_url": "localhost"}, "system.base_url"),
        ({"base_url": "http://me:secret-word@host"}, "contains a user name or a password"),
        ({"search_path": "search"}, "system.search_path must be a path such as /search"),
        ({"headers": {"X-Key": "s3cr3t-value-9a8b7c6d5e"}}, "name of an environment variable"),
        ({"batch_size": 0}, "system.batch_size must be above 0, not 0"),
        ({"request_timeout_s": 0}, "system.request_timeout_s must be above 0, not 0"),
    ],
)
def test_mistakes_in_settings_are_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        given = read_settings(HttpSettings, {"base_url": "http://localhost:1", **settings})
        HttpMemory.resolve_settings(given, has_language_model=False)
    assert message in raised.value.message
    assert "secret-word" not in raised.value.message and "s3cr3t" not in raised.value.message


def test_answer_request_has_choices_and_instruction(service: ScriptedMemory) -> None:
    kept: list[Any] = []

    async def ask(sut: SystemUnderTest) -> None:
        memory = await sut.fill_system()
        kept.append(
            await memory.system.answer(
                Query("Which one?", choices=("red", "blue"), instruction="Pick.")
            )  # type: ignore[misc]
        )

    asyncio.run(play(ask, Served(service.address, answers=True)))
    (body,) = service.sent("answer")
    assert body["choices"] == [{"label": "0", "text": "red"}, {"label": "1", "text": "blue"}]
    assert (body["instruction"], body["multi_select"], body["top_k"]) == ("Pick.", False, 3)
