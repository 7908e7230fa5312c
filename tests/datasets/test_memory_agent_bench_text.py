"""How a long text is cut into chunks."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memeval.datasets.memory_agent_bench.text import chunks, sentences
from memeval.llm.tokens import count_tokens

TEXTS = st.text(st.sampled_from("ab1 .!?,\n\t\"')。！é日—"), max_size=200)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(TEXTS, st.integers(1, 12))
@example("1日", 1)
def test_nothing_but_white_space_is_lost_and_no_chunk_is_too_long(text: str, tokens: int) -> None:
    cut = list(chunks(text, tokens))
    assert squeezed("".join(cut)) == squeezed(text)
    assert all(0 < count_tokens(chunk) <= tokens for chunk in cut)
    assert all(chunk == chunk.strip() for chunk in cut)


@given(TEXTS)
def test_joined_sentences_equal_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text


def test_a_fact_with_a_serial_number_is_one_sentence() -> None:
    text = (
        "IdentityInputs:\n0. Thomas Kyd was born in St. Albans.\n1. It was founded by L. Ron "
        "Hubbard. Twice.\n"
    )
    assert list(sentences(text)) == [
        "IdentityInputs:\n",
        "0. Thomas Kyd was born in St. Albans.\n",
        "1. It was founded by L. Ron Hubbard. Twice.\n",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('He said "no." Then he left.', ['He said "no." ', "Then he left."]),
        ("Is it 3.5? Yes! (Really.) Good", ["Is it 3.5? ", "Yes! ", "(Really.) ", "Good"]),
        ("第一句。第二句！第三句", ["第一句。", "第二句！", "第三句"]),
        ("one\n\ntwo", ["one\n", "\n", "two"]),
    ],
)
def test_sentences_end_at_punctuation_and_line_breaks(text: str, expected: list[str]) -> None:
    assert list(sentences(text)) == expected


def test_chunks_hold_whole_sentences_as_many_as_fit() -> None:
    assert list(chunks("One two. Three four. Five six.", 6)) == [
        "One two. Three four.",
        "Five six.",
    ]
    assert list(chunks("One two. Three four. Five six.", 9)) == ["One two. Three four. Five six."]


def test_a_sentence_that_is_too_long_is_cut_between_words_and_a_word_between_tokens() -> None:
    assert list(chunks("a b c d e", 2)) == ["a b", "c d", "e"]
    assert list(chunks("a-b-c", 2)) == ["a-", "b-", "c"]
    assert list(chunks(" \n ", 2)) == []
