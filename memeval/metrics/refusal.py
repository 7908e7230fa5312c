"""Distinguishes refusals from answers.

An answer is a refusal if it says, as a whole, that the requested fact isn't known. A phrase alone
does not decide. `The exact date isn't given, but it was in May` goes on to answer. `He said he did
not know` reports. `No, there is no evidence of that` answers a yes-or-no question. So the rule
depends on the place of a refusal within the answer:

1. The text after the last `Answer:` at the start of a line is the answer, the text before it
   reasoning. Apologies, questions, offers of help and headings are neither answer nor refusal.
2. An answer that begins with a refusal is one, unless it goes on to answer: after `but`, `however`,
   `so` and the like, except with what the source says about other matters.
3. Any other answer is a refusal under two conditions. Its end refuses the answer as a whole (`… so
   it cannot be determined`), and its other sentences only say what the source mentions.

To bound the work, only these parts are read: the first and last 3,000 characters of a text, the
first and last six sentences, and the first and last 200 characters of each. Of the sentences that
are not neutral, the first and the last two count.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import lru_cache

from memeval.metrics import refusal_english as english
from memeval.metrics.refusal_languages import refuses_in_another_language

_NO_INFORMATION = "no information available"
_HALF = 3_000
_CLAUSE = 400
_SENTENCES = 6
_OPENERS = 8
_SPACE = " \t\"'`“”‘’«»„()[]{}<>.,;:!*_~-–—。、，"

_ANSWER_MARK = re.compile(
    r"(?:^|\n)[^\w\n]{0,12}(?:(?:my|the|final|short|correct|brief) ){0,3}(?:answer|response"
    r"|conclusion)"
    r"[^\w\n:]{0,8}(?::|\n|$)"
    r"|\banswer\b[^\n]{0,160}\bis:[^\w\n]{0,8}\n"
)
_ASIDE = re.compile(r" ?\([^()]{0,200}\)")
_MARKUP = re.compile(r"[*_`#|>]+|</?[a-z]{1,10}>")
_BORDER = re.compile(r"(?<=[.!?:;])\s+|\n+|(?<=[。！？；])|\s[-–—]{1,2}\s|—|$")
_APOSTROPHES = str.maketrans("’‘ʼ´＇", "'''''")
_WRITTEN_OUT = (
    (re.compile(r"\bca(?:n't|nt|nnot)\b"), "can not"),
    (re.compile(r"\bwon'?t\b"), "will not"),
    (
        re.compile(r"\b(is|are|was|were|do|does|did|has|have|had|could|would|should)n'?t\b"),
        r"\1 not",
    ),
    (re.compile(r"\bi'm\b|\bim\b"), "i am"),
    (re.compile(r"\b(i|we|you|they)'ve\b"), r"\1 have"),
    (re.compile(r"\b(we|you|they)'re\b"), r"\1 are"),
    (re.compile(r"\b(i|we|you|they|it|he|she)'d\b"), r"\1 would"),
    (re.compile(r"\b(i|we|you|they|it|he|she)'ll\b"), r"\1 will"),
    (re.compile(r"\b(it|that|there|here|what|this)'s\b"), r"\1 is"),
)
_REPORTED = re.compile(
    r"[\"“«].{0,300}[,.!?]?[\"”»],? (?:\w+ ){0,2}"
    r"(?:said|says|told|tells|was|is|asked|replied|wrote)\b"
)
_ENGLISH_LETTERS = re.compile(r"[a-z0-9 ,.;:!?'\"()/$%&+-]*")


class _Kind(Enum):
    """Role of a sentence in an answer."""

    CONTENT = auto()
    OTHER_MATTERS = auto()
    """It says what the source mentions about other matters than the question."""
    REFUSES = auto()
    DECIDES = auto()
    """It refuses, and speaks of the answer as a whole."""
    ANSWERS_AFTER_ALL = auto()
    """It refuses, but continues with an answer."""


_REFUSALS = (_Kind.REFUSES, _Kind.DECIDES)


# Cached: an answer is checked when it is judged, and again when refusals are counted.
@lru_cache(maxsize=4096)
def is_refusal(text: str) -> bool:
    """Whether an answer as a whole says that it can't be given.

    It covers English, and the common phrases of a few other languages.
    """
    plain = _answer_part(_shorten(text))
    if _REPORTED.match(plain.lstrip()):
        return False

    sentences = list(_sentences(plain))
    # In a long answer, the sentences between the first and the last ones are reasoning.
    if len(sentences) > 2 * _SENTENCES:
        sentences = sentences[:_SENTENCES] + sentences[-_SENTENCES:]

    telling, kinds = _telling_parts(sentences, _kind)
    # A refusal comes first or last; the sentences between explain it.
    if len(kinds) > 3:
        telling, kinds = [telling[0], *telling[-2:]], [kinds[0], *kinds[-2:]]

    return bool(kinds) and _refuses(telling, kinds)


def _telling_parts(
    parts: list[str], kind_of: Callable[[str], _Kind]
) -> tuple[list[str], list[_Kind]]:
    """The parts of a text that are not neutral, with their kinds; all if each is neutral."""
    telling, kinds = [], []
    all_kinds = list(map(kind_of, parts))
    for part, kind in zip(parts, all_kinds, strict=True):
        if not _is_neutral(part, kind):
            telling.append(part)
            kinds.append(kind)

    if not telling:
        return parts, all_kinds

    return telling, kinds


def _is_neutral(sentence: str, kind: _Kind) -> bool:
    """Whether a sentence neither answers nor refuses: apology, question, offer or heading."""
    return kind not in _REFUSALS and (
        sentence.endswith("?") or english.NEUTRAL.match(sentence.strip(_SPACE)) is not None
    )


def _refuses(telling: list[str], kinds: list[_Kind]) -> bool:
    first, last = kinds[0], kinds[-1]
    if first in _REFUSALS:
        return not _answer_follows(telling, kinds)
    if first is _Kind.ANSWERS_AFTER_ALL:
        return False

    # The answer begins with something else.
    grounds = english.YES_OR_NO.match(telling[0])
    if grounds:
        rest = telling[0][grounds.end() :].lstrip()
        return last is _Kind.DECIDES or (
            rest.startswith(("i ", "we ")) and _kind(rest) is _Kind.DECIDES
        )

    if first is _Kind.OTHER_MATTERS:
        for at, kind in enumerate(kinds):
            if kind in _REFUSALS:
                return not _answer_follows(telling[at:], kinds[at:])

        return False

    return last is _Kind.DECIDES and not english.PARTIAL.search(telling[-1])


def _answer_follows(telling: list[str], kinds: list[_Kind]) -> bool:
    """Whether an answer comes after the refusal that the sentences begin with."""
    if kinds[-1] in _REFUSALS or len(kinds) == 1:
        return False
    if _Kind.ANSWERS_AFTER_ALL in kinds[1:]:
        return True

    for sentence, kind in zip(telling, kinds, strict=True):
        if kind is _Kind.CONTENT and _GOING_ON.match(sentence):
            return True

    return False


_GOING_ON = re.compile(
    r"(?:however|but|that said|still|nevertheless|nonetheless|so|therefore|thus|then|instead"
    r"|overall|based on|given|from|my (?:best )?(?:guess|estimate)"
    r"|i (?:would|will|can|might) (?:\w+ )?(?:guess|say|estimate|infer|assume|conclude)|it "
    r"(?:is|was) (?:\w+ )?(?:likely|probabl|possible|reasonable|safe|implied|suggested)"
    r"|(?:it|she|he|they|this) (?:could|may|might|must|probably|likely|seems?|appears?)"
    r"|most likely|probably|likely|possibly|perhaps|presumably|the (?:most likely|closest|best"
    r"|correct) )\b"
)
"""Beginning of a sentence that answers after all."""


def _kind(sentence: str) -> _Kind:
    subordinate = english.SUBORDINATE.match(sentence)
    if subordinate and subordinate.end() < len(sentence):
        sentence = sentence[subordinate.end() :]

    parts = [part for text in english.CONTRAST.split(sentence) if (part := text.strip(_SPACE))]
    clauses, kinds = _telling_parts(parts, _kind_of_clause)
    if not kinds:
        return _Kind.CONTENT
    if len(kinds) == 1:
        return kinds[0]

    if kinds[0] in _REFUSALS:
        if kinds[-1] is _Kind.CONTENT:
            return _Kind.ANSWERS_AFTER_ALL

        return _Kind.DECIDES if _Kind.DECIDES in kinds else kinds[0]

    if kinds[-1] in _REFUSALS and kinds[0] is _Kind.OTHER_MATTERS:
        return kinds[-1]

    decides = kinds[-1] is _Kind.DECIDES and not english.PARTIAL.search(clauses[-1])
    return _Kind.DECIDES if decides else _Kind.CONTENT


def _kind_of_clause(clause: str) -> _Kind:
    if _REPORTED.match(clause):
        return _Kind.CONTENT

    bare = _without_openers(clause)
    if english.DECISIVE.search(bare):
        return _Kind.DECIDES
    if _refuses_plainly(clause, bare):
        return _Kind.REFUSES
    if english.OTHER_MATTERS.match(bare):
        return _Kind.OTHER_MATTERS

    return _Kind.CONTENT


def _refuses_plainly(clause: str, bare: str) -> bool:
    forms = (bare, clause)
    if _NO_INFORMATION in clause or any(map(english.PLAIN.match, forms)):
        return True

    foreign = not _ENGLISH_LETTERS.fullmatch(clause) or _FOREIGN.search(clause) is not None
    return foreign and any(map(refuses_in_another_language, forms))


_FOREIGN = re.compile(
    r"\b(?:nicht|keine?|keinerlei|unbekannt|ne|pas|aucune?|inconnue?|impossible de|no|sin"
    r"|ninguna|imposible|desconocid[oa]|non|nessuna|nenhuma|keine ahnung|niet|geen|onbekend"
    r"|nie|brak|nieznan[yae]|bil\w*)\b"
)
"""Words of languages whose refusals may have only English letters."""


def _without_openers(clause: str) -> str:
    for _ in range(_OPENERS):
        opener = english.OPENER.match(clause) or english.OPENER_WITHOUT_COMMA.match(clause)
        if opener is None or not opener.end():
            break

        clause = clause[opener.end() :].lstrip(_SPACE)

    return clause


def _sentences(plain: str) -> Iterator[str]:
    """The sentences, each of bounded length."""
    start = 0
    for border in _BORDER.finditer(plain):
        sentence = plain[start : border.start()].strip()
        start = border.end()
        if len(sentence) > _CLAUSE:
            sentence = f"{sentence[: _CLAUSE // 2]} {sentence[-_CLAUSE // 2 :]}"

        # An aside is kept if it is the whole sentence.
        without_asides = _ASIDE.sub("", sentence).strip(_SPACE)
        if kept := without_asides or sentence.strip(_SPACE):
            yield kept


def _answer_part(plain: str) -> str:
    """The text after the last mark of the answer; the whole text if nothing follows the mark."""
    marks = list(_ANSWER_MARK.finditer(plain))
    if not marks:
        return plain

    after = plain[marks[-1].end() :]
    return after if after.strip(_SPACE + "\n") else plain


def _shorten(text: str) -> str:
    """The text's two ends, in plain letters, or all of a short text."""
    if len(text) > 2 * _HALF:
        text = f"{text[:_HALF]}\n{text[-_HALF:]}"

    # Cut once more, because one character may become up to 18 under NFKC.
    plain = unicodedata.normalize("NFKC", text).lower().translate(_APOSTROPHES)[: 4 * _HALF]
    plain = _MARKUP.sub("", plain)
    for pattern, written_out in _WRITTEN_OUT:
        plain = pattern.sub(written_out, plain)

    return "\n".join(" ".join(line.split()) for line in plain.splitlines())
