"""Reads a reply to a question whose choices are lettered, and compares sets of choices.

For the reading rule, see `How letters are read` in docs/datasets/opseval.md.

So that no reply takes long to read, only the last 50 marks are read, and no text is compared that
is much longer than all choices together.
"""

import re
import unicodedata
from collections import deque
from collections.abc import Collection, Hashable, Sequence

from memeval.metrics.choice import DENIED

_MARK = re.compile(r"answers?\b|答案", re.IGNORECASE)
_LEAD = re.compile(
    r"(?:[\s:*•_`\"'“”‘’(\[【<>】\]=-]"
    r"|\b(?:is|are|the|both|correct|right|best|final|options?|choices?|labels?|letters?)\b"
    r"|应该|选项|选择|应|为|是|选)*",
    re.IGNORECASE,
)
"""Words that may be between a mark, or the start of the reply, and the list."""
_OPEN, _SHUT = r"[(\[*_`\"']*", r"[)\]*_`\"']*"
_ITEM = rf"{_OPEN}(?:[A-Z]{{1,26}}|[a-z])(?![A-Za-z]){_SHUT}"
_AND = "[aA][nN][dD]"
_BETWEEN = rf"(?:[ \t]*[,;、/&+和与及][ \t]*(?:{_AND}\b[ \t]*)?|[ \t]+{_AND}\b[ \t]*)"
_ALONE = rf"[ \t]+{_OPEN}[A-Za-z](?![A-Za-z]){_SHUT}"
"""A label directly after another: one letter, as a run of letters may be a word."""
_ARTICLE = r"(?![aAI][ \t]+(?!and\b|are\b|is\b)[a-z])"
"""Not a label: `C, a protocol that …`, `B, I think`."""
_MORE = rf"(?:{_BETWEEN}{_ARTICLE}{_ITEM}|{_ALONE})"
_DENIED = rf"(?:{DENIED}|[都均皆全]?[是为]?(?:错|不|非))"
_RIGHT = (
    r"[ \t]+(?:(?:is|are)[ \t]+(?:(?:all|both|the|indeed)[ \t]+)*(?:correct|right|true|valid)\b"
    r"|because\b|since\b)|[都均皆全]?(?:是|为|对|正确|选)|[两二三四五六]?项|选项"
)
"""Words after a list that call it right, or give the reason."""
_END = (
    rf"(?!{_DENIED})"
    rf"(?:(?<=[)\]*])|(?=[ \t]*(?:$|[\n.,;:!?、。…)\]】”’>}}<])|{_RIGHT})|[ \t]+[-–—])"
)
# Possessive: a list that does not end after its last label is not cut back to an earlier one.
_LIST = re.compile(rf"({_ITEM}{_MORE}{{0,60}}+){_END}")
_GOES_ON = re.compile(
    r"[.。:)]*[ \t]*[(\[*]*[A-Z](?![A-Za-z])[)\]*]*[ \t]*(?:$|[.,;、])"
    r"|[^\n]*\b(?:maybe|perhaps|possibly|probably|likely)[ \t]+[(\[*]*(?![AI][ \t]+[a-z])"
    r"[A-Z](?![A-Za-z])|[^\n]*(?:可能|也许|或许)(?:还?有|是)?[A-Z](?![A-Za-z])"
)
"""Another label after a list, in a different form."""
_LINE = re.compile(rf"[\s*•-]*+{_OPEN}([A-Za-z])(?![A-Za-z]){_SHUT}[ \t]*($|[.:)])")
_LETTERS = re.compile(rf"(?<![A-Za-z])(?!{_AND}\b)[A-Za-z]+")
_LABEL = re.compile(rf"{_OPEN}([a-z])(?![a-z]){_SHUT}[.:)]*{_SHUT}")
_BESIDE = re.compile(r"[ ]*[-–—(\[\"'*]*[ ]*")
_NEXT = re.compile(r"[)\]\"'*.]*(?:[ ]*[,;、/&+和与及][ ]*(?:and\b[ ]*)?|[ ]+and\b[ ]*|[ ]+|$)")
_FURTHER = re.compile(
    r"(?:[,;、/&+和与及或]|\b(?:and|or|also|plus)\b)[ \t]*[(\[*]*"
    r"(?:[A-Za-z][)\]*]*[.:)]|[A-Z][)\]*]*[ \t]*(?:$|[,;、]))",
)
"""Another label after the text of a label's choice."""
_MARKS = 50
_UNREADABLE = "AA"
"""Replaces a list that can't be read completely: like a run that contains a label twice, it names
nothing.
"""


