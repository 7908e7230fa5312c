"""Turns that text quotes: the evidence in memories that return no turn ids."""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from memeval.text.words import search_terms

Name = TypeVar("Name", bound=Hashable)

GRAM = 5
"""Number of words in an n-gram."""
QUOTED = 0.8
"""Share of a text's 5-grams that a result must contain."""


class Quotations(Generic[Name]):
    """Finds the texts that a memory's results quote, by name.

    A text counts as quoted if at least 80 % of its distinct word 5-grams occur in a result. A
    shorter text counts if the result contains all its words in a row; one without words never does.
    Case and punctuation don't count.
    """

    def __init__(self, texts: Mapping[Name, str]) -> None:
        self._names: dict[int, dict[int, list[Name]]] = defaultdict(dict)
        """Names of the texts that contain an n-gram, by its length and hash."""
        self._sizes: dict[Name, int] = {}
        """Number of distinct n-grams of each text."""
        for name, text in texts.items():
            words = search_terms(text)
            length = min(len(words), GRAM)
            grams = _grams(words, length)
            self._sizes[name] = len(grams)
            for gram in grams:
                self._names[length].setdefault(gram, []).append(name)

    def found_in(self, result: str) -> tuple[Name, ...]:
        """The names of the texts that a result quotes, in their order."""
        words = search_terms(result)
        shared: Counter[Name] = Counter()
        for length, names in self._names.items():
            for gram in _grams(words, length) & names.keys():
                shared.update(names[gram])

        return tuple(
            name for name, size in self._sizes.items() if size and shared[name] >= QUOTED * size
        )


def lines_of_turns(
    content: str, turn_ids: Sequence[str], speakers: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Text of each turn of a chunk, without its speaker; `content` has a line per turn."""
    lines = content.splitlines()
    if len(lines) != len(turn_ids):
        # Turns of several lines can't be told apart.
        lines = [content] * len(turn_ids)

    for turn, line in zip(turn_ids, lines, strict=True):
        speaker, _, statement = line.partition(": ")
        yield turn, statement if speaker in speakers else line


def _grams(words: Sequence[str], length: int) -> set[int]:
    """Hashes of the distinct n-grams of this length; empty for length 0."""
    if length == 0:
        return set()

    starts = range(len(words) - length + 1)
    return {hash(tuple(words[start : start + length])) for start in starts}
