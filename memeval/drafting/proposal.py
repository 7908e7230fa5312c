"""Proposals of a drafter, and the checks that need no model."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

from msgspec import Struct

from memeval.judges.objects import only_object
from memeval.records import EvalQuestion, Turn
from memeval.text.value_search import occurs_in, plain
from memeval.text.words import search_terms

UNANSWERABLE, MULTI_HOP, UPDATE = "unanswerable", "multi_hop", "update"
LONGEST_QUESTION, LONGEST_ANSWER, LONGEST_QUOTE = 500, 300, 2_000
"""Maximum lengths in characters."""
MAX_EVIDENCE = MAX_VARIANTS = 10
GRAM = 3
SAME_SHARE = 0.6
"""Minimum Jaccard similarity of the word 3-grams of two questions that count as the same."""


class Reason(StrEnum):
    """Why a proposal was dropped, in the order of the checks."""

    FAILED = "a call of the model failed"
    NOTHING = "nothing was proposed"
    MALFORMED = "not in the requested form"
    GONE = "the answer is to be forgotten"
    NO_TURN = "evidence that is not a turn of the case"
    NOT_QUOTED = "a quotation that is not in its turn"
    GIVEN = "the answer is in the question"
    NAMES_TEXT = "the question refers to the conversation itself"
    PRONOUN = "a pronoun without a name before it"
    DUPLICATE = "already asked"
    NOT_SUPPORTED = "not answered right from its evidence"
    KNOWN = "answered right without memory"
    NOT_NEEDED = "answered right without one of its turns"
    NO_OLDER = "no older value in an earlier turn"
    ANSWERED = "answered although it should not be"
    NO_NEAR = "no turn mentions what the question names"
    UNSCORED = "the judge's reply could not be read"


class Quote(Struct, frozen=True):
    """Words quoted from a turn."""

    turn_id: str
    text: str


class Proposal(Struct, frozen=True):
    """A proposed question."""

    kind: str
    question: str
    golds: tuple[str, ...]
    """The answer and its variants; empty for a question that can't be answered."""
    evidence: tuple[Quote, ...]
    """Words that support the answer; for an unanswerable question, the closest facts."""
    stale: tuple[tuple[str, Quote], ...] = ()
    """Older values, each with the words that state it."""

    @property
    def evidence_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(quote.turn_id for quote in self.evidence))


def read_proposal(reply: str, kind: str) -> Proposal | Reason:
    """The proposal in a reply, or the reason why it contains no proposal of the wanted kind."""
    reply_object = only_object(reply)
    if reply_object is None:
        return Reason.MALFORMED
    if "question" in reply_object.values and reply_object.values["question"] is None:
        return Reason.NOTHING

    try:
        return _proposal(reply_object.values, kind)
    except (KeyError, TypeError, ValueError):
        return Reason.MALFORMED


def _proposal(values: Mapping[str, Any], kind: str) -> Proposal:
    """Raises `KeyError`, `TypeError` or `ValueError` for any other form."""
    golds = []
    if values["answer"] is not None:
        stated = [values["answer"], *(values.get("variants") or [])]
        golds = [_text(gold, LONGEST_ANSWER) for gold in stated]

    evidence = tuple(map(_quote, values.get("evidence") or []))
    older = values.get("stale") or []
    stale = tuple((_text(item["value"], LONGEST_ANSWER), _quote(item)) for item in older)
    turns = {quote.turn_id for quote in evidence}
    if (
        values["kind"] != kind
        or (kind == UNANSWERABLE) != (not golds)
        or len(golds) > MAX_VARIANTS
        or max(len(evidence), len(stale)) > MAX_EVIDENCE
        or (kind != UNANSWERABLE and not turns)
        or (kind == MULTI_HOP and len(turns) < 2)
    ):
        raise ValueError

    return Proposal(
        kind=kind,
        question=_text(values["question"], LONGEST_QUESTION),
        golds=tuple(dict.fromkeys(golds)),
        evidence=evidence,
        stale=stale if kind == UPDATE else (),
    )


def _text(value: Any, longest: int) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise ValueError

    # A character that can't be written as UTF-8 raises a ValueError.
    value.encode()
    return value.strip()


def _quote(item: Any) -> Quote:
    turn_id = str(item["turn"]).strip().strip("[]")
    return Quote(turn_id=turn_id, text=_text(item["quote"], LONGEST_QUOTE))


def check_quotes(proposal: Proposal, turns: Mapping[str, Turn]) -> Reason | None:
    """Checks that each turn exists and contains its quotation (NFKC, any case and white space)."""
    quotes = [*proposal.evidence, *(quote for _, quote in proposal.stale)]
    for quote in quotes:
        if quote.turn_id not in turns:
            return Reason.NO_TURN

    for quote in quotes:
        words = plain(quote.text)
        # Punctuation alone, such as a dash, becomes empty.
        if not words or words not in plain(turns[quote.turn_id].text):
            return Reason.NOT_QUOTED

    return None


