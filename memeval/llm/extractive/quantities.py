"""Numbers and lengths of time in a sentence, for `how many`, `how long`, `how often`, `how old`."""

import re

from memeval.llm.extractive.words import NUMBERS

_LONGEST_FIRST = sorted(NUMBERS, key=len, reverse=True)
_SPELT = "|".join(word for word in _LONGEST_FIRST if word not in ("a", "an"))
_AMOUNT = rf"(?:\d[\d,.]*(?:\s?[-–]\s?\d+)?|{_SPELT})"
_UNIT = r"(?:second|minute|hour|day|week|weekend|month|year|decade)s?"
_ABOUT = r"(?:(?:about|nearly|almost|over|around|at least|more than|less than|up to)\s+)?"
_DURATION = re.compile(
    rf"\b{_ABOUT}(?:{_AMOUNT}|a few|several|an?(?: couple)?(?: of)?|many)(?:\s+(?:more|good|"
    rf"whole|long))?[\s-]+{_UNIT}\b(?:\s+old\b)?"
    r"|\bsince\s+(?:\d{4}|I was \w+|\w+ school|childhood|[A-Z]\w+)",
    re.IGNORECASE,
)
_FREQUENCY = re.compile(
    rf"\b{_ABOUT}(?:once|twice|(?:{_AMOUNT}|a few|several|a couple of) "
    r"times)(?:\s+or\s+\w+)?(?:\s+(?:a|an|per|every|each)\s+\w+)?"
    rf"|\bevery\s+(?:(?:other|single|{_AMOUNT})\s+)?\w+|\b(?:daily|weekly|monthly|yearly)\b",
    re.IGNORECASE,
)
_AGE = re.compile(rf"\b{_AMOUNT}(?:[\s-]years?[\s-]old)?\b", re.IGNORECASE)
_COUNT = re.compile(rf"[$€£]?\b{_AMOUNT}\b%?(?![:/-]\d)", re.IGNORECASE)
_ONE = frozenset("one once".split())
"""Number words that usually do not mean a number: `one of them`, `this one`."""


def duration(sentence: str, question: str) -> str | None:
    """The first length of time, frequency or age that the lower-cased question asks for."""
    patterns = [_DURATION, _FREQUENCY]
    if "how old" in question:
        patterns = [_AGE]
    elif "how often" in question:
        patterns = [_FREQUENCY, _DURATION]

    for pattern in patterns:
        if match := pattern.search(sentence):
            return match.group()

    return None


def count(sentence: str, question: str) -> str | None:
    """The first number of a sentence, or its first length of time if the question asks for one."""
    if asks_length(question):
        match = _DURATION.search(sentence)
        return match.group() if match else None

    for match in _COUNT.finditer(sentence):
        if match.group().lower() not in _ONE:
            return match.group().rstrip(",.")

    return None


def asks_length(question: str) -> bool:
    """Whether a lower-cased question asks for `how many days` and the like."""
    return re.search(rf"\bhow many {_UNIT}", question) is not None
