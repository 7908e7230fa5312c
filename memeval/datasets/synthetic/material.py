"""Material for plants: people, attributes and values, each used once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from memeval.datasets.synthetic.plant import Key, Possession, Statement
from memeval.datasets.synthetic.words import AGO, ATTRIBUTES, PLAIN, VERBS, add_opening, draw_value


@dataclass(kw_only=True)
class PlantMaterial:
    """Material for plants: people, attributes and values, each used once."""

    rng: Random
    speakers: tuple[str, str]
    people: tuple[str, ...]
    claimed: set[Key] = field(default_factory=set)
    """Keys of facts that only plants may state."""
    values: set[str] = field(default_factory=set)
    """Values that no other fact may take."""

    @property
    def everybody(self) -> tuple[str, ...]:
        return (*self.people, *self.speakers)

    def possession(self, owners: Sequence[str]) -> Possession:
        """A possession of one of the owners, which is then taken."""
        while True:
            owner = self.rng.choice(owners)
            possession = Possession(owner, *self.rng.choice(ATTRIBUTES))
            if self.claim(possession.key):
                return possession

    def subject(self, verb: str, things: Sequence[str]) -> tuple[str, str]:
        """Person and object of an event, which are then taken."""
        while True:
            who, what = self.rng.choice(self.everybody), self.rng.choice(things)
            if self.claim((verb, who, what)):
                return who, what

    def event(self, depth: float) -> tuple[Statement, str, tuple[str, str]]:
        """An event: the turn that states it, the question when it happened, and who did what."""
        who, what = self.subject("did", tuple(VERBS))
        days, ago = self.rng.choice(AGO)
        speaker = self.speaker_of(who)
        text = f"{self.me(who, speaker)} {what} {ago}."
        statement = Statement(depth=depth, speaker=speaker, text=text, days_ago=days)
        verb = f"{VERBS[what]} {what.split(' ', 1)[1]}"
        return statement, f"When did {who} {verb}?", (who, f"{who} {what}")

    def tell(
        self, depth: float, possession: Possession, value: str, *, speaker: int | None = None
    ) -> Statement:
        """The turn that states what a person has."""
        if speaker is None:
            speaker = self.speaker_of(possession.owner)

        text = possession.fill(PLAIN, self.whose(possession.owner, speaker), value)
        return Statement(depth=depth, speaker=speaker, text=add_opening(self.rng, text))

    def tell_each(
        self, depth: float, speaker: int, sentences: Sequence[str]
    ) -> tuple[Statement, ...]:
        """A turn for each sentence, the last one at `depth`."""
        statements = []
        for when, text in zip(self.depths(depth, len(sentences)), sentences, strict=True):
            statements.append(Statement(depth=when, speaker=speaker, text=text))

        return tuple(statements)

    def claim(self, key: Key) -> bool:
        """Takes a key; returns whether it was free."""
        free = key not in self.claimed
        self.claimed.add(key)
        return free

    def value(self, kind: str) -> str:
        """A value that no planted fact has used."""
        # The number of draws here affects everything later: changing it changes the cases.
        while (value := draw_value(self.rng, kind)) in self.values:
            pass

        self.values.add(value)
        return value

    def depths(self, last: float, count: int) -> list[float]:
        """Depths of `count` statements, ascending, the last one at `last`."""
        return [*sorted(self.rng.random() * last for _ in range(count - 1)), last]

    def speaker_of(self, who: str) -> int:
        """Index of the speaker who talks about a person: speakers talk about themselves."""
        return self.speakers.index(who) if who in self.speakers else self.rng.randrange(2)

    def whose(self, owner: str, speaker: int) -> str:
        return "my" if owner == self.speakers[speaker] else f"{owner}'s"

    def me(self, who: str, speaker: int) -> str:
        return "I" if who == self.speakers[speaker] else who
