"""How systems forget and correct: by the default rule, by their own deletion, and behind a
contract.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from served_examples import EXAMPLES, ScriptedMemory, Under, program

from memeval.config.settings import read_settings
from memeval.errors import MemoryServiceError, UserError
from memeval.records import CorrectRequest, ForgetRequest, Query, Scope
from memeval.retrieval.embedding.contract import Embedder
from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.systems.base import MemorySystem, SystemContext
from memeval.systems.external import command, http, mcp_memory
from memeval.systems.forgetting import corrected, without
from memeval.testing.under_test import SystemUnderTest, play

from .conftest import Builder, Driver, ScriptedModel, conversation

BISCUIT = ForgetRequest(words="Forget the puppy.", about="puppy Biscuit")
ALL = ForgetRequest(words="Forget me.", about="puppy", scope=Scope.USER)
BAKERY = CorrectRequest(words="Not Norway, Iceland.", old="Norway", new="Iceland")


def found(driver: Driver, words: str) -> str:
    return " | ".join(result.text for result in driver.call("probe", Query(words), 20) or ())


@pytest.mark.parametrize("name", ["files", "mem0_verbatim", "cogcanvas", "bm25", "long_context"])
def test_forgotten_text_is_not_found_until_it_is_imported_again(
    build: Builder, folder: Path, name: str
) -> None:
    driver = build(name)
    chunks = conversation()
    driver.remember(chunks)
    assert "puppy" in found(driver, "puppy Biscuit")

    assert driver.call("forget", BISCUIT) > 0
    assert driver.call("correct", BAKERY) > 0
    for _ in range(2):
        shown = found(driver, "puppy Biscuit Norway Iceland")
        assert "puppy" not in shown
        assert "Norway" not in shown and "Iceland" in shown
        driver.call("consolidate")

    # Importing a session again brings back what was forgotten, and it can be saved.
    for chunk in chunks[:5]:
        driver.call("ingest", chunk)

    driver.call("consolidate")
    driver.call("dump")
    driver.call("save", folder)
    loaded = build(name)
    loaded.call("load", folder)
    assert "puppy" in found(loaded, "puppy Biscuit")
    assert found(loaded, "puppy Norway") == found(driver, "puppy Norway")


@pytest.mark.parametrize(
    ("name", "settings"), [("native", {}), ("memgpt_lite", {}), ("rag", {"show_window": True})]
)
def test_compression_brings_nothing_forgotten_back(
    build: Builder, name: str, settings: dict[str, bool]
) -> None:
    """The engine passes the retained chunks as they were ingested."""
    driver = build(name, settings)
    chunks = conversation()
    driver.remember(chunks)
    driver.call("forget", BISCUIT)
    driver.call("correct", BAKERY)

    for kept in (chunks, chunks[2:]):
        driver.call("compress", kept)
        driver.call("consolidate")
        shown = found(driver, "puppy Biscuit Norway Iceland")
        assert "puppy" not in shown and "in Norway" not in shown
        # Dropped from the window of `native`, but kept by the others, which search it.
        assert ("hiking in Iceland" in shown) == (name != "native" or kept is chunks)


@pytest.mark.parametrize("name", ["dense", "hybrid", "semantic_recall", "cogcanvas"])
def test_only_new_texts_are_embedded_after_forget_and_correct(
    build: Builder, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """With an embedder that does not fit itself to the texts, such as one at an endpoint."""
    sent: list[str] = []

    async def embed(self: CharTfidfEmbedder, texts: Sequence[str]) -> Any:
        sent.extend(texts)
        return await of_class(self, texts)

    of_class = CharTfidfEmbedder.embed
    monkeypatch.setattr(CharTfidfEmbedder, "embed", embed)
    monkeypatch.setattr(CharTfidfEmbedder, "fitted", Embedder.fitted)
    first, driver, other = build(name), build(name), build(name)
    chunks = [*conversation(), replace(conversation()[-1], content="Ann: I sold my kayak")]
    first.remember(chunks[:-1])
    first.call("save", folder)
    driver.call("load", folder)
    sent.clear()

    assert driver.call("forget", BISCUIT) > 0
    assert sent == []
    changed = driver.call("correct", BAKERY)
    assert len(sent) == changed > 0 and all("Iceland" in text for text in sent)
    driver.call("ingest", chunks[-1])
    driver.call("consolidate")
    assert len(sent) == changed + 1 and "kayak" in sent[-1]

    other.remember(corrected(without(chunks, BISCUIT), BAKERY))
    assert driver.call("probe", Query("puppy Iceland"), 20) == other.call(
        "probe", Query("puppy Iceland"), 20
    )


def test_a_deleted_artifact_is_not_extracted_again(build: Builder) -> None:
    """Its words are the model's own, so the default rule does not match the chunk it came from."""
    note = {
        "type": "key_fact",
        "content": "Ann owns a young dog.",
        "quote": "I adopted a puppy called Biscuit yesterday",
        "chunk": 1,
        "date": "",
        "people": [],
    }
    model = ScriptedModel(lambda messages: json.dumps([note]))
    driver = build("cogcanvas", model=model, gleaning=False)
    driver.remember(conversation())
    assert "young dog" in found(driver, "young dog")

    assert driver.call("forget", ForgetRequest(words="Forget it.", about="Ann young dog")) == 1
    for _ in range(2):
        assert "young dog" not in found(driver, "young dog")
        driver.call("consolidate")


