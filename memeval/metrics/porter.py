"""The Porter stemmer in the default mode of NLTK (`NLTK_EXTENSIONS`), as in LoCoMo's scorer.

Porter, M. "An algorithm for suffix stripping." Program 14.3 (1980): 130-137, with the changes of
NLTK: a few irregular forms, words of one and two letters as they are, and rules marked below. It is
included in full so that a score does not depend on installed packages. NLTK 3.8 to 3.9.4 agree.
"""

import re
from collections.abc import Callable
from functools import lru_cache

LONGEST_WORD = 1_000
"""Maximum letters of a word that is stemmed. NLTK's stemmer fails on some longer words."""


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """`sses:ss s:` as pairs of what a word ends in and what replaces it."""
    pairs = []
    for pair in text.split():
        suffix, _, replacement = pair.partition(":")
        pairs.append((suffix, replacement))

    return tuple(pairs)


_IRREGULAR = dict(
    _pairs("""
sky:sky skies:sky dying:die lying:lie tying:tie news:news innings:inning inning:inning
outings:outing outing:outing cannings:canning canning:canning howe:howe proceed:proceed
exceed:exceed succeed:succeed
""")
)
_PLURALS = _pairs("sses:ss ies:i ss:ss s:")
_LONG_SUFFIXES = _pairs("""
ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e ousli:ous
ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive
biliti:ble fulli:ful logi:log
""")
_MIDDLE_SUFFIXES = _pairs("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:")
_LAST_SUFFIXES = tuple(
    "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split()
)
_Y_FIRST = re.compile(r"(?:^|(?<=[aeiou]))y+")
_Y_AFTER_CONSONANT = re.compile(r"y+")
_VOWEL, _CONSONANT = re.compile(r"[aeiou]"), re.compile(r"[^V]")


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    for step in (_plural, _past, _final_y, _long_suffix, _middle_suffix, _last_suffix, _final_e):
        word = step(word)

    if word.endswith("ll") and _measure(word[:-1]) > 1:
        return word[:-1]

    return word


def stem(word: str) -> str:
    """The stem of a word in lower case."""
    if len(word) <= 2 or len(word) > LONGEST_WORD:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]

    return _stem(word)


def _plural(word: str) -> str:
    """Step 1a."""
    if word.endswith("ies") and len(word) == 4:  # NLTK: `dies` becomes `die`
        return word[:-1]

    return _replace(word, _PLURALS, lambda _: True)


def _past(word: str) -> str:
    """Step 1b."""
    if word.endswith("ied"):  # NLTK: `died` becomes `die`, `spied` becomes `spi`
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word

    bare = ""
    if word.endswith("ed"):
        bare = word[:-2]
    elif word.endswith("ing"):
        bare = word[:-3]

    if "V" not in _form(bare):
        return word
    if bare.endswith(("at", "bl", "iz")):
        return bare + "e"
    if bare[-1] == bare[-2:-1] and _form(bare)[-1] == "C":
        return bare if bare[-1] in "lsz" else bare[:-1]

    return bare + "e" if _measure(bare) == 1 and _ends_in_short_syllable(bare) else bare


def _final_y(word: str) -> str:
    """Step 1c, in NLTK after a consonant that is not the first letter: `fly` becomes `fli`."""
    if len(word) > 2 and word.endswith("y") and _form(word[:-1])[-1] == "C":
        return word[:-1] + "i"

    return word


def _long_suffix(word: str) -> str:
    """Step 2."""
    if word.endswith("alli") and _measure(word[:-4]) > 0:  # NLTK: step 2 is repeated
        return _long_suffix(word[:-2])

    if word.endswith("logi"):
        # NLTK: the `l` counts as part of the stem, for words as short as `geologi`.
        return word[:-1] if _measure(word[:-3]) > 0 else word

    return _replace(word, _LONG_SUFFIXES, lambda start: _measure(start) > 0)


def _middle_suffix(word: str) -> str:
    """Step 3."""
    return _replace(word, _MIDDLE_SUFFIXES, lambda start: _measure(start) > 0)


def _last_suffix(word: str) -> str:
    """Step 4."""
    suffix = next(filter(word.endswith, _LAST_SUFFIXES), "")
    start = word.removesuffix(suffix)
    if not suffix or _measure(start) <= 1 or (suffix == "ion" and start[-1] not in "st"):
        return word

    return start


def _final_e(word: str) -> str:
    """Step 5a."""
    if not word.endswith("e"):
        return word

    start, measure = word[:-1], _measure(word[:-1])
    if measure > 1 or (measure == 1 and not _ends_in_short_syllable(start)):
        return start

    return word


def _replace(word: str, rules: tuple[tuple[str, str], ...], applies: Callable[[str], bool]) -> str:
    """The word after the first rule with its suffix; unchanged if `applies` rejects the rest."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            start = word.removesuffix(suffix)
            if not applies(start):
                return word

            return start + replacement

    return word


def _measure(start: str) -> int:
    """How many times a vowel is followed by a consonant."""
    return _form(start).count("VC")


def _ends_in_short_syllable(word: str) -> bool:
    """Whether it ends in CVC (consonant, vowel), but not w, x, y; or, as in NLTK, is just VC."""
    form = _form(word)
    return (form.endswith("CVC") and word[-1] not in "wxy") or form == "VC"


def _form(word: str) -> str:
    """The word with V for each vowel and C for each consonant.

    A `y` is a vowel after a consonant, else a consonant; so consecutive ones alternate.
    """
    plain = _Y_FIRST.sub(lambda run: _alternating("CV", len(run[0])), word)
    plain = _Y_AFTER_CONSONANT.sub(lambda run: _alternating("VC", len(run[0])), plain)
    return _CONSONANT.sub("C", _VOWEL.sub("V", plain))


def _alternating(pair: str, length: int) -> str:
    return (pair * length)[:length]
