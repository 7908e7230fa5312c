"""Reads a reply to a question whose choices are lettered, and compares sets of choices.

The reading rule, in this order; what none of it reads is None, which is neither right nor wrong:

1. A list of labels after the last mark (`answer`, `答案`) that one follows, else at the start of the reply: `C`, `(c)`, `A, C`, `A、C`,
   `A and C`, `ACD` (only upper case is run together). After it the line ends or punctuation follows, so that a letter that begins a
   sentence (`A router …`) is none.
2. Where several may be chosen and every line begins with one label, those of all lines.
3. The exact text of a choice, with or without its label; where several may be chosen of some, divided by line breaks, semicolons or commas.

A list that names a choice that does not exist, or runs one together twice, is not read at all: no part of it is taken.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Hashable, Sequence

_MARK = re.compile(r"answers?\b|答案", re.IGNORECASE)
_LEAD = re.compile(
    r"(?:[\s:*_`\"'“”‘’(\[【<=-]|\b(?:is|are|the|correct|right|best|final|options?|choices?|labels?|letters?)\b|应该|选项|选择|应|为|是|选)*",
    re.IGNORECASE,
)
"""What may stand between a mark, or the start of the reply, and the list."""
_OPEN, _SHUT = r"[(\[*_`\"']*", r"[)\]*_`\"']*"
_ITEM = rf"{_OPEN}(?:[A-Z]{{1,26}}|[a-z])(?![A-Za-z]){_SHUT}"
_AND = "[aA][nN][dD]"
_BETWEEN = rf"(?:[ \t]*[,;、/&+和与及][ \t]*(?:{_AND}\b[ \t]*)?|[ \t]+{_AND}\b[ \t]*)"
_ALONE = rf"[ \t]+{_OPEN}[A-Za-z](?![A-Za-z]){_SHUT}"
"""A label that follows another without any mark between: no run of letters, which may be a word."""
_END = r"(?:(?<=[)\]*])|(?=[ \t]*(?:$|[\n.,;:!?、。…)\]】”’>]|是|为|正确)|[ \t]+[-–—]))"
_LIST = re.compile(rf"({_ITEM}(?:{_BETWEEN}{_ITEM}|{_ALONE})*){_END}")
_LINE = re.compile(rf"[\s-]*{_OPEN}([A-Za-z])(?![A-Za-z]){_SHUT}[ \t]*($|[.:)])")
_LETTERS = re.compile(rf"(?<![A-Za-z])(?!{_AND}\b)[A-Za-z]+")


def read_letters(reply: str, choices: Sequence[str], *, several: bool) -> tuple[int, ...] | None:
    """Positions that a reply chooses among `choices`, ascending and each once; None where the rule above reads none."""
    text = unicodedata.normalize("NFKC", reply).strip()
    parts = [text[match.end() :] for match in reversed(list(_MARK.finditer(text)))] + [text]
    lists = ((_labels_of_lines(start) if several else []) or _labels_of_list(start) for start in map(_after_lead, parts))
    labels = next(filter(None, lists), [])
    return _positions(labels, len(choices)) or next((found for part in parts if (found := _by_text(part, choices, several))), None)


def exact_set(chosen: Collection[Hashable], right: Collection[Hashable]) -> float:
    """1.0 where the two hold the same choices, else 0.0."""
    return float(set(chosen) == set(right))


def jaccard(chosen: Collection[Hashable], right: Collection[Hashable]) -> float:
    """Choices in both over choices in either, in [0, 1]: partial credit where several are right. 1.0 for two empty sets."""
    either = set(chosen) | set(right)
    return len(set(chosen) & set(right)) / len(either) if either else 1.0


def _after_lead(part: str) -> str:
    lead = _LEAD.match(part)
    return part[lead.end() if lead else 0 :]


def _labels_of_list(text: str) -> list[str]:
    """The labels, or runs of them, of the list that a text begins with."""
    match = _LIST.match(text)
    return _LETTERS.findall(match[1]) if match else []


def _labels_of_lines(text: str) -> list[str]:
    """The label of each line where all of two or more lines begin with one in the same form: alone, or before punctuation."""
    lines = [_LINE.match(line) for line in text.splitlines() if line.strip()]
    labels = [match[1] for match in lines if match]
    alike = len({bool(match[2]) for match in lines if match}) == 1
    return labels if len(labels) == len(lines) > 1 and alike else []


def _positions(runs: Sequence[str], count: int) -> tuple[int, ...] | None:
    """Positions of the labels; None where one is out of range, or a run holds one twice, or there is none."""
    if not runs or any(len(set(run)) < len(run) for run in runs):
        return None
    found = {ord(label) - ord("A") for label in "".join(runs).upper()}
    return tuple(sorted(found)) if max(found) < count else None


def _by_text(text: str, choices: Sequence[str], several: bool) -> tuple[int, ...] | None:
    """Positions of the choices whose texts these are."""
    known: dict[str, set[int]] = {}
    for position, choice in enumerate(choices):
        for form in (choice, f"{chr(ord('A') + position)} {choice}"):
            known.setdefault(_plain(form), set()).add(position)
    divisions = [[text], *([re.split(mark, text) for mark in (r"\n", r"[\n;]", r"[\n;,、]")] if several else [])]
    for division in divisions:
        found = [known.get(_plain(part), set()) for part in division if _plain(part)]
        if found and all(len(positions) == 1 for positions in found):
            return tuple(sorted(set().union(*found)))
    return None


def _plain(text: str) -> str:
    """Lower case, single spaces, without the marks around it."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(" .。:*_`\"'“”-")
