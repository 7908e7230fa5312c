"""What each system dumps: artifacts, entities, summaries and forms; and the times of what it
finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memeval.records import OracleQuery
from memeval.systems.registry import built_in

from .conftest import DATES, Builder, Driver, conversation

SILENT = [
    "bm25",
    "dense",
    "files",
    "full_history",
    "hybrid",
    "last_k",
    "long_context",
    "mem0_verbatim",
    "mem0",
    "memgpt_lite",
    "native",
    "no_memory",
    "constant",
    "random_k",
    "oracle",
    "rag",
    "semantic_recall",
]
"""Systems that store only what they were given."""


def remembered(build: Builder, name: str, **settings: Any) -> Driver:
    driver = build(name, **settings)
    driver.remember(conversation(), compress_after=6)
    return driver


def dumped(driver: Driver) -> list[dict[str, Any]]:
    return [dict(item) for item in driver.call("dump") or ()]


@pytest.mark.parametrize("name", SILENT)
def test_system_that_stores_only_chunks_dumps_nothing(build: Builder, name: str) -> None:
    assert dumped(remembered(build, name)) == []


@pytest.mark.parametrize(
    "name", sorted(set(built_in()) - set(SILENT) - {"letta", "http", "mcp", "command"})
)
def test_a_dump_is_the_same_after_a_load(build: Builder, folder: Path, name: str) -> None:
    driver = remembered(build, name)
    driver.call("save", folder)
    loaded = build(name)
    loaded.call("load", folder)
    assert dumped(driver) == dumped(loaded) != []


def test_cogcanvas_dumps_its_artifacts(build: Builder) -> None:
    items = dumped(remembered(build, "cogcanvas"))
    puppy = next(item for item in items if "Biscuit" in item["text"])
    assert puppy["kind"] in puppy["text"].replace(" ", "_")
    assert puppy["speaker"] == "Ann"
    assert puppy["quote"] in conversation()[0].content
    assert puppy["turn_ids"] == ["D1:1"]
    assert puppy["time"] == DATES[0].isoformat()


def test_graphrag_lite_dumps_its_entities_with_their_turns(build: Builder) -> None:
    entities = {
        item["text"]: item["turn_ids"] for item in dumped(remembered(build, "graphrag_lite"))
    }
    assert entities["bakery"] == ["D2:1", "D2:2"]


def test_a_summary_and_a_form_are_dumped(build: Builder) -> None:
    (summary,) = dumped(remembered(build, "summarization"))
    assert summary["kind"] == "summary"
    form = dumped(remembered(build, "working_memory"))
    assert {item["kind"] for item in form} == {"working_memory"}
    assert all(item["field"] and item["text"] for item in form)


@pytest.mark.parametrize(
    "name", ["bm25", "dense", "hybrid", "rag", "graphrag_lite", "cogcanvas", "semantic_recall"]
)
def test_retrieved_chunks_have_the_time_of_their_turn(build: Builder, name: str) -> None:
    times = {chunk.turn_ids[0]: chunk.time for chunk in conversation()}
    answer = remembered(build, name).ask(OracleQuery("What is the puppy called?", evidence=()))
    assert answer.retrieved
    for chunk in answer.retrieved:
        assert {chunk.time} == {times[turn] for turn in chunk.turn_ids}
