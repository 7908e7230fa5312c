"""What the offline model writes while memory is built: summaries and forms, made of original
sentences.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memeval.llm.contract import Prompt
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.extractive.entries import block, entries
from memeval.llm.extractive.summaries import bears_on, take_notes
from memeval.llm.form import field_names, read_form, write_form
from memeval.llm.memory_prompts import (
    NotesPrompt,
    RelevancePrompt,
    SummarisePrompt,
    WorkingMemoryPrompt,
)
from memeval.llm.prompts import load_builtin
from memeval.llm.tokens import count_tokens
from memeval.records import Role

FIRST = (
    "[1:56 pm on 8 May 2023] Ann: Hi! I adopted a grey cat called Tofu yesterday. He sleeps all "
    "day.",
    "[1:56 pm on 8 May 2023] Bob: Lovely! What does Tofu eat?",
    "[1:56 pm on 8 May 2023] Ann: Only salmon. [shares an image: a grey cat on a red sofa]",
)
SECOND = (
    "[9:10 am on 9 June 2023] Bob: Last week I started a pottery class with my sister "
    "Clara.\nAnn: Wow, tell me more!",
    "[9:10 am on 9 June 2023] Ann: I moved to Lisbon because my company opened an office there.",
    "[9:10 am on 9 June 2023] Bob: I plan to visit you in August. I need to book a flight.",
)
TEMPLATE = "# People\n- Family:\n- Work:\n# Ahead\n- Plans:\n- Open points:"


def complete(prompt: Prompt) -> str:
    return asyncio.run(ExtractiveModel().complete(prompt, role=Role.INGEST)).text


def summary(previous: str, chunks: tuple[str, ...], budget: int = 512) -> str:
    return complete(SummarisePrompt(previous, chunks, budget))


def form(previous: str, chunks: tuple[str, ...], template: str = TEMPLATE) -> str:
    return complete(WorkingMemoryPrompt(template, previous, chunks))


def test_a_sentence_keeps_its_date_and_its_speaker() -> None:
    found = list(entries(SECOND))
    assert [(entry.stamp, entry.speaker) for entry in found[:2]] == [
        ("9:10 am on 9 June 2023", "Bob"),
        ("9:10 am on 9 June 2023", "Ann"),
    ]
    assert (
        found[0].line
        == "[9:10 am on 9 June 2023] Bob: Last week I started a pottery class with my sister Clara."
    )
    assert block(found[:2]) == SECOND[0]


def test_short_text_is_kept_whole_in_the_summary() -> None:
    text = summary("", FIRST + SECOND)
    assert {entry.line for entry in entries([text])} <= {
        entry.line for entry in entries(FIRST + SECOND)
    }
    for part in ("grey cat called Tofu", "pottery class", "Lisbon", "a grey cat on a red sofa"):
        assert part in text
    assert text.count("[1:56 pm on 8 May 2023]") == text.count("[9:10 am on 9 June 2023]") == 1


def test_an_earlier_summary_is_extended() -> None:
    first = summary("", FIRST, 60)
    both = summary(first, SECOND, 90)
    assert "Tofu" in first
    assert "Tofu" in both
    assert "pottery" in both or "Lisbon" in both
    assert both.index("8 May 2023") < both.index("9 June 2023")


def test_greetings_are_dropped_before_informative_sentences() -> None:
    text = summary("", FIRST, 40)
    assert "Tofu" in text
    assert "Hi!" not in text
    assert "Lovely!" not in text


@given(
    st.lists(st.sampled_from(FIRST + SECOND + ("Cara: No date here. None at all.",)), max_size=8),
    st.integers(1, 120),
)
@settings(max_examples=60, deadline=None)
def test_summary_stays_within_its_budget_and_adds_no_sentence(
    chunks: list[str], budget: int
) -> None:
    text = summary("", tuple(chunks), budget)
    assert count_tokens(text) <= budget
    assert {entry.line for entry in entries([text])} <= {entry.line for entry in entries(chunks)}
    again = summary(text, (), budget)  # a caption may move behind the sentences next to it
    assert Counter(entry.line for entry in entries([again])) == Counter(
        entry.line for entry in entries([text])
    )


def test_long_window_nearly_fills_the_budget_of_its_summary() -> None:
    chunks = tuple(
        f"[9:10 am on {1 + n % 28} June 2023] Bob: Fact {n} is about topic{n % 37} and "
        f"place{n % 53}."
        for n in range(600)
    )
    assert 400 < count_tokens(summary("", chunks)) <= 512


def test_sentences_are_put_into_the_fields_that_fit_their_words() -> None:
    filled = read_form(TEMPLATE, form("", FIRST + SECOND))
    assert any("sister Clara" in line for line in filled["family"])
    assert any("company opened an office" in line for line in filled["work"])
    assert any("visit you in August" in line for line in filled["plans"])
    assert any("book a flight" in line for line in filled["open points"])
    assert all(line.startswith("[") for lines in filled.values() for line in lines)


def test_form_is_updated_and_keeps_its_headings() -> None:
    both = form(form("", FIRST), SECOND)
    assert "Clara" in both
    assert both == form(both, ())
    assert [
        line for line in both.splitlines() if line in TEMPLATE.splitlines()
    ] == TEMPLATE.splitlines()


def test_field_keeps_five_sentences() -> None:
    chunks = tuple(
        f"[9:10 am on 9 June 2023] Bob: My sister met friend number {n}." for n in range(30)
    )
    assert len(read_form(TEMPLATE, form("", chunks))["family"]) == 5


def test_field_of_unknown_kind_is_filled_by_its_name() -> None:
    assert "salmon" in form("", FIRST, "- Salmon:\n- Boats:")


def test_built_in_working_memory_template_is_readable() -> None:
    template = load_builtin("working_memory_template").user
    names = field_names(template)
    assert len(names) == len(set(names)) == 12
    assert write_form(template, {}) == template


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- Family: Bob", {"family": ["Bob"]}),
        ("* **Family:**\nBob\n\n  Clara", {"family": ["Bob", "Clara"]}),
        (
            "- family:\n- [1:56 pm on 8 May 2023] Bob: a cat\n# Else\nlost",
            {"family": ["- [1:56 pm on 8 May 2023] Bob: a cat"]},
        ),
        ("Sure, here it is.\n- Hobbies:\nnone", {}),
        ("", {}),
    ],
)
def test_form_is_read_by_its_fields(text: str, expected: dict[str, list[str]]) -> None:
    assert read_form(TEMPLATE, text) == expected


def test_form_that_was_written_is_read_back() -> None:
    filled = {"family": ["Bob", "Clara"], "plans": ["a boat"]}
    assert {
        name: lines
        for name, lines in read_form(TEMPLATE, write_form(TEMPLATE, filled)).items()
        if lines
    } == filled


def test_notes_contain_only_the_new_chunks() -> None:
    prompt = NotesPrompt(
        before="Ann: I adopted a puppy called Biscuit.",
        said=("[1:56 pm on 8 May 2023] Bob: I opened a bakery in Lisbon.",),
        budget_tokens=40,
        system_text="",
        user_template="",
    )
    assert take_notes(prompt) == "[1:56 pm on 8 May 2023] Bob: I opened a bakery in Lisbon."


@pytest.mark.parametrize(
    ("question", "reply"),
    [("Where is Bob's bakery?", "yes"), ("Which boat did Clara sail?", "no")],
)
def test_text_is_relevant_if_it_shares_words_with_the_question(question: str, reply: str) -> None:
    text = "Bob: I opened a bakery in Lisbon."
    prompt = RelevancePrompt(question=question, text=text, system_text="", user_template="")
    assert bears_on(prompt) == reply
