"""The words and stems behind the scores do not depend on the version of NLTK installed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memeval.metrics.mem0 import bleu1, mem0_f1, words
from memeval.metrics.porter import stem
from memeval.metrics.punkt import ABBREVIATIONS, sentences
from memeval.metrics.tokens import f1, token_f1

pytestmark = pytest.mark.filterwarnings("ignore")

PIECES = (
    *("a", "b. ", "dr. ", "j.k.", " ", "  ", "\n", "\t", ". ", "...", ". . .", "?", "!", "(", ")"),
    *("'", "''", '"', "“", "”", "‘", "’", "«", "»", "`", "``", "3", "3.5", "1,000", ", ", ",", ":"),
    *("--", "-", "$5", "can't", "cannot", "he's ", "'tis ", "gonna", "wanna ", "more'n", "d'ye"),
    *("3. ", "x.)", "u.s. ", "i.e.", "[", "]", "*", "&", "n't ", "'ll ", "é", "中", "。", "\u00a0"),
)
"""Pieces of text that the rules for words and sentences depend on.

The dashes that NLTK 3.9.3 began to split at are left out.
"""
TEXT = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
LETTERS = st.text("abcdeilostyvwxz", max_size=6)
SUFFIXES = """
ational tional enci anci izer bli alli entli eli ousli ization ation ator alism iveness fulness
ousness aliti iviti biliti fulli logi icate
ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent ion ou ism ate
iti ous ive ize ed ing eed ied ies s sses y
""".split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("By dancing—taking dance breaks.", ["by", "dancing—taking", "dance", "breaks", "."]),
        ("1990–1995", ["1990–1995"]),
        ("a ‒ b ― c", ["a", "‒", "b", "―", "c"]),
        ("well--known", ["well", "--", "known"]),
        (
            "He can't, won't and he'll go.",
            ["he", "ca", "n't", ",", "wo", "n't", "and", "he", "'ll", "go", "."],
        ),
        ("“Cannot” isn’t 'tis", ["“", "can", "not", "”", "isn", "’", "t", "'t", "is"]),
        ('She said "go" (now)...', ["she", "said", "``", "go", "''", "(", "now", ")", "..."]),
        ("$1,000 at 7:30 p.m. on 3. May", ["$", "1,000", "at", "7:30", "p.m.", "on", "3.", "may"]),
        (
            "J. Smith left. He cried! Why?",
            ["j.", "smith", "left", ".", "he", "cried", "!", "why", "?"],
        ),
        ('"Go." She went.', ["``", "go", ".", "''", "she", "went", "."]),
        ("", []),
    ],
)
def test_words_equal_those_of_nltk_3_8_to_3_9_2(text: str, expected: list[str]) -> None:
    assert [*words(text)] == expected


def test_dash_does_not_change_bleu1() -> None:
    assert bleu1("By dancing—taking dance breaks.", "by dancing") == pytest.approx(0.2)


@settings(deadline=None)  # the first example imports NLTK, which takes seconds
@given(TEXT)
def test_words_and_sentences_equal_nltks_in_text_without_dashes(text: str) -> None:
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    parameters = PunktParameters()
    parameters.abbrev_types = set(ABBREVIATIONS)
    theirs = PunktSentenceTokenizer(parameters).tokenize(text)

    assert sentences(text) == theirs
    assert [*words(text)] == [
        word for sentence in theirs for word in NLTKWordTokenizer().tokenize(sentence)
    ]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *(
            ("running", "run"),
            ("runs", "run"),
            ("happily", "happili"),
            ("happy", "happi"),
            ("fly", "fli"),
            ("enjoy", "enjoy"),
        ),
        *(
            ("dying", "die"),
            ("dies", "die"),
            ("flies", "fli"),
            ("died", "die"),
            ("spied", "spi"),
            ("skies", "sky"),
            ("news", "news"),
        ),
        *(
            ("agreed", "agre"),
            ("feed", "feed"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("sized", "size"),
        ),
        *(
            ("relational", "relat"),
            ("geology", "geolog"),
            ("radically", "radic"),
            ("hopefulness", "hope"),
            ("electricity", "electr"),
        ),
        *(
            ("replacement", "replac"),
            ("adoption", "adopt"),
            ("lion", "lion"),
            ("controlling", "control"),
            ("cease", "ceas"),
        ),
        *(("yyyying", "yyyi"), ("café", "café"), ("2023", "2023"), ("is", "is"), ("", "")),
    ],
)
def test_stems(word: str, expected: str) -> None:
    assert stem(word) == expected


@settings(deadline=None)
@given(LETTERS, st.sampled_from(SUFFIXES), st.sampled_from(("", *SUFFIXES)))
def test_stems_equal_nltks(start: str, middle: str, end: str) -> None:
    from nltk.stem.porter import PorterStemmer

    word = start + middle + end
    assert stem(word) == PorterStemmer().stem(word)


def test_very_long_word_is_left_unchanged() -> None:
    word = "y" * 200_000  # NLTK's stemmer recurses for each y until Python's stack is full
    assert stem(word) == word
    assert token_f1(word, word) == 1.0


def test_metrics_work_without_nltk() -> None:
    code = (
        "import sys; sys.modules['nltk'] = None;"
        "from memeval.metrics.mem0 import bleu1; from memeval.metrics.tokens import token_f1;"
        "assert bleu1('a b', 'a c') == token_f1('b c', 'c d') == 0.5"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("predicted", range(1, 61))
def test_f1_of_exactly_one_half_is_not_rounded(predicted: int) -> None:
    """With p predicted and e expected words, F1 is one half if 4 · common = p + e."""
    for common in range(1, predicted + 1):
        expected = 4 * common - predicted
        if expected < common:
            continue
        shared = [f"s{number}q" for number in range(common)]
        answer = " ".join([*shared, *(f"a{number}q" for number in range(predicted - common))])
        gold = " ".join([*shared, *(f"g{number}q" for number in range(expected - common))])

        assert token_f1(answer, gold) == 0.5, (common, predicted, expected)
        assert mem0_f1(answer, gold) == 0.5, (common, predicted, expected)


def test_f1_without_common_words_is_zero() -> None:
    from collections import Counter

    assert (
        f1(Counter(), Counter())
        == f1(Counter("a"), Counter())
        == f1(Counter("a"), Counter("b"))
        == 0.0
    )
