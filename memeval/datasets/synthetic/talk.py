"""The talk around the planted facts: chat, and remarks of the speakers about other people."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random

from memeval.datasets.synthetic.plant import Key, Possession
from memeval.datasets.synthetic.words import (
    AGO,
    ATTRIBUTES,
    FORMS,
    PLAIN,
    VERBS,
    WORDS,
    add_opening,
    draw_value,
)

Part = str | Sequence[str]
"""Fixed text, or the values of which one is picked."""

PLAIN_SHARE = 0.6
"""Share of the remarks about other people's attributes that are phrased like facts; the rest are
phrased like updates and disputed facts.
"""

_SLOT = re.compile(r"\{(\w+)\}")


class Talk:
    """Creates turns that state nothing that is asked."""

    def __init__(
        self,
        rng: Random,
        people: tuple[str, ...],
        claimed: Collection[Key],
        values: Collection[str],
        distractors: float,
    ) -> None:
        """States nothing about the planner's keys (`claimed`), and uses none of its `values`.

        `distractors` is the share of turns that state something like a planted fact about other
        people, or mention a subject of the questions.
        """
        self._rng, self._people, self._share = rng, people, distractors
        self._taken, self._values = claimed, values
        attributes = [attribute for attribute, _ in ATTRIBUTES]
        slots = {"name": people, "attribute": attributes, **WORDS.slots}
        self._chat = [parts(template, slots) for template in WORDS.talk]
        self._mentions = [parts(template, slots) for template in WORDS.mentions]
        self._others: tuple[Callable[[], str], ...] = (
            self._attribute,
            self._attribute,
            self._event,
            self._unrelated_event,
            self._mention,
            self._mention,
        )

    def turn(self) -> str:
        """Text of a turn: one to three sentences."""
        random = self._rng.random
        sentences = [self._fill(self._chat) for _ in range(1 + int(random() * 3))]
        if random() < self._share:
            sentences[-1] = self._others[int(random() * len(self._others))]()

        return " ".join(sentences)

    def _fill(self, templates: Sequence[Sequence[Part]]) -> str:
        random = self._rng.random
        chosen = templates[int(random() * len(templates))]
        return "".join(
            part if isinstance(part, str) else part[int(random() * len(part))] for part in chosen
        )

    def _mention(self) -> str:
        """The words of a question without its answer, even of a question that is asked."""
        return self._fill(self._mentions)

    def _attribute(self) -> str:
        """A statement about a person's attribute that no question asks for."""
        while True:
            owner = self._rng.choice(self._people)
            possession = Possession(owner, *self._rng.choice(ATTRIBUTES))
            if possession.key not in self._taken:
                break

        while (value := draw_value(self._rng, possession.kind)) in self._values:
            pass

        if self._rng.random() < PLAIN_SHARE:
            return add_opening(self._rng, possession.fill(PLAIN, f"{owner}'s", value))

        return possession.fill(self._rng.choice(FORMS), f"{owner}'s", value)

    def _event(self) -> str:
        who, what = self._free("did", tuple(VERBS))
        return f"{who} {what} {self._rng.choice(AGO)[1]}."

    def _unrelated_event(self) -> str:
        """A purchase, an expense or a run of somebody whom no such question is about."""
        rng = self._rng
        kind = rng.randrange(3)
        if kind == 0:
            who, what = self._free("collects", WORDS.collections)
            return f"{who} bought a {rng.choice(WORDS.pieces)} piece for the {what} collection."

        if kind == 1:
            who, what = self._free("spends", WORDS.projects)
            return f"{who} spent {rng.randint(11, 95)} crowns on the {what}."

        who, what = self._free("runs", WORDS.races)
        return f"{who} ran {rng.randint(3, 29)} miles at the {what}."

    def _free(self, verb: str, things: Sequence[str]) -> tuple[str, str]:
        while True:
            who, what = self._rng.choice(self._people), self._rng.choice(things)
            if (verb, who, what) not in self._taken:
                return who, what


def parts(template: str, slots: Mapping[str, Sequence[str]]) -> tuple[Part, ...]:
    """A template's fixed and picked parts: joining them is several times faster than formatting."""
    made: list[Part] = []
    for index, piece in enumerate(_SLOT.split(template)):
        if index % 2:
            made.append(slots[piece])
        elif piece:
            made.append(piece)

    return tuple(made)
