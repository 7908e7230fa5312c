"""The words of a text as NLTK's `word_tokenize` made them in versions 3.9 to 3.9.2.

The rules are written out here, so that a score does not depend on the installed version: since
3.9.3, NLTK also divides words at U+2012 to U+2015, which changes the BLEU-1 of an answer with a
dash. They are those of NLTK's `NLTKWordTokenizer` (Apache License 2.0; the rules go back to Robert
MacIntyre's script for the Penn Treebank) with its optional parts left out. The order of the rules
matters. Version 3.8 differs where a clitic comes before a line break, which changes no recorded
value.
"""

import re

from memeval.metrics.punkt import sentences

Rules = tuple[tuple[re.Pattern[str], str], ...]

_STARTING_QUOTES: Rules = (
    (re.compile(r"([«“‘„]|`+)"), r" \1 "),
    (re.compile(r"^\""), r"``"),
    (re.compile(r"(``)"), r" \1 "),
    (re.compile(r"([ (\[{<])(\"|'{2})"), r"\1 `` "),
    (re.compile(r"(?i)(')(?!re|ve|ll|m|t|s|d|n)(\w)\b"), r"\1 \2"),
)
_MARKS: Rules = (
    (re.compile(r"([:,])([^\d])"), r" \1 \2"),
    (re.compile(r"([:,])$"), r" \1 "),
    (re.compile(r"\.{2,}"), r" \g<0> "),
    (re.compile(r"[;@#$%&]"), r" \g<0> "),
)
_MARKS_AFTER_THE_FULL_STOP: Rules = (
    (re.compile(r"[?!]"), r" \g<0> "),
    (re.compile(r"([^'])' "), r"\1 ' "),
    (re.compile(r"[*]"), r" \g<0> "),
    (re.compile(r"[\]\[(){}<>]"), r" \g<0> "),
    (re.compile(r"--"), r" -- "),
)
_ENDING_QUOTES: Rules = (
    (re.compile(r"([»”’])"), r" \1 "),
    (re.compile(r"''"), " '' "),
    (re.compile(r'"'), " '' "),
    (re.compile(r"\s+"), " "),
)
_CLITICS: Rules = (
    (re.compile(r"([^' ])('[sS]|'[mM]|'[dD]|') "), r"\1 \2 "),
    (re.compile(r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) "), r"\1 \2 "),
)
_CONTRACTIONS: Rules = (
    (re.compile(r"(?i)\b(can)(not)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(d)('ye)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(gim)(me)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(gon)(na)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(got)(ta)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(lem)(me)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(more)('n)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(wan)(na)(?=\s)"), r" \1 \2 "),
    (re.compile(r"(?i) ('t)(is)\b"), r" \1 \2 "),
    (re.compile(r"(?i) ('t)(was)\b"), r" \1 \2 "),
)
_OF_CONTRACTIONS = ("nn", "mm", "tt", "'n", "'t", "'y")
"""Every text that a rule of contractions changes contains one of these."""
_SHUT, _SHUT_WIDE = "])}>\"'", "])}>\"'»”’ "
"""Characters that may follow the last full stop of a sentence, in NLTK's two rules for it."""


def words(text: str) -> list[str]:
    """The words of a lower-case text: divided into sentences by Punkt, and these into words."""
    read: dict[str, list[str]] = {}  # repeated sentences are divided once
    all_words: list[str] = []

    for sentence in sentences(text):
        if sentence not in read:
            read[sentence] = sentence_words(sentence)

        all_words += read[sentence]

    return all_words


def sentence_words(sentence: str) -> list[str]:
    text = _apply(_STARTING_QUOTES, sentence)

    text = _set_off_full_stop(text, _SHUT_WIDE, " ")
    text = _apply(_MARKS, text)
    text = _set_off_full_stop(text, _SHUT, "")
    text = _apply(_MARKS_AFTER_THE_FULL_STOP, text)

    text = _apply(_ENDING_QUOTES, f" {text} ")
    # Most sentences have neither, and searching for them would take a third of the time.
    if "'" in text:
        text = _apply(_CLITICS, text)

    lowered = text.lower()
    if any(part in lowered for part in _OF_CONTRACTIONS):
        text = _apply(_CONTRACTIONS, text)

    return text.split()


def _apply(rules: Rules, text: str) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)

    return text


def _set_off_full_stop(text: str, shut: str, space: str) -> str:
    """The text with a space before its last full stop, if only closing marks and space follow, and
    with `space` after it.

    NLTK writes this as `([^.])(\\.)([<shut>]*)\\s*$`, whose time grows with the square of the
    number of spaces. That pattern allows no later full stop, so it matches the last one.
    """
    stop = text.rfind(".")
    if stop < 1 or text[stop - 1] == ".":
        return text

    tail = text[stop + 1 :]
    behind = tail.lstrip(shut)
    if behind.strip():
        return text

    closing = tail[: len(tail) - len(behind)]
    return f"{text[:stop]} .{space}{closing} "
