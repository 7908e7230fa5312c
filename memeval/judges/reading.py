"""Reads a judge's reply: one JSON object, or one word. A reply of another form is never guessed at.

The judged answer reaches these replies: judges quote it, obey it, or stop in the middle of it. So a
label counts only where the reply leaves no doubt that the judge gave it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memeval.records import Label

LONGEST = 100_000
"""Characters of a reply; a longer one does not have any of the requested forms."""

READINGS = ("first_word", "official")
"""Ways to read a reply of yes or no."""

_CLOSING_THOUGHT = "</think>"
_LABELS = {"correct": Label.CORRECT, "wrong": Label.WRONG}
_LITERAL = re.compile(r'"label"\s{0,20}:\s{0,20}"\s{0,20}(?:correct|wrong)\s{0,20}"', re.IGNORECASE)
_SPOKEN = re.compile(
    r"\b(?:label|verdict|judge?ment|grade)\b[\W_]{0,12}(?:is\b[\W_]{0,12})?(correct|wrong)\b",
    re.IGNORECASE,
)
_SHOUTED = re.compile(r"\b(NOT\s{1,4}|IN)?(CORRECT|WRONG)\b")
"""A label in capitals, as prompts write them. In small letters the words may be about anything."""
_SPOKEN_SCORE = re.compile(
    r"\bscore\b[\W_]{0,12}(?:(?:is|of)\b[\W_]{0,12})?([0-9]*\.?[0-9]+)", re.IGNORECASE
)
_GIVEN_SCORE = re.compile(r"score\W{0,12}([0-9]*\.?[0-9]+)")
_WORD = re.compile(r"[\s*_#]*(yes|no)($|[\s.,;:!*_)\u2013\u2014-])", re.IGNORECASE)
_BOTH = re.compile(r"[\s*_#]*(?:yes|no)[\s*_]{1,4}(?:or|and)[\s*_]{1,4}(?:yes|no)\b", re.IGNORECASE)
_HYPHENED = re.compile(r"[\s*_#]*(?:yes|no)-\w", re.IGNORECASE)
_QUOTED_WORD = re.compile(
    r"""["'`\u2018\u201c](yes|no)[.!]?["'`\u2019\u201d][.!]?""", re.IGNORECASE
)
_OPENING_QUOTES = "\"'\u2018\u201c\u201e\u201a\u00ab\u2039\u300c\u300e"


def read_label(reply: str, *, answer: str = "", prompt: str = "") -> Label | None:
    """The label of the only JSON object in a reply: `{"reason": "…", "label": "CORRECT"}`.

    Returns None without a label, and where the reply is ambiguous: it holds objects that differ, a
    key twice, a value that is an object or a list, an object without an end, or words around the
    object that name the other label. Code fences and a repetition of the object are allowed.

    `answer` is the judged answer, and `prompt` the text of the request. An object that either of
    them holds is a quotation and not a verdict.
    """
    verdict = _only_object(reply)
    if verdict is None or not _LITERAL.search(verdict.text):
        return None

    # Keys that differ only in case are one key twice.
    values = {key.casefold(): value for key, value in verdict.values.items()}
    if len(values) < len(verdict.values) or not all(map(_is_plain, values.values())):
        return None

    label = _LABELS.get(str(values.get("label", "")).strip().casefold())
    if label is None or not _all_say(label, values, verdict.around):
        return None

    reason = read_reason(reply)
    if _is_quoted(label, reason, answer) or (reason and f'"{reason}"' in prompt):
        return None

    return label


