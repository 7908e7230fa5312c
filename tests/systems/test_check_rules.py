"""The rules of the conformance suite, each against a service that breaks it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served_examples import ScriptedMemory, Under, example

from memeval.config.settings import read_settings
from memeval.records import ForgetRequest, MemoryChunk, Query, Retrieved
from memeval.systems.base import MemorySystem, RecallSystem, SystemContext
from memeval.systems.chunk_file import read_chunks, write_chunks
from memeval.systems.external.http import HttpMemory, HttpSettings
from memeval.systems.forgetting import is_meant
from memeval.testing.checks import CHECKS, CheckResult, outcome_of


@pytest.fixture
def service() -> Iterator[ScriptedMemory]:
    with ScriptedMemory() as serving:
        yield serving


class Served(Under):
    def __init__(self, address: str, retries: int, operations: Sequence[str] = ()) -> None:
        given = {"base_url": address, "max_retries": retries, "operations": operations}
        self.settings = read_settings(HttpSettings, given)

    def build(self, parts: SystemContext) -> MemorySystem:
        return HttpMemory(self.settings, parts)


def outcome(
    rule: str, service: ScriptedMemory, retries: int = 0, operations: Sequence[str] = ()
) -> CheckResult:
    """The outcome of a single rule against a service."""
    (check,) = [check for check in CHECKS if check.name == rule]
    return asyncio.run(outcome_of(check, Served(service.address, retries, operations)))


def test_settings_for_an_empty_search_are_named(service: ScriptedMemory) -> None:
    results = [{"text": '{"results": [], "query": "Xyrqualbondt"}'}]
    service.change["search"] = lambda body, usual: {"results": results, "usage": []}
    line = outcome("it makes nothing up", service).line
    assert line.startswith("violated")
    assert "own wording, set system.no_results=...; for JSON from an MCP server, " in line
    assert line.endswith("system.results=...")


def test_service_that_leaks_texts_without_ids_is_reported(service: ScriptedMemory) -> None:
    memory = example()
    memory.operate("reset", {"namespace": "all"})

    def leaking(operation: str, body: dict[str, Any]) -> Any:
        if operation == "reset":
            return {}

        reply = memory.operate(operation, body | {"namespace": "all"})
        for row in reply.get("results", ()):
            del row["turn_ids"]

        return reply

    service.operate = leaking
    broken = outcome("two cases do not mix", service)
    assert broken.state == "violated"
    assert "repeats word for word a text from another case" in broken.line


def every_chunk(body: Any, reply: Any) -> Any:
    return {"results": [{"text": f"text {n}", "turn_ids": []} for n in range(40)], "usage": []}


def invented(body: Any, reply: Any) -> Any:
    return {"results": [{**row, "turn_ids": ["D1:1"]} for row in reply["results"]], "usage": []}


def another_turn(body: Any, reply: Any) -> Any:
    rows = reply["results"]
    moved = [{**row, "turn_ids": rows[at - 1]["turn_ids"]} for at, row in enumerate(rows)]
    return {"results": moved, "usage": []}


def another_day(body: Any, reply: Any) -> Any:
    rows = [{**row, "time": "2026-01-01T00:00:00"} for row in reply["results"]]
    return {"results": rows, "usage": []}


@pytest.mark.parametrize(
    ("change", "rule", "message"),
    [
        (every_chunk, "top_k is obeyed", "returned 40 results, but was asked for 2 at most"),
        (
            invented,
            "turn ids are correct",
            "names 'D1:1', which memeval did not send for this case",
        ),
        (another_turn, "turn ids are correct", "contains nothing of turn"),
        (another_day, "dates are kept", "the time 2026-01-01 00:00:00 of"),
    ],
)
def test_service_that_breaks_a_rule_is_reported_with_the_reason(
    service: ScriptedMemory,
    change: Callable[[Any, Any], Any],
    rule: str,
    message: str,
) -> None:
    service.change["search"] = change
    assert message in outcome(rule, service).line


@pytest.mark.parametrize(
    ("failures", "retries", "rule", "message"),
    [
        ([("POST", "/search", 500)] * 2, 0, "it answers with text", "failed at /search: HTTP 500"),
        ([("POST", "/search", 500)] * 2, 3, "no request fails", "repeated after: HTTP 500"),
    ],
    ids=["given up", "tried again"],
)
def test_intermittent_failures_are_reported(
    service: ScriptedMemory,
    failures: Sequence[tuple[str, str, int]],
    retries: int,
    rule: str,
    message: str,
) -> None:
    service.failures = [*failures]
    assert message in outcome(rule, service, retries).line


def unchanged(operation: str, body: Any) -> Any:
    """Reports two changed items, but changes none."""
    return {"items": 2, "usage": []}


def emptied(operation: str, body: Any) -> Any:
    """Deletes everything, regardless of what should be forgotten, corrected or ingested."""
    return MEMORY.operate("reset", body) | {"items": 12, "usage": []}


def uncounted(operation: str, body: Any) -> Any:
    return MEMORY.operate(operation, body) | {"items": 0}


MEMORY = example()


@pytest.mark.parametrize(
    ("rule", "operation", "broken", "message"),
    [
        ("forgotten facts are gone", "forget", unchanged, "'greyhound' was found after for"),
        (
            "forgotten facts are gone",
            "forget",
            emptied,
            "'rye' was not found after forget()",
        ),
        ("forgotten facts are gone", "forget", uncounted, "returned 0, but 'greyhound' is"),
        ("corrected facts are replaced", "correct", unchanged, "'greyhound' was found after corr"),
        ("corrected facts are replaced", "correct", emptied, "'rye' was not found after correct"),
        (
            "a repeated import loses nothing",
            "ingest",
            emptied,
            "'greyhound' was not found",
        ),
    ],
)
def test_service_that_changes_too_little_or_too_much_is_reported(
    service: ScriptedMemory,
    rule: str,
    operation: str,
    broken: Callable[[str, Any], Any],
    message: str,
) -> None:
    seen: list[Any] = []

    def operate(name: str, body: Any) -> Any:
        seen.extend([body] if name == operation else [])
        # For imports, only the second call is broken.
        is_due = name == operation and (name != "ingest" or len(seen) > 1)
        return (broken if is_due else MEMORY.operate)(name, body)

    service.operate = operate
    assert message in outcome(rule, service, operations=("forget", "correct")).line


def test_users_that_share_a_namespace_are_reported(service: ScriptedMemory) -> None:
    def of_one(operation: str, body: Any) -> Any:
        name = body["namespace"].partition("-user-")[0]
        is_further = operation == "reset" and name != body["namespace"]
        return {} if is_further else MEMORY.operate(operation, body | {"namespace": name})

    service.operate = of_one
    line = outcome("two users of one store do not mix", service).line
    assert "'Odense', 'ribbon', which another user said, was found" in line

    def forgetting_all(operation: str, body: Any) -> Any:
        if operation == "forget":
            body = body | {"namespace": body["namespace"].replace("user-1", "user-2")}
        return MEMORY.operate(operation, body)

    service.operate = forgetting_all
    line = outcome("two users of one store do not mix", service, operations=("forget",)).line
    assert "'ribbon' of one user is gone, as another one wanted it forgotten" in line


def test_forgotten_chunk_that_returns_after_consolidation_is_reported() -> None:
    (check,) = [check for check in CHECKS if check.name == "forgotten facts are gone"]
    line = asyncio.run(outcome_of(check, Marked())).line
    assert "after consolidate(), 'greyhound' is back" in line


class Marked(Under):
    def build(self, parts: SystemContext) -> MemorySystem:
        return Marking(None, parts)


class Marking(RecallSystem):
    """Hides chunks that it should forget, until it is consolidated."""

    def reset(self) -> None:
        self.chunks: list[MemoryChunk] = []
        self.hidden: list[MemoryChunk] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self.chunks.append(chunk)

    def consolidate(self) -> None:
        self.hidden = []

    def forget(self, request: ForgetRequest) -> int:
        self.hidden = [chunk for chunk in self.chunks if is_meant(request, chunk.content)]
        return len(self.hidden)

    def recall(self, query: Query, depth: int) -> Sequence[Retrieved]:
        return [
            Retrieved(text=chunk.text, turn_ids=chunk.turn_ids)
            for chunk in self.chunks
            if chunk not in self.hidden
        ]


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        ("two users of one store do not mix", "not applicable"),
        ("a damaged memory is refused", "ok"),
    ],
)
def test_close_of_a_system_without_a_memory_violates_no_rule(rule: str, state: str) -> None:
    class Closed(Under):
        def build(self, parts: SystemContext) -> MemorySystem:
            return Closing(None, parts)

    (check,) = [check for check in CHECKS if check.name == rule]
    assert asyncio.run(outcome_of(check, Closed())).state == state


class Closing(Marking):
    """Closes what `reset` or `load` made."""

    def save(self, folder: Path) -> None:
        write_chunks(folder, self.chunks)

    def load(self, folder: Path) -> None:
        self.chunks = read_chunks(folder)

    def close(self) -> None:
        self.chunks.clear()


@pytest.mark.parametrize(
    "rule",
    [
        "it finds what it was given",
        "a reset forgets the previous case",
        "two cases do not mix",
        "the same input gives the same output",
        "questions do not change the memory",
        "dates are kept",
        "turn ids are correct",
        "all characters are kept",
    ],
)
def test_rules_about_search_results_are_not_shown_if_nothing_is_found(
    service: ScriptedMemory, rule: str
) -> None:
    service.change["search"] = lambda body, usual: {"results": [], "usage": []}
    assert outcome(rule, service).state == "not shown"


@pytest.mark.parametrize(
    ("rule", "found", "state"),
    [
        ("a reset forgets the previous case", True, "ok"),
        ("two cases do not mix", True, "ok"),
        ("two users of one store do not mix", True, "ok"),
        ("it finds what it was given", False, "not shown"),
    ],
)
def test_a_query_that_a_reply_repeats_is_not_found(
    service: ScriptedMemory, rule: str, found: bool, state: str
) -> None:
    def search(body: dict[str, Any], usual: Any) -> Any:
        texts = [row["text"] for row in usual["results"]] if found else []
        heading = f"Found {len(texts)} memories (mode: semantic) for query: '{body['query']}'"
        text = "\n".join([heading, *texts])
        return {"results": [{"text": text, "turn_ids": None}], "usage": []}

    service.change["search"] = search
    assert outcome(rule, service).state == state


def test_an_order_that_differs_after_a_reset_is_random_and_no_leak(
    service: ScriptedMemory,
) -> None:
    """Stores whose ids are random order equally near results at random."""
    resets: list[Any] = []

    def reset(body: dict[str, Any], usual: Any) -> Any:
        resets.append(body)
        return usual

    def search(body: dict[str, Any], usual: Any) -> Any:
        return usual if len(resets) % 2 else {**usual, "results": usual["results"][::-1]}

    service.change |= {"reset": reset, "search": search}
    assert outcome("a reset forgets the previous case", service).state == "ok"
    told = outcome("the same input gives the same output", service)
    assert told.state == "violated"
    assert "after a reset and in a fresh memory, 'What is the name of Ilse's" in told.line


def test_html_reply_is_a_violation_in_one_line(service: ScriptedMemory) -> None:
    service.raw["search"] = b"<html>Gateway</html>"
    line = outcome("it answers with text", service).line
    assert "an HTML page instead of JSON" in line and "\n" not in line


def leave(chunk: MemoryChunk) -> None:
    sys.exit(3)


def hang(chunk: MemoryChunk) -> None:
    threading.Event().wait(5)


@pytest.mark.parametrize(
    ("ingest", "message"),
    [(leave, "SystemExit: 3"), (hang, "did not finish within 0.1 s (system.timeout_s)")],
)
def test_system_that_exits_or_hangs_breaks_the_rule_as_it_fails_in_a_run(
    ingest: Callable[[MemoryChunk], None], message: str
) -> None:
    class Broken(Under):
        timeout_s = 0.1

        def build(self, parts: SystemContext) -> MemorySystem:
            system = Marking(None, parts)
            vars(system)["ingest"] = ingest
            return system

    result = asyncio.run(outcome_of(CHECKS[0], Broken()))
    assert (result.state, result.expected) == ("violated", "no error")
    assert message in result.seen


@pytest.mark.parametrize(
    ("rule", "method", "returned", "message"),
    [
        ("no request fails", "health", {"asked": 1}, "in health: it must return an IngestHealth"),
        (
            "dump() returns JSON-serialisable items",
            "dump",
            ["a fact"],
            "the item a fact",
        ),
    ],
)
def test_a_wrong_type_that_fails_a_run_breaks_a_rule(
    rule: str, method: str, returned: object, message: str
) -> None:
    class Broken(Under):
        def build(self, parts: SystemContext) -> MemorySystem:
            system = Marking(None, parts)
            vars(system)[method] = lambda: returned
            return system

    (check,) = [check for check in CHECKS if check.name == rule]
    result = asyncio.run(outcome_of(check, Broken()))
    assert result.state == "violated" and message in result.seen


class Columns(Marking):
    """Returns turn ids as a data frame or a JSON payload holds them."""

    kind: Any = list

    def recall(self, query: Query, depth: int) -> Sequence[Retrieved]:
        return [
            replace(chunk, turn_ids=self.kind(chunk.turn_ids))
            for chunk in super().recall(query, depth)
        ]


@pytest.mark.parametrize("kind", [list, np.array])
def test_turn_ids_in_a_list_or_an_array_break_no_rule(kind: Any) -> None:
    class Memory(Under):
        def build(self, parts: SystemContext) -> MemorySystem:
            system = Columns(None, parts)
            system.kind = kind
            return system

    named = ("it makes nothing up", "turn ids are correct", "all characters are kept")
    checks = [check for check in CHECKS if check.name in named]
    lines = [asyncio.run(outcome_of(check, Memory())).line for check in checks]
    assert [line.split()[0] for line in lines] == ["ok", "ok", "ok"], lines
