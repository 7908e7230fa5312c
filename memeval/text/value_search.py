"""Whether text contains a value: the one rule for searching stored, shown and answered text.

Both are compared after NFKC and case folding. White space, hyphens and underscores count as one and
the same separator, which may also be missing in a number or a code. Digits of any script count as
ASCII digits, and `1,234` as `1234`. A value must be on word boundaries, except in a script whose
words are joined. A part of an email address does not count as a value, nor does an address that is
a part of a longer one.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from memeval.text.words import UNSPACED, UNSPACED_CHARACTER, mark_characters

LONG_NUMBER = 6
"""Minimum digits of a number that may be grouped in any way: `0151 48 29 13`."""

# Not within the first part of an email address: `bob@` and `rob-bob@` are two addresses.
_SEPARATORS = re.compile(
    r"(?:[\s\u2010-\u2015\u2212\u2043\ufe58\ufe63\uff0d]|[_-](?![\w.+-]{0,64}@))+"
)
_GROUPED = re.compile(r"(?<![\w,.])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_IGNORED = {"Cf", "Cc"}
_WORD = rf"[^\W_{UNSPACED}]"
"""A letter or digit of a script with spaces between words."""
_POINT, _SLASH = re.compile(r"\w[.@]\w"), re.compile(r"\w/\w")


def plain(text: str) -> str:
    """Text normalised for comparison."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if not folded.isascii():
        folded = "".join(map(_plain_character, folded))

    ungrouped = _GROUPED.sub(lambda number: number[0].replace(",", ""), folded)
    return _SEPARATORS.sub(" ", ungrouped).strip()


def _plain_character(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if unicodedata.category(character) in _IGNORED and not character.isspace():
        return ""

    return character


def occurs_in(value: str, text: str) -> bool:
    """Whether text contains a value. No text contains an empty value."""
    return _occurs(value, plain(text))


def values_in(values: Iterable[str], *texts: str) -> tuple[str, ...]:
    """The values that any of the texts contains, in their order, each once."""
    searched = list(map(plain, texts))
    occurring: dict[str, None] = {}
    for value in values:
        if any(_occurs(value, text) for text in searched):
            occurring[value] = None

    return tuple(occurring)


def replace_value(text: str, old: str, new: str) -> str:
    """The text with each exact occurrence of the old value replaced by the new one."""
    if not old:
        return text

    pieces, end = [], 0
    for start, stop in _places(re.compile(re.escape(old)), text, _signs(old)):
        pieces += [text[end:start], new]
        end = stop

    return "".join([*pieces, text[end:]])


def _occurs(value: str, plain_text: str) -> bool:
    pattern = _pattern(value)
    if pattern is None:
        return False

    return next(_places(pattern, plain_text, _signs(value)), None) is not None


@lru_cache(maxsize=4096)
def _signs(value: str) -> tuple[str, str]:
    """Characters before and after a value that make it part of a longer one, for regex classes."""
    bare, after = plain(value), "@"
    if _POINT.search(bare):
        after += "."
    if _SLASH.search(bare):
        after += "/"

    before = after
    if "@" in bare:
        before += "_+-"

    return before, after


# Cached: compiling the ranges of scripts takes 7 ms, which each value's pattern would cost again.
@lru_cache
def _boundaries(before: str, after: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Conditions at the start and the end of a value: `bob@example.com` is not in
    `bob@example.com.uk`, `48` not in `48.5`, and `Bonn` is in `Rom/Bonn`.
    """
    starts = rf"(?<!{_WORD})(?<!{_WORD}[{before}])(?:(?<!\d\.)|(?!\d))"
    ends = rf"(?!{_WORD}|[{mark_characters()}]|[{after}]{_WORD})(?:(?!\.\d)|(?<!\d))"
    return re.compile(starts), re.compile(ends)


@lru_cache(maxsize=4096)
def _pattern(value: str) -> re.Pattern[str] | None:
    """The pattern of a value in a plain text, without its boundaries; None for an empty value."""
    bare = plain(value)
    if not bare:
        return None

    digits = sum(map(str.isdigit, bare))
    if digits >= LONG_NUMBER or UNSPACED_CHARACTER.search(bare):
        parts = list(bare.replace(" ", ""))
    elif digits:
        parts = re.findall(r"\d+|[^\d ]+", bare)
    else:
        return re.compile(re.escape(bare))

    return re.compile(" ?".join(map(re.escape, parts)))


def _places(
    pattern: re.Pattern[str], text: str, signs: tuple[str, str]
) -> Iterator[tuple[int, int]]:
    """Start and end of each occurrence on word boundaries; unspaced scripts have no boundaries."""
    starts, ends = _boundaries(*signs)
    match = pattern.search(text)
    while match is not None:
        start, stop = match.span()
        begins = UNSPACED_CHARACTER.match(text, start) or starts.match(text, start)
        if begins and (UNSPACED_CHARACTER.match(text, stop - 1) or ends.match(text, stop)):
            yield start, stop
            match = pattern.search(text, stop)
        else:
            match = pattern.search(text, start + 1)