def read_score(
    reply: str, scores: Sequence[float], *, answer: str = "", prompt: str = ""
) -> float | None:
    """The score of the only JSON object in a reply, `{"reason": "…", "score": 0.5}`: one of
    `scores`, as a number or as a string.

    Returns None for another score, and where the reply is ambiguous or may quote the answer or the
    prompt: see `read_label`.
    """
    verdict = _only_object(reply)
    if verdict is None:
        return None

    values = {key.casefold(): value for key, value in verdict.values.items()}
    if len(values) < len(verdict.values) or not all(map(_is_plain, values.values())):
        return None

    score = _number(values.get("score"))
    if score is None or score not in scores:
        return None

    around = (_number(text) for text in _SPOKEN_SCORE.findall(verdict.around))
    if any(other != score for other in around):
        return None

    reason = read_reason(reply)
    if _is_quoted_score(score, reason, answer) or (reason and f'"{reason}"' in prompt):
        return None

    return score


def read_reason(reply: str) -> str:
    """The reason in the only JSON object of a reply; empty without one."""
    verdict = _only_object(reply)
    if verdict is None:
        return ""

    values = {key.casefold(): value for key, value in verdict.values.items()}
    reasons = [values.get("reason"), values.get("reasoning")]
    return next((reason for reason in reasons if isinstance(reason, str)), "")


def read_numbers(reply: str, names: Sequence[str], *, answer: str = "") -> tuple[int, ...] | None:
    """The whole numbers under `names` in the only JSON object of a reply.

    Returns None where one is missing, or where the answer holds the object.
    """
    verdict = _only_object(reply)
    if verdict is None or not all(f'"{name}"' in verdict.text for name in names):
        return None

    read = {name: _whole(verdict.values.get(name)) for name in names}
    known = {name: number for name, number in read.items() if number is not None}
    if len(known) < len(names) or _gives(answer, known):
        return None

    return tuple(known.values())


def read_yes(
    reply: str, *, reading: str = "first_word", cut: bool = False, answer: str = ""
) -> bool | None:
    """Whether a reply says yes; None where it says neither yes nor no.

    `first_word` reads only the first word, bare or in bold. It reads neither a quotation of the
    answer nor a word at which the reply was `cut`, because that may be the beginning of another
    word. `official` is the rule of the published code: yes iff the lower-cased reply holds "yes".
    """
    if reading == "official":
        return "yes" in reply.lower() if reply.strip() else None

    text = _spoken(reply)
    if text is None or _repeats(text, answer):
        return None
    if quoted := _QUOTED_WORD.fullmatch(text):
        return quoted[1].lower() == "yes"

    word = _WORD.match(text)
    if word is None or _BOTH.match(text) or _HYPHENED.match(text) or (cut and not word[2]):
        return None

    return word[1].lower() == "yes"


@dataclass(frozen=True, slots=True)
class _Object:
    """The one object of a reply."""

    values: Mapping[str, Any]
    text: str
    """The object as the reply writes it."""
    around: str
    """The rest of the reply."""