_TEXT = r"(?:conversation|chat|session|transcript|dialogue|excerpt|discussion|exchange|thread|text)"
_NAMES_TEXT = re.compile(
    rf"\b(?:this|the|that|these|those|our|above|earlier|given|following)\s+"
    rf"(?:(?:above|earlier|first|second|last|given|previous)\s+)?{_TEXT}s?\b"
    rf"|\b(?:session|turn|message|chat|conversation)s?\s*(?:#|no\.?|number)?\s*\d+\b"
    rf"|\[?\bt\d+\b\]?"
    rf"|\b(?:in|of|from|during|to)\s+(?:this|these|the\s+above)\s+(?:messages?|turns?|logs?)\b",
    re.IGNORECASE,
)
_PRONOUNS = frozenset(
    "he she they it his her hers their theirs its him them himself herself themselves itself "
    "this these those".split()
)
_EMPTY_IT = re.compile(
    r"\bit\s+(?:takes?|took)\b|\bit\s+been\s+since\b|\bit\b.*\bthat\b", re.IGNORECASE
)
"""An `it` that refers to nothing, as in "how long did it take Ben to move?"."""
_NO_NAMES = frozenset(
    "what when where which who whom whose why how did does do is are was were has have had will "
    "would can could should may might must shall much many long often old far soon in on at for "
    "from to of with by about after before since until during into the a an and or not s kind "
    "sort type time day date year month week person name number".split()
)
"""Words that can't be the antecedent of a pronoun."""


def check_question(proposal: Proposal) -> Reason | None:
    """Checks that the question is complete on its own and does not reveal its answer."""
    for gold in proposal.golds:
        if occurs_in(gold, proposal.question):
            return Reason.GIVEN

    if _NAMES_TEXT.search(proposal.question):
        return Reason.NAMES_TEXT

    words = search_terms(proposal.question)
    first = next((word for word in words if word not in _NO_NAMES), "")
    is_empty = first == "it" and _EMPTY_IT.search(proposal.question)
    if first in _PRONOUNS and not is_empty:
        return Reason.PRONOUN

    return None


class KnownQuestions(Struct):
    """The questions of a case, to recognise one that is proposed again."""

    grams: list[frozenset[tuple[str, ...]]]
    answers: set[tuple[frozenset[str], frozenset[str]]]
    """Normalised answers with their evidence."""

    @classmethod
    def of(cls, questions: Iterable[EvalQuestion]) -> Self:
        asked = cls(grams=[], answers=set())
        for question in questions:
            asked._add(question.text, question.gold, question.evidence)

        return asked

    def has(self, proposal: Proposal) -> bool:
        """Whether the proposed question was asked already."""
        grams = _grams(proposal.question)
        if any(_share(grams, other) >= SAME_SHARE for other in self.grams):
            return True

        answer = _answer(proposal.golds[:1], proposal.evidence_ids)
        return bool(proposal.golds) and answer in self.answers

    def add(self, proposal: Proposal) -> None:
        self._add(proposal.question, proposal.golds, proposal.evidence_ids)

    def _add(self, text: str, golds: Sequence[str], evidence: Sequence[str]) -> None:
        self.grams.append(_grams(text))
        self.answers.add(_answer(golds[:1], evidence))


def _answer(golds: Iterable[str], ids: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(map(plain, golds)), frozenset(ids)


def _grams(text: str) -> frozenset[tuple[str, ...]]:
    words = search_terms(text)
    starts = range(max(len(words) - GRAM + 1, 1))
    return frozenset(tuple(words[start : start + GRAM]) for start in starts)


def _share(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    return len(one & other) / len(one | other)


def check_kind(proposal: Proposal, turns: Mapping[str, Turn]) -> Reason | None:
    """Checks for a single kind: an older value, or a close fact."""
    if proposal.kind == UPDATE:
        return _check_older(proposal, list(turns))
    if proposal.kind == UNANSWERABLE:
        return _check_near(proposal, turns)

    return None


def _check_older(proposal: Proposal, order: Sequence[str]) -> Reason | None:
    """Checks that each older value is in its quotation, from a turn before the current value's."""
    now = max(map(order.index, proposal.evidence_ids))
    for value, quote in proposal.stale:
        is_earlier = order.index(quote.turn_id) < now
        is_gold = plain(value) in map(plain, proposal.golds)
        if not occurs_in(value, quote.text) or not is_earlier or is_gold:
            return Reason.NO_OLDER

    return None if proposal.stale else Reason.NO_OLDER


def _check_near(proposal: Proposal, turns: Mapping[str, Turn]) -> Reason | None:
    """Checks that a quoted turn mentions something that the question names."""
    asked = set(search_terms(proposal.question)) - _NO_NAMES
    for turn_id in proposal.evidence_ids:
        if asked.intersection(search_terms(turns[turn_id].text)):
            return None

    return Reason.NO_NEAR
