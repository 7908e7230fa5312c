"""Reads a reply to a question whose choices are numbered 0 to 9.

The reading rule affects the score more than the model does, so it is short and closed: see `How a
reply is read` in docs/datasets/locomo_mc10.md.

So that no reply takes long to read, only the last 50 occurrences of `answer` are read, and no text
is compared that is much longer than the longest choice.
"""

import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

_LEAD = re.compile(
    r"(?:[\s:=*_`\"'“”‘’(\[{<#>)\]是]|[-–—]\s"
    r"|\b(?:is|was|would be|should be|must be|the|correct|right|best|final|option|choice|index"
    r"|number|label)\b)*",
    re.IGNORECASE,
)
"""Words and marks between `answer`, or the start of the reply, and the index."""
_SHUT = r"[)\]}*_`\"'”’>]*"
DENIED = (
    r"[ \t]*+(?:[.,;:)–—-][ \t]*+)?(?:which[ \t]+)?(?:"
    r"(?:is|are|was|were|seems?|looks?|can|could|would[ \t]+be|must[ \t]+be)[ \t]+"
    r"(?:[a-z]{3,10}ly[ \t]+)?"
    r"(?:not|never|no|wrong|incorrect|false|out|excluded|ruled[ \t]+out|impossible|unlikely)\b"
    r"|(?:isn|aren|wasn|weren|can|couldn)['’]?t\b|cannot\b"
    r"|\(?(?:wrong|incorrect|false)\b[ \t]*(?:[.,;)!\n]|$|because\b|since\b|as\b))"
)
"""Signs that an index is not the answer: `1 is wrong`, `1 (wrong)`; not `1, not 2`."""
_INDEX = re.compile(
    rf"(?P<index>[0-9])(?!\w){_SHUT}(?!{DENIED})"
    r"(?:[ \t]*(?=\n|$)|[.:;)!?<](?!\d)|,(?!\s*\d)"
    r"|[ \t]+(?:[-–—(]|(?:is|because|since|as|which)\b))",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"(?P<index>[0-9])(?!\w|[.,:–-]\d){_SHUT}[ \t]*+[.:;,)–—-]*+[ \t]*(?P<rest>[^\n]*)"
)
_MARK = re.compile(r"\banswers?\b|答案", re.IGNORECASE)
_MARKS = 50
_BEFORE_TEXT = re.compile(r"[\s:=]*")
_AROUND_TEXT = re.compile(r"(?:[\s:=*_`\"'“”‘’(\[{<#>)\]]|[-–—]\s)*")
_SKIPPED_WORD = re.compile(
    r"(?:is|was|would be|should be|must be|the|option|choice|index|number|label)\b", re.IGNORECASE
)
"""Words that may be skipped between `answer` and the text of a choice."""
_AROUND = " \t\n.\"'“”‘’*_`"
_BRACKETS = "()[]{}<>"
_SLACK = 40
"""Maximum marks and spaces around a text."""


class _Choices:
    """The choices of a question, by their normalised texts."""

    def __init__(self, choices: Sequence[str]) -> None:
        self._choices = choices
        self._alike: dict[str, list[int]] = defaultdict(list)
        for position, choice in enumerate(choices):
            self._alike[_plain(choice)].append(position)

        self.longest = max(map(len, choices), default=0) + _SLACK
        """Maximum characters of a text that is compared."""

    def __len__(self) -> int:
        return len(self._choices)

    def is_text_of(self, text: str, position: int) -> bool:
        return len(text) <= self.longest and position in self._alike.get(_plain(text), ())

    def by_text(self, text: str) -> int | None:
        """The position of the choice with this text; of choices that differ only in letter case or
        marks, the one that is written in the same way.
        """
        if len(text) > self.longest or not text.strip():
            return None

        alike = self._alike.get(_plain(text), [])
        if len({self._choices[position] for position in alike}) <= 1:
            return next(iter(alike), None)

        # Strictest comparison first, to tell `The Sun` from `the sun`, `(unknown)` from `unknown`.
        for marks in ("", _AROUND, _AROUND + _BRACKETS):
            wanted = text.strip().strip(marks)
            same = [at for at in alike if self._choices[at].strip().strip(marks) == wanted]
            if same:
                return same[0]

        return None


def read_index(reply: str, choices: Sequence[str]) -> int | None:
    """The position of the choice that a reply names; None if it names none, or more than one."""
    # Full-width digits and brackets count as plain ones.
    text, known = unicodedata.normalize("NFKC", reply).strip(), _Choices(choices)
    index = _bare_index(text, 0, known)
    if index is None:
        index = known.by_text(text)

    marks = deque((match.end() for match in _MARK.finditer(text)), maxlen=_MARKS)
    while index is None and marks:
        index = _after_mark(text, marks.pop(), known)

    if index is None:
        index = _index(text, 0, known)
        # A list that begins with this number and continues with the next one is not a choice.
        if index is not None and re.search(rf"\n[^\S\n]*{index + 1}[.)]\s", text):
            return None

    return index


def _after_mark(text: str, mark: int, choices: _Choices) -> int | None:
    index = _bare_index(text, mark, choices)
    if index is not None:
        return index

    for line in _texts(text, mark, choices.longest):
        index = choices.by_text(line)
        if index is not None:
            return index

    return _index(text, mark, choices)


def _bare_index(text: str, start: int, choices: _Choices) -> int | None:
    """The index that is on a line alone or with the text of its choice."""
    match = _BARE.match(text, _end_of_lead(text, start))
    if match is None or int(match["index"]) >= len(choices):
        return None

    index, rest = int(match["index"]), match["rest"]
    if rest.strip(_AROUND) and not choices.is_text_of(rest, index):
        return None

    return index


def _texts(text: str, mark: int, longest: int) -> Iterator[str]:
    """The line after a mark, first unchanged and then without the words that may be skipped."""
    # The pattern also matches nothing, so there is always a match.
    start = _BEFORE_TEXT.match(text, mark).end()  # type: ignore[union-attr]
    newline = text.find("\n", start)
    end = newline if newline >= 0 else len(text)

    while start < end:
        if end - start <= longest:
            yield text[start:end]

        start = _AROUND_TEXT.match(text, start, end).end()  # type: ignore[union-attr]
        if end - start <= longest:
            yield text[start:end]

        word = _SKIPPED_WORD.match(text, start, end)
        if word is None:
            return

        start = word.end()


def _index(text: str, start: int, choices: _Choices) -> int | None:
    match = _INDEX.match(text, _end_of_lead(text, start))
    if match is None or int(match["index"]) >= len(choices):
        return None

    return int(match["index"])


def _end_of_lead(text: str, start: int) -> int:
    return _LEAD.match(text, start).end()  # type: ignore[union-attr]


def _plain(text: str) -> str:
    """The text in one letter case, with single spaces, without marks around it."""
    bare = " ".join(unicodedata.normalize("NFKC", text).split()).strip(_AROUND + _BRACKETS)
    return bare.casefold() or text.strip().casefold()
