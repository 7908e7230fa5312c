"""How a judge's reply is read: one JSON object, or one word. What is not of the form is not read,
and never guessed at.

The answer under judgement reaches these replies: judges quote it, obey it, or stop in the middle of
it. So a label counts only where the reply leaves no doubt that the judge gave it.
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
"""Characters of a reply that are looked at; a longer one is not of any form that was asked for."""

READINGS = ("first_word", "official")
"""Ways to read a reply of yes or no."""

_CLOSING_THOUGHT = "</think>"
_LABELS = {"correct": Label.CORRECT, "wrong": Label.WRONG}
_LITERAL = re.compile(r'"label"\s{0,20}:\s{0,20}"\s{0,20}(?:correct|wrong)\s{0,20}"', re.IGNORECASE)
_SPOKEN = re.compile(
    r"\b(?:label|verdict|judge?ment|grade)\b[\W_]{0,12}(?:is\b[\W_]{0,12})?(correct|wrong)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\s*_#]*(yes|no)($|[\s.,;:!*_)\u2013\u2014-])", re.IGNORECASE)
_BOTH = re.compile(r"[\s*_#]*(?:yes|no)[\s*_]{1,4}(?:or|and)[\s*_]{1,4}(?:yes|no)\b", re.IGNORECASE)
_HYPHENED = re.compile(r"[\s*_#]*(?:yes|no)-\w", re.IGNORECASE)
_QUOTED_WORD = re.compile(
    r"""["'`\u2018\u201c](yes|no)[.!]?["'`\u2019\u201d][.!]?""", re.IGNORECASE
)
_OPENING_QUOTES = "\"'\u2018\u201c\u201e\u201a\u00ab\u2039\u300c\u300e"


def read_label(reply: str, *, answer: str = "", prompt: str = "") -> Label | None:
    """The label of the one JSON object in a reply, `{"reason": "…", "label": "CORRECT"}` or
    `"WRONG"`; None where there is no such label.

    Words and code fences around the object are allowed, and the same object twice. Not read:
    objects that differ, keys that occur twice, values that are objects or lists themselves, an
    object that never ends, words beside it that name the other label.

    `answer` is what was judged and `prompt` the words that asked. An object that either of them
    holds is a quotation, not a verdict.
    """
    found = _only_object(reply)
    if found is None or not _LITERAL.search(found.text):
        return None

    values = {key.casefold(): value for key, value in found.values.items()}
    if len(values) < len(found.values) or not all(_is_plain(value) for value in values.values()):
        return None

    label = _LABELS.get(str(values.get("label", "")).strip().casefold())
    if label is None or not _all_say(label, values, found.around):
        return None

    reason = read_reason(reply)
    if _is_quoted(label, reason, answer) or (reason and f'"{reason}"' in prompt):
        return None

    return label


def read_reason(reply: str) -> str:
    """The reason that the one JSON object in a reply gives; empty where it gives none."""
    found = _only_object(reply)
    values = {} if found is None else {key.casefold(): value for key, value in found.values.items()}
    reasons = [values.get("reason"), values.get("reasoning")]
    return next((reason for reason in reasons if isinstance(reason, str)), "")


def read_numbers(reply: str, names: Sequence[str], *, answer: str = "") -> tuple[int, ...] | None:
    """The whole numbers under `names` in the one JSON object of a reply; None where one is missing,
    or the object stands in the answer.
    """
    found = _only_object(reply)
    if found is None or not all(f'"{name}"' in found.text for name in names):
        return None

    read = {name: _whole(found.values.get(name)) for name in names}
    known = {name: number for name, number in read.items() if number is not None}
    if len(known) < len(names) or _gives(answer, known):
        return None

    return tuple(known.values())


