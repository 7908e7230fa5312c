"""MemoryAgentBench's answer metrics (Hu et al., 2025): the metric of each sub-data set, and their
definitions.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from memeval.metrics.tokens import PUNCTUATION

Value = TypeVar("Value")
Other = TypeVar("Other")

ARTICLES = re.compile(r"\b(a|an|the)\b")
ANSWER_LINE = re.compile(r"answer\s*:[ \t]*(.*)", re.IGNORECASE)
# Possessive, so that a long reply of such marks takes linear time.
REPEATED = re.compile(r"(?:[*_ \t]*+answer[*_ \t]*+:)++", re.IGNORECASE)
# Long numbers before a colon are titles: `2001: A Space Odyssey`.
NUMBERING = re.compile(r"^(?:\d{1,9}[.)]|\d{1,2}:|[-*•])\s*")
# Titles are compared without their year: `Heat (1995)` is `Heat`.
YEAR = re.compile(r"\(\d{4}\)$")
RECALLED = 5
"""Number of items that count in a recommendation."""

SUBSTRING, PARSED, ITEMS, CHAT, SUMMARY = (
    "substring_exact_match",
    "exact_match_parsed",
    "recall_at_5_items",
    "longmemeval",
    "summary",
)
AR, TTL, LRU, CR = (
    "accurate_retrieval",
    "test_time_learning",
    "long_range_understanding",
    "conflict_resolution",
)
COMPETENCES: Mapping[str, str] = {AR: "AR", TTL: "TTL", LRU: "LRU", CR: "CR"}
"""The splits and the paper's short names for what they measure."""
SUBSETS: Mapping[str, tuple[str, str]] = {
    "ruler": (AR, SUBSTRING),
    "eventqa": (AR, SUBSTRING),
    "longmemeval": (AR, CHAT),
    "icl": (TTL, PARSED),
    "recsys": (TTL, ITEMS),
    "infbench": (LRU, SUMMARY),
    "detective": (LRU, PARSED),
    "factconsolidation": (CR, SUBSTRING),
}
"""Split and metric of each sub-data set, by prefix of its name."""
JUDGED = frozenset({CHAT, SUMMARY})
"""Metrics that need a model."""


def metric_of(source: str) -> str | None:
    """The metric of a sub-data set; None for a sub-data set that the protocol does not have."""
    return by_prefix(SUBSETS, source, (None, None))[1]


def split_of(source: str) -> str | None:
    """The split of a sub-data set; None for a sub-data set that the protocol does not have."""
    return by_prefix(SUBSETS, source, (None, None))[0]


def by_prefix(table: Mapping[str, Value], source: str, default: Other) -> Value | Other:
    """The value of the first key that is a prefix of a sub-data set's name."""
    for start, value in table.items():
        if source.lower().startswith(start):
            return value

    return default


def normalise(text: str) -> str:
    """Lower case without ASCII punctuation, the words a, an, the, and repeated white space."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def substring_exact_match(prediction: str, golds: Iterable[str]) -> float:
    """1.0 if a normalised gold occurs in the normalised prediction, else 0.0.

    A gold that normalises to nothing occurs nowhere.
    """
    normalised = normalise(prediction)
    # An empty string would occur in every prediction.
    return float(any(gold and gold in normalised for gold in map(normalise, golds)))


def exact_match_parsed(prediction: str, golds: Iterable[str]) -> float:
    """1.0 if the normalised parsed prediction equals a normalised gold, else 0.0."""
    normalised = normalise(parse_answer(prediction))
    return float(any(gold == normalised for gold in map(normalise, golds)))


def parse_answer(prediction: str) -> str:
    """Text after the first `Answer:` on its line, or the first non-blank line.

    If repeated, as in `Answer: Answer: 5`, it counts once.
    """
    match = ANSWER_LINE.search(prediction)
    if match:
        answer = match[1]
        again = REPEATED.match(answer)
        if again:
            answer = answer[again.end() :]
        if answer.strip():
            return answer.strip()

    return next(filter(None, map(str.strip, prediction.splitlines())), "")


def recall_at_5_items(prediction: str, golds: Sequence[str]) -> float:
    """Share of the golds among the first five items of the prediction, in [0, 1].

    All golds are wanted: they are not alternatives.
    """
    named = set(map(_title, items(prediction)[:RECALLED]))
    wanted = set(map(_title, golds))
    return len(named & wanted) / len(wanted) if wanted else 0.0


def items(prediction: str) -> list[str]:
    """The items of a list: one per line, without numbers and bullets.

    A single line is split at semicolons, else at commas.
    """
    lines = [line for line in ANSWER_LINE.sub(r"\1", prediction).splitlines() if line.strip()]
    if len(lines) == 1:
        separator = ";" if ";" in lines[0] else ","
        lines = lines[0].split(separator)

    named = []
    for line in lines:
        item = NUMBERING.sub("", line.lstrip(), count=1).strip(" \t\"'*_.")
        if item:
            named.append(item)

    return named


def _title(item: str) -> str:
    return normalise(YEAR.sub("", item.rstrip()))


RULES: dict[str, Callable[[str, Sequence[str]], float]] = {
    SUBSTRING: substring_exact_match,
    PARSED: exact_match_parsed,
    ITEMS: recall_at_5_items,
}
"""The metrics that need no model."""
