"""Analysis of a question: its kind, its search terms, and the people it names."""

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise, takewhile

from msgspec import Struct

from memeval.llm.extractive.dates import Moment, moments
from memeval.llm.extractive.words import AUXILIARIES, STOP_WORDS, TOKEN, stem
from memeval.records import MONTHS


class ExpectedAnswer(StrEnum):
    """The kinds of questions that the reader distinguishes."""

    WHEN = "when"
    WHO = "who"
    WHERE = "where"
    COUNT = "count"
    DURATION = "duration"
    WHY = "why"
    HOW = "how"
    DO = "do"
    YES_NO = "yes_no"
    EITHER = "either"
    LIST = "list"
    NAME = "name"
    WHAT = "what"


class ParsedQuestion(Struct, frozen=True):
    text: str
    """Lower-cased."""
    kind: ExpectedAnswer
    terms: tuple[str, ...]
    """Stems of its content words in order, each once; the words of its dates are left out."""
    pairs: frozenset[tuple[str, str]]
    """Pairs of stems of consecutive content words."""
    names: frozenset[str]
    """Words with a capital letter within the sentence, lower-cased: mostly people and places."""
    likely: bool = False
    """Whether it asks for a guess (`would`, `might`, `likely`)."""
    options: tuple[str, ...] = ()
    """The two sides of an either-or question."""
    verb: str = ""
    """Stem of the word after auxiliary and name: `join` in `What did Tim join?`; else empty."""
    pictured: bool = False
    """Whether it asks for something shared or shown."""
    plural: bool = False
    """Whether more than one item is asked for."""
    dates: tuple[str, ...] = ()
    """Dates that it names, as `dates` writes them; their words are not among its terms."""
    topic: tuple[str, ...] = ()
    """Stems of what follows `what` or `which`: `fantasy book` in `What fantasy book …`."""


_DATE = r"(?:year|month|date|day|week|weekend|season|time of (?:the )?year)"
_PLACE = (
    r"(?:city|cities|country|countries|state|states|place|places|location|locations|town|area|"
    r"park|restaurant)"
)
_KINDS: tuple[tuple[str, ExpectedAnswer], ...] = (
    (r"\bhow (?:many|much)\b", ExpectedAnswer.COUNT),
    (r"\bhow long ago\b", ExpectedAnswer.WHEN),
    (r"\bhow (?:long|often|old)\b", ExpectedAnswer.DURATION),
    (r"\b(?:what|which) " + _DATE + r"\b", ExpectedAnswer.WHEN),
    (
        r"\bwhen\b(?=.*\?)(?:\s+(?:did|does|do|is|are|was|were|will|has|have|had|would|can|\w+)\b)",
        ExpectedAnswer.WHEN,
    ),
    (r"\b(?:who|whom|whose)\b", ExpectedAnswer.WHO),
    (r"\b(?:where|(?:what|which)(?: \w+){0,2} " + _PLACE + r")\b", ExpectedAnswer.WHERE),
    (
        r"\bwhy\b|\bwhat (?:motivated|made|inspired|caused|prompted|sparked)\b|\breasons?\b",
        ExpectedAnswer.WHY,
    ),
    (r"\bhow\b", ExpectedAnswer.HOW),
    (
        r"\bwhat (?:did|does|do|has|have|is|are|was|were|will)\b.*\b(?:do|doing|done)\b",
        ExpectedAnswer.DO,
    ),
    (r"\b(?:what|which)\b.*\b(?:names?|title|called|named|nickname)\b", ExpectedAnswer.NAME),
    (r"\b(?:what|which)\b", ExpectedAnswer.WHAT),
)
_FIRST_WORD = re.compile(r"\W*(\w+)")
_LIKELY = re.compile(r"\b(?:would|might|could|likely|probably|considered|potentially)\b")
_EITHER = re.compile(r"([\w' -]+?),? or ([\w' -]+)\?")
_ARE = re.compile(r"\bwhat are\b|\b(?:where|who) (?:has|have)\b")
_BARE_MONTH = re.compile(r"\b(?:in|during|of|this|last) (" + "|".join(MONTHS) + r")\b")
_PICTURED = re.compile(r"\b(?:photo|picture|image|pic|share[sd]?|show(?:s|ed|n)?|post(?:s|ed)?)\b")
_VERB = re.compile(
    r"\b(?:did|does|do|is|are|was|were|has|have|will|can) (?:[A-Z][\w.-]*(?:['’]s(?: "
    r"\w+){1,2})?(?: and (?:[A-Z]\w+|h\w+ \w+))?"
    r"|the (?:two|friends)) ((?!to\b|the\b|a\b)[a-z]\w+)"
)
_NO_TOPIC = STOP_WORDS | frozenset("kind kinds type types sort sorts".split())
_WHICH_OF_TWO = re.compile(r"^\W*(?:which|who|what)\b[^,]*,((?:(?!,).)+?),? or ((?:(?!,).)+?)\?")
_TOPIC = re.compile(r"\b(?:what|which)\b((?: [\w'-]+){1,4})")


