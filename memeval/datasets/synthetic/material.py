"""What plants are made of: people, attributes and values, each used once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from memeval.datasets.synthetic import words
from memeval.datasets.synthetic.plant import (
    Key,
    Statement,
)
from memeval.datasets.synthetic.sentences import add_opening, copula, draw_value


@dataclass(kw_only=True)
class Material:
    """What plants are made of: people, attributes and values, each used once."""

    rng: Random
    speakers: tuple[str, str]
    people: tuple[str, ...]
    taken: set[Key] = field(default_factory=set)
    """What only plants may say."""
    values: set[str] = field(default_factory=set)
    """Values that no other fact may take."""

    def attribute(self, owners: Sequence[str]) -> tuple[str, str, str]:
        """Whose attribute, which, and its kind; taken from now on."""
        while True:
            owner, (attribute, kind) = self.rng.choice(owners), self.rng.choice(words.ATTRIBUTES)
            if self.take(("has", owner, attribute)):
                return owner, attribute, kind

    def subject(self, verb: str, things: Sequence[str]) -> tuple[str, str]:
        """Who does it, and to what; taken from now on."""
        while True:
            who, what = self.rng.choice((*self.people, *self.speakers)), self.rng.choice(things)
            if self.take((verb, who, what)):
                return who, what

    def event(self, depth: float) -> tuple[Statement, str, tuple[str, str]]:
        """A thing that happened: the turn that says so, the question when it happened, and who did
        what.
        """
        events = {deed: verb for verb, deed in words.EVENTS}
        who, what = self.subject("did", tuple(events))
        days, ago = self.rng.choice(words.AGO)
        speaker = self.speaker_of(who)
        verb = f"{events[what]} {what.split(' ', 1)[1]}"
        return (
            Statement(
                depth=depth,
                speaker=speaker,
                text=f"{self.me(who, speaker)} {what} {ago}.",
                days_ago=days,
            ),
            f"When did {who} {verb}?",
            (who, f"{who} {what}"),
        )

    def tell_attribute(
        self,
        depth: float,
        owner: str,
        attribute: str,
        kind: str,
        value: str,
        *,
        speaker: int | None = None,
    ) -> Statement:
        """The turn that states an attribute."""
        speaker = self.speaker_of(owner) if speaker is None else speaker
        return Statement(
            depth=depth,
            speaker=speaker,
            text=add_opening(
                self.rng, f"{self.whose(owner, speaker)} {attribute} {copula(kind)} {value}."
            ),
        )

    def take(self, key: Key) -> bool:
        """Whether a key was free; it is taken now."""
        free = key not in self.taken
        self.taken.add(key)
        return free

    def value(self, kind: str) -> str:
        """A value that no planted fact has had."""
        # How often this draws decides what is generated later: a change makes other cases.
        while (value := draw_value(self.rng, kind)) in self.values:
            pass

        self.values.add(value)
        return value

    def depths(self, last: float, count: int) -> list[float]:
        """Positions of `count` statements, ascending, the last one at `last`."""
        return [*sorted(self.rng.random() * last for _ in range(count - 1)), last]

    def speaker_of(self, who: str) -> int:
        """Who speaks about a person: the speakers speak about themselves."""
        return self.speakers.index(who) if who in self.speakers else self.rng.randrange(2)

    def whose(self, owner: str, speaker: int) -> str:
        return "my" if owner == self.speakers[speaker] else f"{owner}'s"

    def me(self, who: str, speaker: int) -> str:
        return "I" if who == self.speakers[speaker] else who