def read_letters(
    reply: str, choices: Sequence[str], *, multi_select: bool
) -> tuple[int, ...] | None:
    """The positions that a reply chooses, ascending and each once; None if the rule reads none."""
    text = unicodedata.normalize("NFKC", reply).strip()
    # 57 questions of OpsEval have a choice that is broken over lines.
    for choice in choices:
        if "\n" in choice:
            text = text.replace(unicodedata.normalize("NFKC", choice), " ".join(choice.split()))

    marks = deque(_MARK.finditer(text), maxlen=_MARKS)
    parts = [text[mark.end() :] for mark in reversed(marks)] + [text]

    for part in parts:
        chosen = _by_labels(part, choices, multi_select)
        if chosen:
            return chosen
        if chosen is not None:
            break

    # A text much longer than all the choices does not consist of them.
    longest = 2 * sum(map(len, choices)) + 20 * len(choices) + 100
    for part in parts:
        if len(part) <= longest and (texts := _by_text(part, choices, multi_select)):
            return texts

    return None


def exact_set(chosen: Collection[Hashable], right: Collection[Hashable]) -> float:
    """1.0 if both contain the same choices, else 0.0."""
    return float(set(chosen) == set(right))


def jaccard(chosen: Collection[Hashable], right: Collection[Hashable]) -> float:
    """Choices in both over choices in either, in [0, 1]: partial credit if several are right. 1.0
    for two empty sets.
    """
    either = set(chosen) | set(right)
    if not either:
        return 1.0

    return len(set(chosen) & set(right)) / len(either)


def _by_labels(part: str, choices: Sequence[str], multi_select: bool) -> tuple[int, ...] | None:
    """Positions of the labels that begin a text; empty if unreadable, None if there are none."""
    # The pattern also matches nothing, so there is always a match.
    start = part[_LEAD.match(part).end() :]  # type: ignore[union-attr]
    if multi_select and (labels := _labels_of_lines(start)):
        return _positions(labels, len(choices))

    with_texts = _labelled_texts(start, choices)
    if with_texts is not None:
        return with_texts

    labels = _labels_of_list(start)
    return _positions(labels, len(choices)) if labels else None


def _labels_of_list(text: str) -> list[str]:
    """The labels, or runs of labels, of the list at the start of a text.

    An unreadable run replaces a list that can't be read completely.
    """
    match = _LIST.match(text)
    if match is None:
        return []

    line = text[match.end() :].partition("\n")[0]
    if _GOES_ON.match(line) or _FURTHER.search(line):
        return [_UNREADABLE]

    return _LETTERS.findall(match[1])


def _labelled_texts(text: str, choices: Sequence[str]) -> tuple[int, ...] | None:
    """Label positions on a line of only labels, at least one with its choice's text; else None."""
    line = " ".join(text.partition("\n")[0].casefold().split())
    texts = list(map(_plain, choices))
    if len(line) > 2 * sum(map(len, texts)) + 20 * len(texts) + 100:
        return None

    positions, has_any_text, at = set(), False, 0
    while at < len(line):
        label = _LABEL.match(line, at)
        if label is None or ord(label[1]) - ord("a") >= len(texts):
            return None

        position, end = ord(label[1]) - ord("a"), label.end()
        # The pattern also matches nothing, so there is always a match.
        start = _BESIDE.match(line, end).end()  # type: ignore[union-attr]
        if texts[position] and line.startswith(texts[position], start):
            has_any_text = True
            end = start + len(texts[position])

        divided = _NEXT.match(line, end)
        if divided is None or divided.end() == at:
            return None

        positions.add(position)
        at = divided.end()

    return tuple(sorted(positions)) if has_any_text else None


def _labels_of_lines(text: str) -> list[str]:
    """The labels of two or more lines that all begin with one in the same form.

    The forms are a bare label, and a label before punctuation.
    """
    lines = list(filter(str.strip, text.splitlines()))
    matches = list(filter(None, map(_LINE.match, lines)))
    forms = {bool(match[2]) for match in matches}
    if len(matches) < len(lines) or len(lines) < 2 or len(forms) > 1:
        return []

    return [match[1] for match in matches]


def _positions(runs: Sequence[str], count: int) -> tuple[int, ...]:
    """Positions of the labels; empty if one is out of range, or a run contains one twice."""
    positions = {ord(label) - ord("A") for label in "".join(runs).upper()}
    if max(positions) >= count or any(len(set(run)) < len(run) for run in runs):
        return ()

    return tuple(sorted(positions))


def _by_text(text: str, choices: Sequence[str], multi_select: bool) -> tuple[int, ...] | None:
    """Positions of the choices whose texts make up this text; None if any part is another text."""
    known: dict[str, set[int]] = {}
    for position, choice in enumerate(choices):
        for form in (choice, f"{chr(ord('A') + position)} {choice}"):
            known.setdefault(_plain(form), set()).add(position)

    divisions = [[text]]
    if multi_select:
        divisions += [re.split(mark, text) for mark in (r"\n", r"[\n;]", r"[\n;,、]")]

    for division in divisions:
        matches = [known.get(part, set()) for part in map(_plain, division) if part]
        if matches and all(len(positions) == 1 for positions in matches):
            return tuple(sorted(set().union(*matches)))

    return None


def _plain(text: str) -> str:
    """Lower case, single spaces, without the marks around it."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(" .。:*_`\"'“”-")
