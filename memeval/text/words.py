"""The words of a text in any language, for searching, counting and comparing.

In scripts without spaces between words, words can't be found without a dictionary. So these scripts
are searched by pairs of neighbouring characters. Chinese, Japanese and Korean are compared
character by character, as the scorers of their benchmarks do.

Text in Latin letters is read unchanged, so that the published scorers, and the figures made with
them, stay the same. All other text is first normalised to Unicode's form NFKC.
"""

import re
import unicodedata
from functools import cache
from itertools import pairwise

# Korean has spaces, but joins endings to its words.
BY_CHARACTER = (
    "\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Chinese, Japanese and Korean, for use in a regex class."""
_WITHOUT_WORDS = {
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "Lao": "\u0e81-\u0ecd\u0edc-\u0edf",
    "Burmese": "\u1000-\u103f\u1050-\u109f",
    "Khmer": "\u1780-\u17d3",
}
"""Scripts without spaces, in which single characters carry too little meaning to be compared."""
UNSPACED = BY_CHARACTER + "".join(_WITHOUT_WORDS.values())
"""Scripts whose words are joined to their neighbours, for use in a regex class."""
UNSPACED_CHARACTER = re.compile(rf"[{UNSPACED}]")

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_CHARACTER = re.compile(rf"([{BY_CHARACTER}])")
_NOT_LATIN = re.compile(
    "[\u0300-\u1fff\u2c00-\ud7ff\uf900-\ufdff\ufe70-\ufefe\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
    "\uff66-\uffdc\U00010000-\U0001efff\U00020000-\U0003ffff]"
)
"""Letters and marks of non-Latin scripts; without punctuation of any script, and without emoji."""


@cache
def mark_characters() -> str:
    """Marks that are parts of words: vowels in Hindi, tones in Thai, accents separate from their
    letters. Emoji variation selectors (U+FE00 and up) are marks as well, but belong to no word.
    """
    characters = map(chr, (*range(0x300, 0x1E00), *range(0xA66F, 0xAC00)))
    return "".join(mark for mark in characters if unicodedata.category(mark).startswith("M"))


# Compiled for the first text that is not ASCII: it takes 20 ms, which would delay every command.
@cache
def _word() -> re.Pattern[str]:
    letter = rf"(?![{UNSPACED}])(?:[^\W_]|[{mark_characters()}])"
    # The zero-width joiners are within words in Persian and Hindi.
    return re.compile(rf"[{UNSPACED}]+|{letter}(?:[\u200c\u200d]?{letter})*")


def search_terms(text: str) -> list[str]:
    """The search terms of a text, in order, with repeats.

    Runs of letters and digits in lower case. In scripts without spaces, each pair of neighbouring
    characters, or the character if it is alone in its run.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())

    terms: list[str] = []
    for word in plain_words(text):
        if len(word) > 1 and UNSPACED_CHARACTER.match(word):
            terms += [first + second for first, second in pairwise(word)]
        else:
            terms.append(word)

    return terms


def plain_words(text: str) -> list[str]:
    """Runs of letters and digits in lower case; in scripts without spaces, whole runs."""
    return _word().findall(canonical(text).lower())


def is_latin(text: str) -> bool:
    """Whether all letters of a text are Latin."""
    return not _NOT_LATIN.search(text)


def canonical(text: str) -> str:
    """The text in NFKC; unchanged if all its letters are Latin."""
    return text if is_latin(text) else unicodedata.normalize("NFKC", text)


def spread(text: str) -> str:
    """The text with spaces between the units of comparison; unchanged if its letters are Latin.

    Other text is in NFKC, with each Chinese, Japanese and Korean character apart, and spaces in
    place of non-ASCII punctuation, which scorers for English do not handle.
    """
    if is_latin(text):
        return text

    plain = unicodedata.normalize("NFKC", text)
    for character in set(plain):
        if not character.isascii() and unicodedata.category(character).startswith("P"):
            plain = plain.replace(character, " ")

    return _CHARACTER.sub(r" \1 ", plain)


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script without spaces; False for an empty string."""
    return bool(UNSPACED_CHARACTER.match(character))


def script_without_words(text: str) -> str | None:
    """The script of a text whose words can't be counted, such as `Thai`; None if they can be."""
    if text.isascii():
        return None

    for script, characters in _WITHOUT_WORDS.items():
        if re.search(f"[{characters}]", text):
            return script

    return None
