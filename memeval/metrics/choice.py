"""Reads a reply to a question whose choices are numbered 0 to 9.

How a reply is read decides the score, more than the model does: read one way, the same replies are right three times as often as read
another. So the rule is short and closed. What it does not cover is unparsed: neither right nor wrong. In this order:

1. The first line is an index and nothing else, or an index and the text of the choice that it names: `5`, `(5)`, `**5**`, `Choice 5.`,
   `5. 7 May 2023`, `5 7 May 2023`.
2. The last `answer` that an index follows, with no more than `is`, `choice`, a colon and the like between them: `Answer: 5`,
   `The correct answer is 5. …`, `answer choice 5`.
3. The reply begins with an index, whatever comes after it: `8. July 2023` is 8, also where that is the text of choice 2. A numbered list
   (`1. …` and a later line `2. …`) is none.
4. The text of exactly one choice, as the whole reply or as the whole line after the last `answer`: letter case, spaces, quotes around it
   and a full stop at its end aside.

An index is one digit that stands alone. `10`, `1990`, `3.5 years`, `7:30`, `4 years`, `7 May 2023`, `1st`, `2, 5` hold none: of what
follows a digit, only the end of the line, punctuation without a digit right behind it, and `is`, `because` and their like let it be one.
A digit with no choice of that number is none either. Text is never searched for within a longer reply: not even a reply that ends in the
text of a choice names it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_LEAD = re.compile(
    r"(?:[\s:=*_`\"'“”‘’(\[{<#>)\]]|-\s"
    r"|\b(?:is|was|would be|should be|must be|the|correct|right|best|final|option|choice|index|number|label)\b)*",
    re.IGNORECASE,
)
"""What may stand between `answer`, or the start, and the index."""
_SHUT = r"[)\]}*_`\"'”’>]*"
_INDEX = re.compile(
    rf"(?P<index>[0-9])(?!\w){_SHUT}"
    r"(?:[ \t]*(?=\n|$)|[.:;)!?](?!\d)|,(?!\s*\d)|[ \t]+(?:[-–—(]|(?:is|because|since|as|which)\b))",
    re.IGNORECASE,
)
_BARE = re.compile(rf"(?P<index>[0-9])(?!\w|[.,:–-]\d){_SHUT}[.:;,)–—-]*[ \t]*(?P<rest>[^\n]*)")
_MARK = re.compile(r"\banswer\b", re.IGNORECASE)
_AROUND = " \t\n.\"'“”‘’*_`"


def read_index(reply: str, choices: Sequence[str]) -> int | None:
    """The position of the choice that a reply names, by the rule above; None where it names none, or more than one."""
    text = unicodedata.normalize("NFKC", reply).strip()
    marks = [match.end() for match in reversed(list(_MARK.finditer(text)))]
    found = _named(text, choices)
    if found is None:
        found = next((index for mark in marks if (index := _index(text, mark, choices)) is not None), None)
    if found is None:
        found = _leading(text, choices)
    if found is None:
        found = _by_text(text, choices)
    if found is None and marks:
        found = _by_text(_line(text, _LEAD.match(text, marks[0]).end()), choices)  # type: ignore[union-attr]  # it matches nothing, too
    return found


def _named(text: str, choices: Sequence[str]) -> int | None:
    """The index that the first line holds alone or with its own choice."""
    match = _BARE.match(_line(text, _LEAD.match(text).end()))  # type: ignore[union-attr]
    if match is None or int(match["index"]) >= len(choices):
        return None
    rest, index = _plain(match["rest"]), int(match["index"])
    return index if not rest or rest == _plain(choices[index]) else None


def _leading(text: str, choices: Sequence[str]) -> int | None:
    index = _index(text, 0, choices)
    numbered = index is not None and re.search(rf"\n\s*{index + 1}[.)]\s", text)
    return None if numbered else index


def _index(text: str, start: int, choices: Sequence[str]) -> int | None:
    match = _INDEX.match(text, _LEAD.match(text, start).end())  # type: ignore[union-attr]
    return int(match["index"]) if match and int(match["index"]) < len(choices) else None


def _by_text(text: str, choices: Sequence[str]) -> int | None:
    """The choice of this very text; of choices that read alike but for letter case, the one written so."""
    stripped, plain = text.strip(_AROUND), _plain(text)
    alike = [place for place, choice in enumerate(choices) if plain and _plain(choice) == plain]
    same = [place for place in alike if choices[place].strip(_AROUND) == stripped]
    return same[0] if same else alike[0] if len({choices[place] for place in alike}) == 1 else None


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split()).strip(_AROUND).casefold()


def _line(text: str, start: int) -> str:
    """The rest of the line."""
    return text[start:].partition("\n")[0]