def read_yes(
    reply: str, *, reading: str = "first_word", cut: bool = False, answer: str = ""
) -> bool | None:
    """Whether a reply says yes; None where it says neither yes nor no.

    `first_word` takes the first word alone, bare or in bold. A quotation of the answer is not read,
    nor a word at which the reply was `cut`: it may be the beginning of another. `official` is the
    rule of the published code: yes iff the lower-cased reply holds "yes" anywhere.
    """
    if reading == "official":
        return "yes" in reply.lower() if reply.strip() else None

    text = _spoken(reply)
    if text is None or _repeats(text, answer):
        return None
    if alone := _QUOTED_WORD.fullmatch(text):
        return alone[1].lower() == "yes"

    word = _WORD.match(text)
    if word is None or _BOTH.match(text) or _HYPHENED.match(text) or (cut and not word[2]):
        return None

    return word[1].lower() == "yes"


@dataclass(frozen=True, slots=True)
class _Object:
    """The one object of a reply."""

    values: Mapping[str, Any]
    text: str
    """As the reply writes it."""
    around: str
    """The rest of the reply."""


def _only_object(reply: str) -> _Object | None:
    text = _spoken(reply)
    if text is None or len(text) > LONGEST:
        return None

    try:
        objects = list(_objects(text))
    except (
        ValueError,
        RecursionError,
    ):  # a brace that opens no object: what looks like one further on may be a part of it
        return None

    if not objects or any(values != objects[0][0] for values, _, _ in objects):
        return None

    ends = [0, *(end for _, _, end in objects)]
    starts = [*(start for _, start, _ in objects), len(text)]
    around = " ".join(text[end:start] for end, start in zip(ends, starts, strict=True))
    values, start, end = objects[0]
    return _Object(values=values, text=text[start:end], around=around)


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Every outermost object with its place. Raises ValueError at a brace that opens none, and at
    an object in quotation marks.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_once, strict=False)
    start = text.find("{")
    while start >= 0:
        values, end = decoder.raw_decode(text, start)
        before = text[max(0, start - 20) : start].rstrip(" \t")
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
    """The reply without the thoughts before it; None if these don't end, or end twice."""
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
    return all(one is label for one in (*named, *spoken))


def _is_quoted(label: Label, reason: str, answer: str) -> bool:
    """Whether a verdict may come from the answer: the answer talks of this label, and either the
    verdict gives no reason of its own, or the answer could end the judge's own object with it.
    """
    told = _plain_letters(answer)
    if "label" not in told or label.value not in told:
        return False

    # `", "label": "CORRECT"}`, quoted in a reason without escapes, ends the reason and gives a
    # label
    if f",label{label.value}" in re.sub(r"[^\w,]|_", "", told):
        return True

    return not re.search(r"\w", reason) or _squeezed(reason) in _squeezed(answer)


def _gives(answer: str, numbers: Mapping[str, int]) -> bool:
    """Whether an answer gives these very numbers itself, as far as it names them, at least two."""
    told = _plain_letters(answer)
    named = {name: re.findall(rf"\b{name}\b\W{{1,8}}(\d{{1,9}})(?!\d)", told) for name in numbers}
    given = {name: set(map(int, texts)) for name, texts in named.items() if texts}
    return len(given) > 1 and all(numbers[name] in values for name, values in given.items())


def _repeats(text: str, answer: str) -> bool:
    """Whether a reply begins with the answer, or with its first four words."""
    said, words = (re.findall(r"\w+", one.casefold()[:LONGEST]) for one in (text, answer))
    begins = 1 < len(words) == len(said[: len(words)]) and said[: len(words)] == words
    return begins or (len(said) > 3 and said[:4] == words[:4])


def _squeezed(text: str) -> str:
    """Plain letters without white space, to compare quotations by."""
    return "".join(_plain_letters(text).split())


def _plain_letters(text: str) -> str:
    """Lower case, full-width letters as plain ones, and no characters that are not shown."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if unicodedata.category(character) != "Cf")


def _whole(value: Any) -> int | None:
    """A whole number that is not negative, also one that is written as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)

    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9
        else None
    )