@lru_cache(maxsize=4096)
def analyse(text: str) -> ParsedQuestion:
    lowered = text.lower().replace("’", "'")
    tokens = TOKEN.findall(text.replace("’", "'"))
    capitals = [word for word in tokens[1:] if word[0].isupper() and word not in MONTHS]
    names = {word.lower().removesuffix("'s").removesuffix("'") for word in capitals}
    named = moments(text, None)
    plain = _blank_out(text, named)
    words = map(str.lower, TOKEN.findall(plain.replace("’", "'")))
    stems = [stem(word) for word in words if word not in STOP_WORDS and word[0].isalnum()]
    kind, topic = _kind(lowered), _topic_words(lowered)
    several = _plural(lowered, topic)
    if kind is ExpectedAnswer.WHAT and several:
        kind = ExpectedAnswer.LIST

    return ParsedQuestion(
        text=lowered,
        kind=kind,
        terms=tuple(dict.fromkeys(stems)),
        pairs=frozenset(pairwise(stems)),
        names=frozenset(names - STOP_WORDS),
        likely=bool(_LIKELY.search(lowered)),
        options=_options(lowered, kind),
        verb=_verb(text),
        pictured=bool(_PICTURED.search(lowered)),
        plural=several,
        dates=tuple(moment.text for moment in named) or tuple(_BARE_MONTH.findall(text)),
        topic=tuple(stem(word) for word in topic if word not in _NO_TOPIC),
    )


def _blank_out(text: str, spans: Sequence[Moment]) -> str:
    """The text with spaces in place of the spans, so that positions stay the same."""
    letters = list(text)
    for span in spans:
        letters[span.start : span.end] = " " * (span.end - span.start)

    return "".join(letters)


def _kind(lowered: str) -> ExpectedAnswer:
    first = _FIRST_WORD.match(lowered)
    if _WHICH_OF_TWO.search(lowered):
        return ExpectedAnswer.EITHER
    if first and first.group(1) in AUXILIARIES:
        return ExpectedAnswer.EITHER if _EITHER.search(lowered) else ExpectedAnswer.YES_NO

    # The kind whose words come first; of equal ones, the first in the table.
    asked_for, start = ExpectedAnswer.WHAT, len(lowered)
    for pattern, kind in _KINDS:
        match = re.search(pattern, lowered)
        if match and match.start() < start:
            asked_for, start = kind, match.start()

    return asked_for


def _options(lowered: str, kind: ExpectedAnswer) -> tuple[str, ...]:
    if kind is not ExpectedAnswer.EITHER:
        return ()
    if match := _WHICH_OF_TWO.search(lowered):
        return (match.group(1).strip(), match.group(2).strip())

    match = _EITHER.search(lowered)
    if match is None:
        return ()

    right = match.group(2).strip()
    left = " ".join(match.group(1).split()[-len(right.split()) :])
    return (left, right)


def _topic_words(lowered: str) -> list[str]:
    """The words after `what` or `which`, up to the first auxiliary."""
    match = _TOPIC.search(lowered)
    if match is None:
        return []

    return list(takewhile(lambda word: word not in AUXILIARIES, match.group(1).split()))


def _verb(text: str) -> str:
    match = _VERB.search(text)
    return stem(match.group(1).lower()) if match else ""


def _plural(lowered: str, topic: Sequence[str]) -> bool:
    """True for `what activities …` and `what are …`: more than one item is asked for."""
    head = topic[-1] if topic else ""
    ends_plural = head.endswith("s") and not head.endswith(("ss", "us", "is", "'s"))
    return ends_plural or head in ("people", "children") or bool(_ARE.search(lowered))
