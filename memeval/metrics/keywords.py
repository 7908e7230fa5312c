"""CogCanvas' keyword score (arXiv 2601.00821): a cheap judge, and a lenient one."""

import re

from memeval.text.short_cache import cache_short
from memeval.text.words import canonical, is_latin, is_unspaced, search_terms

# The list of the published code.
_STOP_WORDS = """
a an and are as at be but by for from had has have he how in is it its of on that the they this
to was what when where which who why will
with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
PASS_MARK = 0.6
"""Minimum share of the gold's keywords with which an answer passes."""


@cache_short
def keywords(text: str) -> tuple[str, ...]:
    """Words of the lower-cased text with two letters or more, without stop words; repeats kept.

    In Chinese, Japanese and Korean, each pair of neighbouring characters is a word.
    """
    words = re.findall(r"\b\w+\b", text.lower()) if is_latin(text) else search_terms(text)
    return tuple(
        word for word in words if (len(word) >= 2 or is_unspaced(word)) and word not in STOP_WORDS
    )


def keyword_overlap(answer: str, gold: str) -> float:
    """Share of the gold's keywords that occur among the answer's, repeats counted; 0.0 if the gold
    has no keywords.
    """
    expected, answered = keywords(gold), set(keywords(answer))
    if not expected:
        return 0.0

    if not is_latin(gold):
        # A gold of one character, such as a number, occurs only within the answer's pairs.
        answered |= set(canonical(answer).lower())

    return sum(word in answered for word in expected) / len(expected)


def contains_gold(answer: str, gold: str) -> bool:
    """Whether the lower-cased, stripped gold occurs in the lower-cased answer."""
    return canonical(gold).lower().strip() in canonical(answer).lower()


def keyword_pass(answer: str, gold: str) -> bool:
    """CogCanvas' verdict: the gold occurs in the answer, or the overlap is 0.6 or more."""
    return contains_gold(answer, gold) or keyword_overlap(answer, gold) >= PASS_MARK
