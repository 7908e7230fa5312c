"""The words of generated cases and canaries, and values that occur nowhere else."""

from collections.abc import Mapping, Sequence
from random import Random

import msgspec

from memeval.datasets.chance import pick
from memeval.text.value_search import occurs_in, plain
from memeval.text.yaml_files import load_sibling

EMAIL, CODE, PHONE, LATIN = "email", "code", "phone", "latin"
"""Kinds of values; any other is a made-up word in the script of the language."""


class Language(msgspec.Struct, frozen=True):
    """The words of one language."""

    user: str
    assistant: str
    first: Sequence[str]
    last: Sequence[str]
    longer: str
    """Turns a name into another name: `Mara Velt` into `Mara Velten`."""
    attributes: Mapping[str, Mapping[str, str]]
    """The forms of each attribute, `word` among them."""
    state: str
    again: str
    two: str
    updates: Sequence[str]
    correct: str
    expires: str
    orders: str
    forget: str
    noted: Sequence[str]
    filler: Sequence[str]
    topics: Sequence[str]
    ask: str
    ask_before: str
    ask_when: str
    ask_expired: str
    paraphrased: str
    neighbours: str
    role_play: str
    list: str
    over: Sequence[str]
    """Sentence that something has ended."""
    valid: Sequence[str]
    """Sentence that something has not ended."""
    digits: Sequence[str]

    def full_name(self, first: str, last: str) -> str:
        """A person's name; in Chinese without a space."""
        gap = " " if self.first[0].isascii() else ""
        return f"{first}{gap}{last}"


class InventedWords(msgspec.Struct, frozen=True):
    """The content of `invented.yaml`."""

    syllables: Sequence[str]
    characters: Sequence[str]
    attributes: Mapping[str, str]
    """The kind of value of each attribute."""
    languages: Mapping[str, Language]


WORDS = load_sibling(__file__, "invented.yaml", InventedWords)


class Values:
    """Draws values that do not contain each other."""

    def __init__(self, rng: Random, language: str) -> None:
        self._rng, self._is_chinese = rng, language == "zh"
        self._taken: list[str] = []

    def draw(self, attribute: str) -> str:
        """A value of an attribute that was not drawn before."""
        kind = WORDS.attributes[attribute]
        while not self.claim(value := self._make(kind)):
            pass

        return value

    def word(self) -> str:
        """A made-up word in Latin letters."""
        while not self.claim(word := self._latin()):
            pass

        return word

    def claim(self, value: str) -> bool:
        """Whether a value differs from all drawn ones; if so, it is recorded as drawn."""
        bare = plain(value)
        for other in self._taken:
            if bare in plain(other) or plain(other) in bare or occurs_in(value, other):
                return False

        self._taken.append(value)
        return True

    def _make(self, kind: str) -> str:
        if kind == CODE:
            return f"{self._latin()[:3].upper()}-{self._number(100, 999)}"
        if kind == PHONE:
            return f"0{self._number(150, 799)} {self._number(100_000, 999_999)}"
        if kind == EMAIL:
            return f"{self._latin().lower()}@{self._latin().lower()}.org"
        if self._is_chinese and kind != LATIN:
            return "".join(pick(self._rng, WORDS.characters) for _ in range(4))

        return self._latin()

    def _latin(self) -> str:
        return "".join(pick(self._rng, WORDS.syllables) for _ in range(4)).capitalize()

    def _number(self, least: int, most: int) -> int:
        return least + int(self._rng.random() * (most + 1 - least))


def spell(value: str, language: Language) -> str:
    """A code with its digits as words: `VEL-407` as `VEL four zero seven`."""
    letters, _, number = value.partition("-")
    return " ".join([letters, *(language.digits[int(digit)] for digit in number)])
