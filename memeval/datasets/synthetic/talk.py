"""The talk around the planted facts: chat, and what the speakers say about other people."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from random import Random

from memeval.datasets.synthetic import words
from memeval.datasets.synthetic.plant import Key
from memeval.datasets.synthetic.sentences import add_opening, copula, draw_value

Part = str | tuple[str, ...]
"""Fixed text, or the values of which one is picked."""

PLAIN = 0.6
"""Share of the attributes of others that are phrased like facts; the rest are phrased like updates
and disputed facts.
"""

_SLOT = re.compile(r"\{(\w+)\}")


class Talk:
    """Makes turns that say nothing about what is asked."""

    def __init__(
        self,
        rng: Random,
        people: tuple[str, ...],
        taken: Collection[Key],
        values: Collection[str],
        distractors: float,
    ) -> None:
        """Says nothing about the planner's keys (`taken`), and uses none of its `values`.

        `distractors` is the share of turns that say something like a planted fact about other
        people, or name what is asked about.
        """
        self._rng, self._people, self._taken, self._values, self._share = (
            rng,
            people,
            taken,
            values,
            distractors,
        )
        slots = {
            "name": people,
            "food": words.FOODS,
            "spot": words.SPOTS,
            "hobby": words.HOBBIES,
            "mood": words.MOODS,
            "sky": words.SKIES,
            "time": words.TIMES,
            "object": words.OBJECTS,
            "attribute": tuple(attribute for attribute, _ in words.ATTRIBUTES),
        }
        self._chat = [parts(template, slots) for template in words.TALK]
        self._mentions = [parts(template, slots) for template in words.MENTIONS]
        self._others: tuple[Callable[[], str], ...] = (
            self._attribute,
            self._attribute,
            self._event,
            self._deed,
            self._mention,
            self._mention,
        )

    def turn(self) -> str:
        """What a turn says: one to three sentences."""
        random = self._rng.random
        said = [self._fill(self._chat) for _ in range(1 + int(random() * 3))]
        if random() < self._share:
            said[-1] = self._others[int(random() * len(self._others))]()

        return " ".join(said)

    def _fill(self, templates: Sequence[Sequence[Part]]) -> str:
        random = self._rng.random
        chosen = templates[int(random() * len(templates))]
        return "".join(
            part if isinstance(part, str) else part[int(random() * len(part))] for part in chosen
        )

    def _mention(self) -> str:
        """A question's words without its answer, also for what is asked about."""
        return self._fill(self._mentions)

    def _attribute(self) -> str:
        """Something about a person that is not asked."""
        while True:
            owner, (attribute, kind) = (
                self._rng.choice(self._people),
                self._rng.choice(words.ATTRIBUTES),
            )
            if ("has", owner, attribute) not in self._taken:
                break

        while (value := draw_value(self._rng, kind)) in self._values:
            pass

        if self._rng.random() < PLAIN:
            return add_opening(self._rng, f"{owner}'s {attribute} {copula(kind)} {value}.")

        return self._rng.choice(words.FORMS).format(f"{owner}'s", attribute, copula(kind), value)

    def _event(self) -> str:
        who, what = self._free("did", [told for _, told in words.EVENTS])
        return f"{who} {what} {self._rng.choice(words.AGO)[1]}."

    def _deed(self) -> str:
        """A piece bought, crowns spent or miles run by somebody whom no such question is about."""
        rng = self._rng
        kind = rng.randrange(3)
        if kind == 0:
            who, what = self._free("collects", words.COLLECTIONS)
            return f"{who} bought a {rng.choice(words.PIECES)} piece for the {what} collection."

        if kind == 1:
            who, what = self._free("spends", words.PROJECTS)
            return f"{who} spent {rng.randint(11, 95)} crowns on the {what}."

        who, what = self._free("runs", words.RACES)
        return f"{who} ran {rng.randint(3, 29)} miles at the {what}."

    def _free(self, verb: str, things: Sequence[str]) -> tuple[str, str]:
        while True:
            who, what = self._rng.choice(self._people), self._rng.choice(things)
            if (verb, who, what) not in self._taken:
                return who, what


def parts(template: str, slots: dict[str, tuple[str, ...]]) -> tuple[Part, ...]:
    """A template as its fixed and its picked parts: joining them is several times quicker than
    formatting.
    """
    pieces = _SLOT.split(template)
    return tuple(
        slots[piece] if index % 2 else piece for index, piece in enumerate(pieces) if piece
    )
