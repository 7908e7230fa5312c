"""A planted question, and the statements that it rests on."""

from msgspec import Struct

from memeval.datasets.synthetic.words import PERSON, PLACE

IE, MR, TR, KU, CR, ABS = ABILITIES = ("IE", "MR", "TR", "KU", "CR", "ABS")

ANSWERED = ABILITIES[:5]

Key = tuple[str, str, str]
"""Subject of a fact: its kind, the person, and the attribute or event."""


class Possession(Struct, frozen=True):
    """Something that a person has."""

    owner: str
    attribute: str
    kind: str
    """Kind of its value."""

    @property
    def key(self) -> Key:
        return ("has", self.owner, self.attribute)

    @property
    def question(self) -> str:
        asking = {PERSON: "Who", PLACE: "Where"}.get(self.kind, "What")
        return f"{asking} is {self.owner}'s {self.attribute}?"

    def fill(self, form: str, whose: str, value: str) -> str:
        """Fills a sentence template with whose it is, the attribute, the verb and the value."""
        verb = "is in" if self.kind == PLACE else "is"
        return form.format(whose, self.attribute, verb, value)


class Statement(Struct, frozen=True):
    """One turn that states something."""

    depth: float
    """Depth in the haystack, as a share of the tokens, in [0, 1)."""
    speaker: int
    """Index of the speaker: 0 or 1."""
    text: str
    days_ago: int = 0
    """Days between the event and the session."""


class Plant(Struct, frozen=True):
    """A question with the statements that it rests on, in the order in which they are made."""

    ability: str
    question: str
    gold: tuple[str, ...] = ()
    """Empty if a refusal is right, or if dates determine the gold."""
    statements: tuple[Statement, ...] = ()
    evidence: tuple[int, ...] = ()
    """Indices of the statements that contain the answer."""
    rivals: tuple[tuple[str, ...], ...] = ()
    """The golds of both possible answers to the question which of two things happened first."""
    fallback_question: str = ""
    """Asked instead if both events happened on the same day: when the last one happened."""
