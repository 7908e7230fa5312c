"""The rules of the conformance suite, against services that break them, one rule at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from served_examples import ScriptedMemory, Under, example

from memeval.config.settings import read_settings
from memeval.systems.base import MemorySystem, SystemContext
from memeval.systems.external.http import HttpMemory, Settings
from memeval.testing.checks import CHECKS, Outcome, outcome_of


@pytest.fixture
def service() -> Iterator[ScriptedMemory]:
    with ScriptedMemory() as serving:
        yield serving


class Served(Under):
    def __init__(self, address: str, retries: int) -> None:
        self.settings = read_settings(Settings, {"base_url": address, "max_retries": retries})

    def build(self, parts: SystemContext) -> MemorySystem:
        return HttpMemory(self.settings, parts)


def outcome(rule: str, service: ScriptedMemory, retries: int = 0) -> Outcome:
    """What comes of a rule, after a first look that finds nothing wrong."""
    (check,) = [check for check in CHECKS if check.name == rule]
    return asyncio.run(outcome_of(check, Served(service.address, retries)))


def test_a_service_that_leaks_texts_without_ids(service: ScriptedMemory) -> None:
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
    assert "is word for word what was said in another case" in broken.line


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
    ("change", "rule", "told"),
    [
        (every_chunk, "top_k is obeyed", "returned 40 results, and was asked for 2 at most"),
        (invented, "turn ids are true", "names 'D1:1', which was not sent for this case"),
        (another_turn, "turn ids are true", "holds nothing of turn"),
        (another_day, "dates that go in come out", "the time 2026-01-01 00:00:00 of"),
    ],
)
def test_a_service_that_breaks_a_rule_is_told_which(
    service: ScriptedMemory,
    change: Callable[[Any, Any], Any],
    rule: str,
    told: str,
) -> None:
    service.change["search"] = change
    assert told in outcome(rule, service).line


@pytest.mark.parametrize(
    ("failures", "retries", "rule", "told"),
    [
        ([("POST", "/search", 500)] * 2, 0, "it answers with text", "failed at /search: HTTP 500"),
        ([("POST", "/search", 500)] * 2, 3, "no request fails", "made again after: HTTP 500"),
    ],
    ids=["given up", "tried again"],
)
def test_a_service_that_fails_now_and_then(
    service: ScriptedMemory,
    failures: Sequence[tuple[str, str, int]],
    retries: int,
    rule: str,
    told: str,
) -> None:
    service.failures = [*failures]
    assert told in outcome(rule, service, retries).line


def test_html_after_a_while_is_a_violation(service: ScriptedMemory) -> None:
    service.raw["search"] = b"<html>Gateway</html>"
    told = outcome("it answers with text", service).line
    assert "an HTML page instead of JSON" in told and "\n" not in told
