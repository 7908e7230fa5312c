"""The letters of OpsEval's golds, and choices that are written inside a question's text."""

import re
import unicodedata
from collections.abc import Iterator
from string import ascii_uppercase

from msgspec import Struct

MIN_CHOICES = 2
# Golds come as `A`, `ABCD`, `C,D,F`, `A, ` and in other forms.
CLEAN_LETTERS = re.compile(r"[A-Z]+|[A-Z](,[A-Z])+")
LETTERS = re.compile(r"[A-Za-z](?:[\s,;、/]*[A-Za-z])*")
NUMBER = re.compile(r"[1-9]")
# 15 rows of the test split give their answer away, in this form or as in `MARKED`.
REVEALED_ANSWER = re.compile(r"\s*(?:答案\s*:|(?<=[。?!])\s*答案是|\n\s*答案是).*", re.DOTALL)
"""The answer that some translated questions end with."""
MARKED = re.compile(r"\s*[(（]正确答案[)）]")
"""The mark of the right choice in one row."""
_POINT = r"[ \t]*[.:)、．：）]"
_FRONT = r"[ \t]*[\"“]?[(（]?[ \t]*"


class LetteredText(Struct, frozen=True):
    """Text that was cut into a question and its choices."""

    question: str
    choices: tuple[str, ...]
    irregularities: tuple[str, ...] = ()
    """How unusual labels are written: those that are not at the start of a line before a point,
    bracket, colon or comma.
    """


def gold_letters(text: str, count: int) -> tuple[int, ...] | None:
    """Positions that a gold names among `count` choices, without those out of range; None if it
    names none.

    Letters may be in either case, separated by commas, blanks or nothing; marks at the ends are
    dropped. A single digit n means the n-th choice.
    """
    # Chinese files contain letters and points in full width.
    plain = unicodedata.normalize("NFKC", text).strip(" \t\r\n,.;、。")
    if NUMBER.fullmatch(plain):
        return (int(plain) - 1,) if int(plain) <= count else None
    if not LETTERS.fullmatch(plain):
        return None

    letters = re.findall("[A-Z]", plain.upper())
    # A word, and not a list of letters.
    if len(set(letters)) < len(letters):
        return None

    positions = sorted(map(ascii_uppercase.index, letters))
    return tuple(position for position in positions if position < count) or None


def without_answer(question: str) -> str:
    """The question without an answer that it gives away: cut at `答案：`, or at a sentence that
    begins with `答案是`.
    """
    match = REVEALED_ANSWER.search(
        question.replace("：", ":").replace("？", "?").replace("！", "!")
    )
    return question[: match.start()] if match else question


def split_choices(text: str) -> LetteredText | None:
    """Splits a string into a question and two or more lettered choices; None without choices.

    The choices are the longest run `A`, `B`, `C` …, the last one of equal runs. A label is at the
    start of a line before a point, bracket, colon or comma. A missing label is searched for within
    a line, then at the start of a line without a mark. Failing that, another letter at the start of
    a line counts as the missing label if the next label follows.
    """
    body = text.strip().strip('"“”').strip()
    runs = [list(_run(body, start)) for start in _starts(body)]
    # Of equally long runs, the last: a question may quote a list before its own choices.
    best = max(runs, key=lambda run: (len(run), run[0][0]), default=[])
    if len(best) < MIN_CHOICES:
        return None

    choices, irregularities = [], []
    ends = [start for start, _, _ in best[1:]] + [len(body)]
    for (_, after, irregularity), end in zip(best, ends, strict=True):
        choices.append(body[after:end].strip())
        if irregularity:
            irregularities.append(irregularity)

    if not all(choices):
        return None

    return LetteredText(body[: best[0][0]].strip(), tuple(choices), tuple(irregularities))


_Mark = tuple[int, int, str]
"""Start of a label, start of its choice, and the label's spelling if that is unusual."""


def _starts(body: str) -> list[_Mark]:
    """All possible labels A: at the starts of lines, else within lines."""
    for pattern, irregularity in ((_at_line("A"), ""), (_within("A"), "A within a line")):
        starts = [(*match.span(), irregularity) for match in pattern.finditer(body)]
        if starts:
            return starts

    return []


def _run(body: str, start: _Mark) -> Iterator[_Mark]:
    """The labels, starting with A."""
    yield start
    after = start[1]
    for letter in ascii_uppercase[1:]:
        mark = _next(body, after, letter)
        if mark is None:
            return

        yield mark
        after = mark[1]


def _next(body: str, after: int, letter: str) -> _Mark | None:
    """The next label, in the first of its possible forms."""
    if match := _at_line(letter).search(body, after):
        return *match.span(), ""
    if match := _within(letter).search(body, after):
        return *match.span(), f"{letter} within a line"
    if match := re.compile(rf"^[ \t]*{letter}[ \t]+(?=\S)", re.MULTILINE).search(body, after):
        return *match.span(), f"{letter} without a mark"

    # 23 rows have a label that is misplaced or misspelt, such as `O)` for `C)`: such a label is
    # read if the next label follows.
    following = _at_line(re.escape(chr(ord(letter) + 1))).search(body, after)
    if following and (match := _at_line("[A-Z]").search(body, after, following.start())):
        return *match.span(), f"{letter} written {match.group().strip()[0]}"

    return None


def _at_line(letter: str) -> re.Pattern[str]:
    return re.compile(rf"^{_FRONT}{letter}{_POINT}", re.MULTILINE)


def _within(letter: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=[\s;；。，,])[(（]?{letter}{_POINT}(?![A-Za-z_])")