def _only_object(reply: str) -> _Object | None:
    text = _spoken(reply)
    if text is None or len(text) > LONGEST:
        return None

    try:
        objects = list(_objects(text))
    except (ValueError, RecursionError):
        # A brace that does not open an object: a later object may be a part of a broken one.
        return None

    if not objects or any(values != objects[0][0] for values, _, _ in objects):
        return None

    ends = [0, *(end for _, _, end in objects)]
    starts = [*(start for _, start, _ in objects), len(text)]
    around = " ".join(text[end:start] for end, start in zip(ends, starts, strict=True))
    values, start, end = objects[0]
    return _Object(values=values, text=text[start:end], around=around)


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Every outermost object with its start and end.

    Raises `ValueError` at a brace that does not open an object, and at a quoted object.
    """
    # Not strict, because models write line breaks within strings.
    decoder = json.JSONDecoder(object_pairs_hook=_once, strict=False)
    start = text.find("{")
    while start >= 0:
        values, end = decoder.raw_decode(text, start)
        before = text[max(0, start - 20) : start].rstrip(" \t")
        # In Markdown, `>` begins a quotation.
        if before.endswith((*_OPENING_QUOTES, "\n>")) or before == ">":
            raise ValueError("a quotation")

        yield values, start, end
        start = text.find("{", end)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key occurs twice")

    return values


def _spoken(reply: str) -> str | None:
    """The reply without the thinking before it; None if that does not end, or ends twice."""
    text = reply.strip()
    if _CLOSING_THOUGHT not in text:
        return None if text.startswith("<think>") else text

    _, _, said = text.partition(_CLOSING_THOUGHT)
    return None if _CLOSING_THOUGHT in said else said.strip()


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _all_say(label: Label, values: Mapping[str, Any], around: str) -> bool:
    """Whether no other field of the object and no words beside it name the other label."""
    named = [
        _LABELS.get(value.strip().casefold(), label)
        for value in values.values()
        if isinstance(value, str)
    ]
    spoken = [_LABELS[word.casefold()] for word in _SPOKEN.findall(around)]
    if not all(other is label for other in (*named, *spoken)):
        return False

    # "CORRECT or WRONG?" names both, and says neither.
    shouted = {
        (_LABELS[word.casefold()] is Label.CORRECT) != bool(negation)
        for negation, word in _SHOUTED.findall(around)
    }
    return not shouted or (label is Label.CORRECT) in shouted


def _is_quoted(label: Label, reason: str, answer: str) -> bool:
    """Whether a verdict may come from the answer.

    It may where the answer mentions this label, and the verdict either has no reason of its own, or
    could have been ended by a quotation of the answer.
    """
    plain = _plain_letters(answer)
    if "label" not in plain or label.value not in plain:
        return False

    # `", "label": "CORRECT"}`, quoted in a reason without escapes, ends it and adds a label.
    if f",label{label.value}" in re.sub(r"[^\w,]|_", "", plain):
        return True

    return not re.search(r"\w", reason) or _squeeze(reason) in _squeeze(answer)


def _is_quoted_score(score: float, reason: str, answer: str) -> bool:
    """Whether a score may come from the answer: see `_is_quoted`."""
    plain = _plain_letters(answer)
    if score not in map(_number, _GIVEN_SCORE.findall(plain)):
        return False

    # What ends a reason that quotes it without escapes, and adds a score.
    ending = re.findall(r",score:?([0-9]*\.?[0-9]+)", re.sub(r"[^\w,.:]|_", "", plain))
    if score in map(_number, ending):
        return True

    return not re.search(r"\w", reason) or _squeeze(reason) in _squeeze(answer)


def _number(value: Any) -> float | None:
    """A number, or a string that is one in digits."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{0,9}\.?[0-9]{1,9}", value.strip()):
        return float(value)

    # A boolean is an `int` in Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None

    return float(value)


def _gives(answer: str, numbers: Mapping[str, int]) -> bool:
    """Whether an answer itself gives at least two of these numbers, and no others under a name."""
    plain = _plain_letters(answer)
    named = {name: re.findall(rf"\b{name}\b\W{{1,8}}(\d{{1,9}})(?!\d)", plain) for name in numbers}
    given = {name: set(map(int, texts)) for name, texts in named.items() if texts}
    return len(given) > 1 and all(numbers[name] in values for name, values in given.items())


def _repeats(text: str, answer: str) -> bool:
    """Whether a reply begins with the answer, or with its first four words."""
    reply_words, words = (re.findall(r"\w+", part.casefold()[:LONGEST]) for part in (text, answer))
    begins = len(words) > 1 and reply_words[: len(words)] == words
    return begins or (len(reply_words) > 3 and reply_words[:4] == words[:4])


def _squeeze(text: str) -> str:
    """Plain letters without white space, to compare quotations by."""
    return "".join(_plain_letters(text).split())


def _plain_letters(text: str) -> str:
    """Lower case, with full-width letters as plain ones and without invisible characters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if unicodedata.category(character) != "Cf")


def _whole(value: Any) -> int | None:
    """A whole number that is not negative, as a number or as a string."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)

    # A boolean is an `int` in Python.
    if isinstance(value, bool) or not isinstance(value, int):
        return None

    return value if 0 <= value < 10**9 else None
