"""Tokens, closed word classes and stems of the offline reader."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path

_LETTER = (
    r"[\w\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0df3"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]"
)
"""`\\w` does not match marks inside words, such as Hindi vowel signs and Thai tone marks."""
TOKEN = re.compile(rf"{_LETTER}+(?:['’&.:/+-]{_LETTER}+)*|[^\w\s]")
"""A word (inner apostrophes, hyphens, points included) or one punctuation mark."""

_DATA = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _words(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


CONJUNCTIONS = _words("conjunctions")
PREPOSITIONS = _words("prepositions")
DETERMINERS = _words("determiners")
PRONOUNS = _words("pronouns")
AUXILIARIES = _words("auxiliaries")
QUESTION_WORDS = _words("question_words")
FILLERS = _words("fillers")
FUNCTION_WORDS = CONJUNCTIONS | PREPOSITIONS | DETERMINERS | PRONOUNS | AUXILIARIES | QUESTION_WORDS
STOP_WORDS = FUNCTION_WORDS | FILLERS

EVALUATIVE = _words("evaluative")
VAGUE = _words("vague")
TEMPORAL = _words("temporal")

_FROM_ZERO = _DATA["numbers_from_zero"].split()
NUMBERS: dict[str, int] = {word: value for value, word in enumerate(_FROM_ZERO)} | _DATA["numbers"]

_IRREGULAR: dict[str, str] = {}
for _base, _forms in _DATA["forms"].items():
    _IRREGULAR |= dict.fromkeys(_forms.split(), _base)

_ENDINGS: tuple[tuple[str, str], ...] = tuple(_DATA["endings"].items())

LONGEST_STEM = 6
"""Longest stem in letters: a cut matches `inspire` with `inspiration`."""


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The stem of a lower-cased word, coarser than Porter's."""
    word = word.replace("’", "'").removesuffix("'s")
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.isalpha():
        return word

    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return (_undouble(word[: len(word) - len(ending)]) + instead)[:LONGEST_STEM]

    return word[:LONGEST_STEM]


def _undouble(stemmed: str) -> str:
    """`runn` -> `run`, `plann` -> `plan`."""
    doubled = len(stemmed) > 3 and stemmed[-1] == stemmed[-2] and stemmed[-1] not in "aeiouls"
    return stemmed[:-1] if doubled else stemmed
