"""`graphrag_lite`: entities found by a model, one turn at a time, or by rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from memeval.llm.contract import Completion, Prompt
from memeval.llm.memory_prompts import EntitiesPrompt
from memeval.llm.model import LanguageModel
from memeval.records import Query, Role, Usage
from memeval.retrieval.entities import entities
from memeval.systems.registry import settings_of, system_class

from .conftest import Builder, by_session, conversation


class Namer(LanguageModel):
    """For one of the turns, names an entity that no rule finds; for the others, none."""

    name = "namer"

    def __init__(self, nothing: str = "[]") -> None:
        self.nothing = nothing
        self.asked: list[str] = []

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        assert isinstance(prompt, EntitiesPrompt) and role is Role.INGEST
        self.asked.append(prompt.text)
        is_job = "bank" in prompt.text
        text = 'Here: ["Bob", "career change", 7]' if is_job else self.nothing
        return Completion(text, Usage(role, self.name, "offline", 1, 1), 0.0)


def test_model_names_the_entities_of_each_chunk(build: Builder) -> None:
    model = Namer()
    driver = build("graphrag_lite", model=model, entities="model")
    driver.remember(by_session(conversation()))
    assert model.asked == [chunk.content for chunk in conversation()]
    names = {item["text"]: item["turn_ids"] for item in driver.call("dump")}
    assert set(names) == {"Bob", "career change", "career", "change"}

    answer = driver.ask(Query("Tell me of the career change"))
    assert [chunk.turn_ids for chunk in answer.retrieved or ()] == [
        ("D2:1", "D2:2", "D2:3", "D2:4")
    ]


def test_entities_named_by_the_model_are_saved(build: Builder, tmp_path: Path) -> None:
    # Half of a surrogate pair, which UTF-8 can't encode.
    driver = build("graphrag_lite", model=Namer(nothing='["Ann\\ud83d"]'), entities="model")
    driver.remember(conversation())
    driver.call("save", tmp_path)
    model = Namer()
    loaded = build("graphrag_lite", model=model, entities="model")
    loaded.call("load", tmp_path)
    assert loaded.call("dump") == driver.call("dump")
    assert model.asked == []


@pytest.mark.parametrize("reply", ['["cut', '["Ann", "cut'])
def test_chunks_without_a_readable_list_are_lost(build: Builder, reply: str) -> None:
    driver = build("graphrag_lite", model=Namer(nothing=reply), entities="model")
    driver.remember(conversation())
    health = driver.call("health")
    assert (health.asked, health.lost) == (9, 8)


def test_entities_by_rules_call_no_model(build: Builder) -> None:
    model = Namer()
    driver = build("graphrag_lite", model=model, entities="rules")
    driver.remember(conversation())
    assert model.asked == [] and driver.call("health") is None


def test_rules_replace_a_missing_model_and_are_flagged() -> None:
    system, settings = system_class("graphrag_lite"), settings_of("graphrag_lite")
    offline = system.resolve_settings(settings(), has_language_model=False)
    online = system.resolve_settings(settings(), has_language_model=True)
    ruled = system.resolve_settings(settings(entities="rules"), has_language_model=True)  # type: ignore[call-arg]
    assert [system.flags(each) for each in (offline, online, ruled)] == [
        ("entities by rules",),
        (),
        ("entities by rules",),
    ]
    assert [system.needs_language_model(each) for each in (offline, online, ruled)] == [
        False,
        True,
        False,
    ]
    assert system.ingest_templates(online) == ("entities",)


def test_rules_name_capitalised_words_and_nouns_after_an_opener() -> None:
    found = entities("Yesterday Ann Lee met my friend from Oslo near the old harbour.")
    names = {"Ann Lee", "Ann", "Lee", "Oslo"}
    assert set(found.values()) == names | {"friend", "old harbour", "old", "harbour"}