@pytest.mark.parametrize("request_", [ALL, replace(ALL, about="", scope=Scope.FACT)])
def test_request_about_everything_forgets_all_chunks(
    build: Builder, request_: ForgetRequest
) -> None:
    driver = build("bm25")
    driver.remember(conversation())
    assert driver.call("forget", request_) == len(conversation())
    assert found(driver, "puppy Norway") == ""


class Served(Under):
    """A served memory of any kind, driven as the checks do it."""

    def __init__(self, kind: type[MemorySystem], **settings: Any) -> None:
        self.kind = kind
        self.settings = read_settings(kind.settings_type, settings)

    def build(self, parts: SystemContext) -> MemorySystem:
        return self.kind(self.settings, parts)


def forgotten(under: Served, about: str = "cedar") -> list[int | None]:
    """The results of two identical forget requests."""
    kept: list[int | None] = []

    async def ask(sut: SystemUnderTest) -> None:
        system: Any = (await sut.fill_system()).system
        request = ForgetRequest(words="Forget it.", about=about)
        kept.extend([await system.forget(request), await system.forget(request)])

    asyncio.run(play(ask, under))
    return kept


def test_service_is_asked_to_forget_only_if_it_declares_it() -> None:
    with ScriptedMemory() as service:
        without = Served(http.HttpMemory, base_url=service.address)
        assert forgotten(without) == [None, None]
        assert service.sent("forget") == []

        first, second = forgotten(
            Served(http.HttpMemory, base_url=service.address, operations=["forget"])
        )
        assert first and second == 0

        schemas = yaml.safe_load((EXAMPLES.parent / "http_memory.openapi.yaml").read_text("utf-8"))
        schema = {"$ref": "#/components/schemas/ForgetRequest", **schemas}
        jsonschema.validate(service.sent("forget")[0], schema)


@pytest.mark.parametrize("items", [-1, "two", True])
def test_invalid_count_of_items_is_refused(items: object) -> None:
    with ScriptedMemory({"forget": lambda body, reply: {"items": items}}) as service:
        under = Served(http.HttpMemory, base_url=service.address, operations=["forget"])
        with pytest.raises(MemoryServiceError, match="items: expected `int"):
            forgotten(under)


def test_a_program_forgets() -> None:
    under = Served(command.CommandMemory, command=program(), operations=["forget"])
    first, second = forgotten(under)
    assert first and second == 0


def test_mcp_server_forgets_through_a_tool() -> None:
    first, second = forgotten(
        Served(
            mcp_memory.McpMemory,
            command=shlex.join([sys.executable, str(EXAMPLES / "mcp_server.py")]),
            store_tool="add_memory",
            store_arguments={"text": "{text}", "user": "{namespace}", "turns": "{turn_ids}"},
            search_tool="search_memory",
            search_arguments={"query": "{query}", "user": "{namespace}", "limit": "{top_k}"},
            forget_tool="forget_memory",
            forget_arguments={"about": "{about}", "user": "{namespace}"},
            items="removed",
            results="memories",
        )
    )
    assert first and second == 0


def test_unknown_or_unsupported_operation_is_refused() -> None:
    with pytest.raises(UserError, match="'forgt'"):
        read_settings(http.HttpSettings, {"operations": ["forgt"]})
    with pytest.raises(UserError, match=r"system\.operations is only for system\.contract=memeval"):
        read_settings(http.HttpSettings, {"contract": "aml", "operations": ["forget"]})
