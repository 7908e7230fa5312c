"""Recognises a conversation's lines, verbatim, in a memory's results.

A store that separates cases never returns a line of another case.
"""

import re
from collections.abc import Callable, Iterable

HEAD = 6
"""Leading words by which a line is looked up; a shorter line must be the whole result."""
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")
_DATE = re.compile(r"^\[[^\]\n]*\] ")


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, without punctuation and spaces, which servers change."""
    return tuple(_WORD.findall(text.casefold()))


class ConversationLines:
    """Lines of conversations, stored as hashes."""

    def __init__(self) -> None:
        self._lines: set[int] = set()
        self._lengths: dict[int, set[int]] = {}
        """Lengths in words of the lines with the same first words, by the hash of these."""

    def add(self, text: str) -> None:
        """Adds a chunk's content, a line per turn."""
        for line in text.splitlines():
            words = words_of(line)
            self._lines.add(hash(words))
            if len(words) >= HEAD:
                self._lengths.setdefault(hash(words[:HEAD]), set()).add(len(words))

    def lines_in(self, text: str) -> Iterable[tuple[str, ...]]:
        """The lines that a text contains, as words."""
        whole = words_of(_DATE.sub("", text, count=1))
        if 1 < len(whole) < HEAD and hash(whole) in self._lines:
            yield whole

        words = words_of(text)
        for start in range(len(words) - HEAD + 1):
            for length in self._lengths.get(hash(words[start : start + HEAD]), ()):
                line = words[start : start + length]
                if len(line) == length and hash(line) in self._lines:
                    yield line


_all_lines = ConversationLines()
"""The lines that this process has sent to served memories, of all cases and runs, and those of
cases that other processes send.
"""
_read_data: set[str] = set()
"""The runs whose data was read into `_all_lines`."""


class CaseLines:
    """The texts sent to the memory of one case."""

    def __init__(self, run: str, contents: Callable[[], Iterable[str]] | None) -> None:
        """`contents` reads all cases of the run's data set."""
        self._run, self._contents = run, contents
        self.texts: list[str] = []

    def add(self, text: str, content: str) -> None:
        """Notes text that is sent; `content` is the text without the date."""
        self.texts.append(text)
        _all_lines.add(content)

    def foreign_line(self, text: str) -> str | None:
        """A line of another case that a result repeats word for word, if there is one."""
        if self._contents is not None and self._run not in _read_data:
            _read_data.add(self._run)
            for content in self._contents():
                _all_lines.add(content)

        for line in _all_lines.lines_in(text):
            if not is_line_of(line, self.texts):
                return " ".join(line)

        return None


def is_line_of(line: tuple[str, ...], texts: Iterable[str]) -> bool:
    """Whether one of the texts contains a line."""
    searched = f" {' '.join(line)} "
    return any(searched in f" {' '.join(words_of(text))} " for text in texts)
