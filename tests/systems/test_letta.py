"""Letta through its own client: against a double on loopback, and against a real server if
LETTA_BASE_URL is set or the recipe's server is installed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from doubles.letta import DATE, LettaDouble
from doubles.loopback import Events

from memeval.config.settings import read_settings
from memeval.errors import ModelError, UserError
from memeval.llm.metering import Ledger, metered
from memeval.records import CorrectRequest, ForgetRequest, Query, Retrieved, Role, Usage
from memeval.systems.base import ANSWER, INGEST, RUNTIME, MemorySystem, SystemContext
from memeval.systems.external import remote
from memeval.systems.external.letta import Letta, LettaSettings
from memeval.systems.external.letta_reply import hits_of
from memeval.systems.external.letta_server import TRIES, Agent
from memeval.testing.contract import MemorySystemContract

from .conftest import Builder, Driver, conversation

QUESTION = Query("Where does Clara play the violinist?")
ROOT = Path(__file__).parents[2]
REAL = os.environ.get("LETTA_BASE_URL")
RECIPE_PYTHON = ROOT / ".venv-letta" / "bin" / "python"


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_answered", set())  # a port may be used again


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LettaDouble]:
    monkeypatch.delenv("LETTA_API_KEY", raising=False)
    with LettaDouble() as double:
        monkeypatch.setenv("LETTA_BASE_URL", double.address)
        yield double
        join_discards()


def join_discards() -> None:
    for thread in threading.enumerate():
        if thread.name == "memeval-discard":
            thread.join()


def let_go(driver: Driver) -> None:
    driver.system.close()
    join_discards()


def remembering(build: Builder, agent_model: str = LettaSettings.model, **settings: Any) -> Driver:
    driver = build("letta", **settings)
    driver.system.settings = replace(driver.system.settings, model=agent_model)
    driver.remember(conversation())
    return driver


def metered_by(work: Callable[[], Awaitable[Any]]) -> tuple[Any, list[Usage]]:
    """The result of an asynchronous call, and the usage that it reported."""

    async def inside() -> tuple[Any, list[Usage]]:
        with metered(Ledger()) as ledger:
            return await work(), ledger.usages

    return asyncio.run(inside())


def test_searches_of_the_agent_are_reported_as_retrieved(
    server: LettaDouble, build: Builder
) -> None:
    answer = remembering(build, top_k=2).ask(QUESTION)
    assert answer.retrieved is not None
    assert answer.retrieved[0].text == conversation()[3].text
    assert answer.retrieved[0].turn_ids == ("D1:4",)
    assert answer.retrieved[0].score is None  # the server reports none
    assert len(answer.retrieved) == 2
    assert answer.ranking == tuple(unit.turn_ids for unit in answer.retrieved)
    assert answer.text == " | ".join(unit.text for unit in answer.retrieved)
    assert answer.context_tokens
    assert answer.notes == {"letta_calls": "not cached: the server makes them"}


def test_agent_can_only_search_its_archive(server: LettaDouble, build: Builder) -> None:
    remembering(build, top_k=7, agent_model="letta/letta-free", embedding="letta/other")
    (agent,) = server.agents.values()
    assert (agent["model"], agent["embedding"]) == ("letta/letta-free", "letta/other")
    assert (agent["tools"], agent["include_base_tools"]) == (["archival_memory_search"], False)
    assert agent["memory_blocks"][0]["read_only"] is True
    assert "top_k=7" in agent["memory_blocks"][0]["value"]
    assert agent["name"].startswith("memeval-conv-26-")


def test_passages_are_dated_by_the_conversation(server: LettaDouble, build: Builder) -> None:
    driver = build("letta")
    driver.remember([*conversation()[:1], replace(conversation()[5], time=None)])
    dated, undated = next(iter(server.archives.values()))
    assert datetime.fromisoformat(dated["created_at"]) == datetime.fromisoformat(
        "2023-05-08T13:56:00+00:00"
    )
    assert dated["text"] == conversation()[0].text
    assert undated["created_at"] == DATE  # the server's clock


def test_question_states_when_it_is_asked(server: LettaDouble, build: Builder) -> None:
    driver = remembering(build)
    driver.ask(Query("Who sings?", datetime(2023, 7, 1, 12, 0)))
    (sent,) = (request.json() for request in server.requests if request.path.endswith("/messages"))
    assert sent["messages"] == [
        {"role": "user", "content": "The question is asked at 12:00 pm on 1 July 2023.\nWho sings?"}
    ]


def test_choices_are_shown_with_labels(server: LettaDouble, build: Builder) -> None:
    driver = remembering(build)
    driver.ask(Query("Who sings?", choices=("Ann", "Bob")))
    (sent,) = (request.json() for request in server.requests if request.path.endswith("/messages"))
    assert (
        sent["messages"][0]["content"]
        == "Who sings?\n0. Ann\n1. Bob\nReply with the label of the right choice alone."
    )


def test_questions_do_not_leak_into_each_other(server: LettaDouble, build: Builder) -> None:
    driver = remembering(build)
    alone = [driver.ask(query) for query in (QUESTION, Query("bakery"))]
    assert [driver.ask(query) for query in (Query("bakery"), QUESTION)] == alone[::-1]
    assert all("earlier:" not in answer.text for answer in alone)
    assert server.conversations == {}
    assert server.count("POST", "/messages") == 4
    assert (
        len({request.path for request in server.requests if request.path.endswith("/messages")})
        == 4
    )


def test_concurrent_questions_are_answered_as_if_alone(server: LettaDouble, build: Builder) -> None:
    driver = remembering(build)
    queries = [QUESTION, Query("bakery"), Query("Bye")]
    assert driver.ask_at_once(queries * 5) == [driver.ask(query) for query in queries] * 5


def test_two_cases_do_not_mix_and_a_reset_forgets(server: LettaDouble, build: Builder) -> None:
    first, second = build("letta", case_id="a"), build("letta", case_id="b")
    first.remember(conversation()[:5])
    second.remember(conversation()[5:])
    assert "bakery" not in first.ask(Query("the bakery")).text
    second.remember(conversation()[:5])
    join_discards()
    assert "bakery" not in second.ask(Query("the bakery")).text
    assert len(server.agents) == len(server.archives) == 2


def test_identical_texts_are_distinguished_by_order(server: LettaDouble, build: Builder) -> None:
    chunks = [replace(chunk, content="Bob: Bye!", time=None) for chunk in conversation()[:3]]
    driver = build("letta", top_k=3)
    driver.remember(chunks)
    assert driver.ask(Query("Bye")).ranking == (("D1:1",), ("D1:2",), ("D1:3",))


def test_a_text_that_is_too_long_for_the_archive_is_stored_in_parts(
    server: LettaDouble, build: Builder
) -> None:
    long = replace(conversation()[0], content="Ann: " + "long ago " * 8000 + "a zebra", time=None)
    driver = build("letta", top_k=1)
    driver.remember([long])
    (parts,) = server.archives.values()
    assert "".join(part["text"] for part in parts) == long.text
    assert len(parts) == 4
    assert driver.ask(Query("the zebra")).ranking == (("D1:1",),)


def test_forgotten_passages_are_deleted_on_the_server(server: LettaDouble, build: Builder) -> None:
    driver = remembering(build)
    request = ForgetRequest(words="Forget the puppy.", about="puppy Biscuit")
    assert [driver.call("forget", request), driver.call("forget", request)] == [1, 0]
    change = CorrectRequest(words="Not Norway, Iceland.", old="Norway", new="Iceland")
    assert driver.call("correct", change) == 2

    (passages,) = server.archives.values()
    texts = " ".join(passage["text"] for passage in passages)
    assert "puppy" not in texts and "Norway" not in texts
    found = driver.call("probe", Query("Iceland"), 5)
    assert [unit.turn_ids for unit in found] == [("D1:2",), ("D1:3",)]
    moved = [passage for passage in passages if "Iceland" in passage["text"]]
    assert {passage["created_at"][:10] for passage in moved} == {"2023-05-08"}

    # Later chunks go into the same archive.
    driver.call("ingest", replace(conversation()[0], content="Ann: a zebra"))
    driver.call("consolidate")
    assert len(server.agents) == 1
    assert "puppy" not in driver.ask(Query("Who is Biscuit the puppy?")).text
    assert "zebra" in driver.ask(Query("zebra")).text


def test_memory_block_is_dumped() -> None:
    context = SimpleNamespace(top_k=4, case_id="case")
    settings = LettaSettings(base_url="http://127.0.0.1:9", persona="I look up {top_k}.")
    (block,) = Letta(settings, context).dump()  # type: ignore[arg-type]
    assert block == {"kind": "block", "label": "persona", "text": "I look up 4."}


def hit(text: str, score: float | None = None) -> Retrieved:
    return Retrieved(text=text, turn_ids=(), score=score)


def test_chunk_found_by_two_searches_counts_once() -> None:
    system = Letta(LettaSettings(base_url="http://127.0.0.1:9"), None)  # type: ignore[arg-type]
    for chunk in conversation():
        system.ingest(chunk)
    text, other = conversation()[3].text, conversation()[0].text
    units = system._match_hits(
        [hit(text, 0.5), hit(other), hit(text, 0.4), hit("unheard of"), hit("unheard of")]
    )
    assert [unit.turn_ids for unit in units] == [("D1:4",), ("D1:1",), ()]


def test_chunk_cut_by_the_server_is_still_recognised(server: LettaDouble, build: Builder) -> None:
    server.tool_return = lambda rows: str(
        [{**row, "content": row["content"][30:60]} for row in rows]
    )
    answer = remembering(build, top_k=1).ask(QUESTION)
    assert answer.ranking == (("D1:4",),)


def test_search_that_found_nothing_is_an_empty_result(server: LettaDouble, build: Builder) -> None:
    answer = remembering(build).ask(Query("zzz"))
    assert answer.retrieved == ()
    assert answer.text == "The conversation does not mention it."


def test_unreadable_search_result_leaves_retrieval_unknown(
    server: LettaDouble, build: Builder
) -> None:
    server.tool_return = lambda rows: str(rows)[:60] + "... [NOTE: function output was truncated]"
    answer = remembering(build).ask(QUESTION)
    assert answer.retrieved is None
    assert answer.ranking is None
    assert answer.context_tokens is None
    assert "letta_retrieved" in answer.notes


ROW = {"timestamp": DATE, "content": 'it\'s "so"', "tags": []}


@pytest.mark.parametrize(
    "returned",
    [
        str([ROW]),
        json.dumps([ROW]),
        json.dumps({"status": "OK", "message": str([ROW]), "time": DATE}),
        json.dumps({"message": "Showing 1 results:", "results": [ROW]}),
        str(([ROW], 1)),
    ],
)
def test_search_results_of_all_letta_releases_are_read(returned: str) -> None:
    assert hits_of(returned) == [hit('it\'s "so"')]


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("[]", []),
        ("None", []),
        ("no", None),
        ("", None),
        ("[{'text': 'x'}]", None),
        ("7", None),
        ("()", None),
    ],
)
def test_search_results_without_passages_are_empty_or_unknown(returned: str, expected: Any) -> None:
    assert hits_of(returned) == expected


def test_usage_is_reported_and_embeddings_are_estimated(
    server: LettaDouble, build: Builder
) -> None:
    driver = build("letta")
    system = driver.system
    for chunk in conversation():
        system.ingest(chunk)

    _, (embedded,) = metered_by(lambda: asyncio.to_thread(system.consolidate))
    _, (said, searched) = metered_by(lambda: system.answer(QUESTION))
    assert (embedded.role, embedded.model, embedded.provider) == (
        Role.EMBED,
        "text-embedding-3-small",
        "openai",
    )
    assert (embedded.calls, embedded.estimated) == (9, True)
    assert (said.role, said.model, said.provider, said.estimated) == (
        Role.ANSWER,
        "gpt-4o-mini",
        "openai",
        False,
    )
    assert (said.prompt_tokens, said.completion_tokens, said.cached_tokens, said.calls) == (
        100,
        10,
        40,
        2,
    )
    assert (searched.role, searched.calls, searched.estimated) == (Role.EMBED, 1, True)


def test_unreported_usage_stays_unknown(server: LettaDouble, build: Builder) -> None:
    driver = remembering(build)
    server.events = Events(
        [
            {
                "message_type": "assistant_message",
                "id": "m",
                "date": DATE,
                "content": [{"type": "text", "text": "in Lisbon"}],
            }
        ]
    )
    answer, usages = metered_by(lambda: driver.system.answer(QUESTION))
    assert answer.text == "in Lisbon"
    assert answer.retrieved == ()
    assert usages[0].prompt_tokens is None


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            [
                {
                    "message_type": "error_message",
                    "error_type": "llm_error",
                    "message": "no credit",
                    "run_id": "r",
                }
            ],
            "the Letta server failed: no credit",
        ),
        (
            [{"message_type": "stop_reason", "stop_reason": "max_steps"}],
            r"did not answer \(stop_reason: max_steps\)",
        ),
        (
            [{"message_type": "assistant_message", "id": "m", "date": DATE, "content": " "}],
            "did not answer",
        ),
        ([], "did not answer"),
    ],
)
def test_missing_answer_fails_the_question(
    server: LettaDouble, build: Builder, events: list[dict[str, Any]], message: str
) -> None:
    driver = remembering(build)
    server.events = Events(events)
    with pytest.raises(ModelError, match=message):
        driver.ask(QUESTION)
    assert server.conversations == {}


@pytest.mark.parametrize("status", [429, 502, 503])
def test_transient_failure_is_retried_in_a_new_conversation(
    server: LettaDouble, build: Builder, status: int
) -> None:
    driver = remembering(build)
    server.failures = [("POST", "/messages", status)] * 2
    assert "earlier:" not in driver.ask(QUESTION).text
    assert server.count("POST", "/v1/conversations/") - server.count("POST", "/messages") == 3
    assert server.conversations == {}


def test_persistent_failure_is_given_up(server: LettaDouble) -> None:
    waits: list[float] = []
    agent = Agent(server.address, None, waits.append)
    agent.create("case", "a/b", "c/d", "I answer.")
    agent.remember([])
    server.failures = [("POST", "/messages", 503)] * TRIES
    with pytest.raises(ModelError, match=f"HTTP 503: scripted 503 .tried {TRIES} times"):
        agent.ask("hello")
    assert waits == [0.0] * (TRIES - 1)
    server.failures = [("POST", "/messages", 400)]
    with pytest.raises(ModelError, match="HTTP 400"):
        agent.ask("hello")
    assert len(waits) == TRIES - 1
    agent.close()


@pytest.mark.parametrize(
    ("header", "waited"), [("-5", 0.0), ("nan", 1.0), ("2s", 2.0), ("86400", 60.0)]
)
def test_retry_after_is_respected_within_limits(
    server: LettaDouble, header: str, waited: float
) -> None:
    waits: list[float] = []
    agent = Agent(server.address, None, waits.append)
    agent.create("case", "a/b", "c/d", "I answer.")
    agent.remember([])
    server.failures, server.retry_after = [("POST", "/messages", 503)], header
    agent.ask("hello")
    assert waits == [waited]
    agent.close()


def test_the_agent_and_its_archive_are_deleted_when_the_case_is_done(
    server: LettaDouble, build: Builder
) -> None:
    driver = remembering(build)
    driver.ask(QUESTION)
    assert server.agents
    assert server.archives
    let_go(driver)
    assert server.agents == server.archives == server.conversations == {}


def test_the_agent_is_deleted_when_the_ingest_fails(server: LettaDouble, build: Builder) -> None:
    server.failures = [("POST", "/archival-memory", 400)]
    with pytest.raises(ModelError, match="HTTP 400: scripted 400"):
        remembering(build)
    join_discards()
    assert server.count("POST", "/v1/agents/") >= 1
    assert server.agents == {}


def test_the_agent_is_deleted_when_a_question_failed(server: LettaDouble, build: Builder) -> None:
    driver = remembering(build)
    server.failures = [("POST", "/messages", 400)]
    with pytest.raises(ModelError):
        driver.ask(QUESTION)
    let_go(driver)
    assert server.agents == {}


def test_agent_is_deleted_if_the_system_was_not_closed(server: LettaDouble) -> None:
    agent = Agent(server.address, None)
    agent.create("case", "a/b", "c/d", "I answer.")
    assert server.agents
    del agent
    assert server.agents == {}


def test_an_agent_that_cannot_be_deleted_is_named(
    server: LettaDouble, build: Builder, caplog: pytest.LogCaptureFixture
) -> None:
    driver = remembering(build)
    (agent,) = server.agents
    server.failures = [("DELETE", "/v1/agents/", 403)]
    with caplog.at_level(logging.WARNING):
        let_go(driver)
    assert (
        f"Letta agent {agent} at {server.address} could not be deleted and is left behind"
        in caplog.text
    )


def test_closing_twice_deletes_once(server: LettaDouble, build: Builder) -> None:
    driver = remembering(build)
    let_go(driver)
    let_go(driver)
    assert server.count("DELETE", "/v1/agents/") == 1


def test_letta_memory_cannot_be_saved(server: LettaDouble, build: Builder, folder: Path) -> None:
    with pytest.raises(NotImplementedError):
        remembering(build).call("save", folder)


def test_empty_conversation_retrieves_nothing(server: LettaDouble, build: Builder) -> None:
    driver = build("letta")
    driver.remember([])
    assert driver.ask(QUESTION).retrieved == ()


def test_missing_base_url_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LETTA_BASE_URL", raising=False)
    with pytest.raises(UserError, match=r"neither system\.base_url nor LETTA_BASE_URL is set"):
        Letta.resolve_settings(LettaSettings(), has_language_model=False)


def test_unreachable_server_is_a_user_error(build: Builder) -> None:
    driver = build("letta", base_url="http://127.0.0.1:9")
    agent_tries = pytest.MonkeyPatch()
    agent_tries.setattr("memeval.systems.external.letta_server.TRIES", 1)
    with pytest.raises(
        UserError, match=r"no answer from the Letta server at http://127\.0\.0\.1:9"
    ):
        driver.remember(conversation()[:1])
    agent_tries.undo()


def test_unknown_model_handle_is_a_user_error(server: LettaDouble, build: Builder) -> None:
    with pytest.raises(UserError, match="refused: HTTP 400: Handle gpt not found, must be one of"):
        remembering(build, agent_model="gpt")
    assert server.count("POST", "/archival-memory") == 0


def test_refusal_after_the_first_case_is_a_model_error(server: LettaDouble, build: Builder) -> None:
    remembering(build)
    server.failures = [("POST", "/v1/agents/", 400)]
    with pytest.raises(ModelError, match="refused: HTTP 400"):
        remembering(build)


def test_only_the_named_token_is_sent(
    server: LettaDouble, build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETTA_API_KEY", "of the cloud")
    monkeypatch.setenv("MY_TOKEN", "secret")
    server.token = "secret"
    assert remembering(build, token_env="MY_TOKEN").ask(QUESTION).text
    monkeypatch.delenv("MY_TOKEN")
    server.token = None
    remembering(build, token_env="MY_TOKEN")
    assert "of the cloud" not in {
        request.headers.get("authorization", "") for request in server.requests
    }
    assert "authorization" not in server.requests[-1].headers


def test_refused_token_is_a_user_error(server: LettaDouble, build: Builder) -> None:
    server.token = "secret"
    with pytest.raises(UserError, match="refused: HTTP 401: Unauthorized"):
        remembering(build)


def test_yaml_has_all_settings_with_their_defaults() -> None:
    text = (
        Path(__file__)
        .parents[2]
        .joinpath("conf", "system", "letta.yaml")
        .read_text(encoding="utf-8")
    )
    given = yaml.safe_load(text)
    assert read_settings(LettaSettings, given) == LettaSettings()
    assert set(given) - {"name", "class"} == {entry.name for entry in fields(LettaSettings)}
    assert all(entry.metadata in (INGEST, ANSWER, RUNTIME) for entry in fields(LettaSettings))


def test_letta_has_its_own_prompt_and_needs_no_model() -> None:
    assert Letta.own_prompt
    assert not Letta.needs_language_model(LettaSettings())
    assert not Letta.uses_llm_at_ingest(LettaSettings())


def test_model_gets_the_search_and_insert_tools_of_the_archive(
    server: LettaDouble, build: Builder
) -> None:
    driver = remembering(build)
    search, insert = driver.system.tools()
    assert (search.name, search.writes) == ("search_memory", False)
    assert (insert.name, insert.writes) == ("archival_memory_insert", True)

    async def use() -> Any:
        found = await search.call(query="Clara plays the violin", limit=2)
        stored = await insert.call(content="Bruno keeps bees in Graz.")
        return found, stored, await search.call(query="bees in Graz", limit=1)

    (found, stored, again), usage = metered_by(use)
    assert found.text.splitlines() == [chunk.text for chunk in found.retrieved]
    assert len(found.retrieved) == 2 and found.retrieved[0].turn_ids
    assert stored == "Stored."
    # Passages written by a model have no turns, and the archive is not rebuilt between two
    # sessions.
    assert [chunk.turn_ids for chunk in again.retrieved] == [()]
    driver.call("consolidate")
    assert len(server.agents) == 1
    assert driver.system.dump()[-1] == {"kind": "passage", "text": "Bruno keeps bees in Graz."}
    assert [row.role for row in usage] == [Role.EMBED] * 3
    assert driver.ask(Query("Who keeps bees in Graz?")).ranking is None
    driver.call("correct", CorrectRequest(words="", old="Graz", new="Linz"))
    assert driver.system.dump()[-1] == {"kind": "passage", "text": "Bruno keeps bees in Linz."}


class TestLettaContract(MemorySystemContract):
    """The conformance suite, against the double."""

    @pytest.fixture(autouse=True)
    def served(self, server: LettaDouble) -> Iterator[None]:
        self.built: list[MemorySystem] = []
        yield
        for system in self.built:
            system.close()
        join_discards()
        assert server.agents == {}

    def build(self, parts: SystemContext) -> MemorySystem:
        self.built.append(Letta(LettaSettings(), parts))
        return self.built[-1]

    def silent(self) -> bool:
        return True


needs_server = pytest.mark.skipif(
    REAL is None and not RECIPE_PYTHON.exists(),
    reason="needs a Letta server: LETTA_BASE_URL names none, and make letta was not run here",
)


@pytest.fixture(scope="module")
def real_server() -> Iterator[tuple[str, dict[str, str]]]:
    """The URL and model handles of a real server: the one at LETTA_BASE_URL, else that of the
    recipe, with scripted models.
    """
    if REAL is not None:
        names = {"agent_model": "LETTA_MODEL", "embedding": "LETTA_EMBEDDING"}
        yield REAL, {key: os.environ[name] for key, name in names.items() if name in os.environ}
        return

    words = ["recipes/scripted_tools.py", str(RECIPE_PYTHON), "recipes/letta/serve.py", "0"]
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as serving:
        assert serving.stdout is not None
        try:
            address = serving.stdout.readline().decode().strip()
            assert address, "the recipe's server did not start"
            yield address, {"agent_model": "openai-proxy/gpt-4o-mini"}
        finally:
            serving.terminate()


@pytest.mark.slow
@needs_server
def test_a_real_server_remembers(build: Builder, real_server: tuple[str, dict[str, str]]) -> None:
    address, handles = real_server
    driver = remembering(build, base_url=address, **handles)
    answer = driver.ask(Query("What is the name of the puppy that Ann adopted?"))
    assert "Biscuit" in answer.text
    assert answer.retrieved
    assert any(unit.turn_ids == ("D1:1",) for unit in answer.retrieved)

    # The text is stored in two parts, both of which belong to the turn.
    long = replace(conversation()[0], content="Ann: " + "long ago " * 4400)
    driver.remember([long])
    answer = driver.ask(Query("Was it long ago?"))
    assert answer.ranking == (("D1:1",),) * 2
    let_go(driver)
