"""Extraction without a model: types, dates, people and questions read from sentences."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memeval.llm.extractive.artifacts import extract
from memeval.llm.memory_prompts import ExtractPrompt


def extracted(*chunks: str, known: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    prompt = ExtractPrompt(
        chunks=chunks, known=known, system_text="", user_template="", quotes=known
    )
    found: list[dict[str, Any]] = json.loads(extract(prompt))
    return found


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Don't forget the appointment with the dentist", "reminder"),
        ("We decided on the blue boat", "decision"),
        ("I need to repair the roof of the shed", "todo"),
        ("I realised that rowing calms the mind", "insight"),
        ("My sister Clara plays the violin", "relationship"),
        ("I love rowing on cold rivers", "person_attribute"),
        ("The boat capsized near the bridge", "event"),
        ("Cold rivers flow past Lisbon", "key_fact"),
    ],
)
def test_the_words_of_a_sentence_tell_its_type(sentence: str, kind: str) -> None:
    (item,) = extracted(f"[1:56 pm on 8 May 2023] Ann: {sentence}")
    assert item["type"] == kind
    assert item["quote"] == sentence
    assert item["chunk"] == 1


def test_relative_date_is_resolved_by_the_date_of_the_chunk() -> None:
    (item,) = extracted("[1:56 pm on 8 May 2023] Ann: I adopted a puppy called Biscuit yesterday")
    assert item["date"] == "7 May 2023"
    assert item["people"] == ["Biscuit"]


def test_caption_is_a_fact_and_a_question_is_not() -> None:
    found = extracted("Ann: What do you see there? [shares an image: a red canoe on a beach]")
    assert [(item["type"], item["quote"]) for item in found] == [
        ("key_fact", "a red canoe on a beach")
    ]


def test_reply_is_extracted_with_the_question_that_it_answers() -> None:
    found = extracted(
        "Ann: What will the bakery sell?", "Bob: Cinnamon rolls and rye bread were ordered"
    )
    assert [(item["chunk"], item["content"]) for item in found] == [
        (2, "asked: What will the bakery sell?")
    ]


def test_the_second_pass_finds_what_the_first_one_missed() -> None:
    chunks = ("Ann: The boat capsized near the bridge. Cold water everywhere, sheer panic.",)
    first = extracted(*chunks)
    second = extracted(*chunks, known=tuple(item["quote"] for item in first))
    assert [item["quote"] for item in first] == ["The boat capsized near the bridge."]
    assert [item["quote"] for item in second] == ["Cold water everywhere, sheer panic."]


def test_nothing_is_extracted_from_small_talk_and_empty_chunks() -> None:
    assert extracted("Ann: Bye!", "", known=("x",)) == []
