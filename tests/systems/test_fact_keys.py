"""`index=fact_keys`: chunks are found by facts that a model extracts from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from memeval.errors import UserError
from memeval.llm.contract import Completion, Prompt
from memeval.llm.memory_prompts import NotesPrompt
from memeval.llm.model import LanguageModel
from memeval.records import Query, Role, Usage
from memeval.systems.registry import settings_of, system_class

from .conftest import Builder, conversation

SYSTEMS = ("bm25", "dense", "hybrid")


class Noter(LanguageModel):
    """Notes that Clara plays an instrument, and nothing about any other chunk."""

    name = "noter"

    def __init__(self, nothing: str = "(nothing)") -> None:
        self.nothing = nothing
        self.asked: list[NotesPrompt] = []

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        assert isinstance(prompt, NotesPrompt) and role is Role.INGEST
        self.asked.append(prompt)
        is_clara = "Clara" in prompt.said[0]
        text = "Bob's relative plays an orchestral instrument." if is_clara else self.nothing
        return Completion(text, Usage(role, self.name, "offline", 1, 1), 0.0)


@pytest.mark.parametrize("name", SYSTEMS)
def test_chunk_is_found_by_its_facts_and_shown_verbatim(build: Builder, name: str) -> None:
    query = Query("Which relative plays an orchestral instrument?")
    plain = build(name, top_k=1)
    plain.remember(conversation())
    assert plain.ask(query).ranking[0] != ("D1:4",)  # type: ignore[index]

    model = Noter()
    driver = build(name, model=model, top_k=1, index="fact_keys")
    driver.remember(conversation())
    answer = driver.ask(query)
    assert answer.ranking is not None and answer.ranking[0] == ("D1:4",)
    assert driver.reader.contexts[-1] == [conversation()[3].text]

    assert [prompt.said for prompt in model.asked] == [(chunk.text,) for chunk in conversation()]
    assert model.asked[1].before == conversation()[0].text


@pytest.mark.parametrize("name", SYSTEMS)
def test_facts_are_saved_and_dumped(build: Builder, name: str, tmp_path: Path) -> None:
    query = Query("Which relative plays an orchestral instrument?")
    driver = build(name, model=Noter(), index="fact_keys")
    driver.remember(conversation())
    (item,) = driver.call("dump")
    assert (item["kind"], item["turn_ids"]) == ("facts", ["D1:4"])
    driver.call("save", tmp_path)

    model = Noter()
    loaded = build(name, model=model, index="fact_keys")
    loaded.call("load", tmp_path)
    assert loaded.ask(query).ranking == driver.ask(query).ranking
    assert model.asked == []


def test_chunks_without_a_readable_reply_are_lost(build: Builder) -> None:
    driver = build("bm25", model=Noter(nothing=" "), index="fact_keys")
    driver.remember(conversation())
    health = driver.call("health")
    assert (health.asked, health.stored, health.lost) == (9, 1, 8)


@pytest.mark.parametrize(
    ("name", "settings", "lost"),
    [("bm25", {"index": "fact_keys"}, 1), ("light", {}, 1), ("mem0_verbatim", {}, 0)],
)
def test_health_after_a_checkpoint_covers_only_later_chunks(
    build: Builder, folder: Path, name: str, settings: dict[str, str], lost: int
) -> None:
    """Losses are counted from the checkpoint on: chunks that were loaded must not hide later
    losses.
    """
    *before, last = conversation()
    first = build(name, settings, model=Noter())
    first.remember(before)
    first.call("save", folder)

    later = build(name, settings, model=Noter(nothing=" "))
    later.call("load", folder)
    later.call("ingest", last)
    later.call("consolidate")
    health = later.call("health")
    assert (health.asked, health.stored, health.lost) == (1, 1 - lost, lost)


def test_without_facts_no_model_is_called(build: Builder) -> None:
    model = Noter()
    driver = build("dense", model=model)
    driver.remember(conversation())
    assert model.asked == [] and driver.call("health") is None and driver.call("dump") is None


@pytest.mark.parametrize("name", SYSTEMS)
def test_settings_declare_whether_a_model_is_called(name: str) -> None:
    settings, system = settings_of(name), system_class(name)
    plain, keyed = settings(), settings(index="fact_keys")  # type: ignore[call-arg]
    assert (system.uses_llm_at_ingest(plain), system.uses_llm_at_ingest(keyed)) == (False, True)
    assert (system.ingest_templates(plain), system.ingest_templates(keyed)) == ((), ("fact_keys",))
    with pytest.raises(UserError, match=r"system\.fact_tokens"):
        settings(fact_tokens=0)  # type: ignore[call-arg]
