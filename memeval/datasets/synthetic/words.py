"""The words that synthetic conversations are made of: those of `words.yaml`, and sentences that
plants and talk share.
"""

from collections.abc import Mapping, Sequence
from random import Random

import msgspec

from memeval.datasets.chance import pick
from memeval.text.yaml_files import load_sibling


class SyntheticWords(msgspec.Struct, frozen=True):
    """The content of `words.yaml`."""

    speakers: Sequence[str]
    people: Sequence[str]
    first_names: Sequence[str]
    last_names: Sequence[str]
    place_starts: Sequence[str]
    place_ends: Sequence[str]
    adjectives: Sequence[str]
    nouns: Sequence[str]
    attributes: Mapping[str, Sequence[str]]
    """Possessions of a person, by the kind of their value."""
    events: Mapping[str, str]
    """Wording of events in statements, by the verb of the question."""
    ago: Mapping[str, int]
    """Days before the session, by the wording in a statement."""
    collections: Sequence[str]
    pieces: Sequence[str]
    projects: Sequence[str]
    races: Sequence[str]
    openings: Sequence[str]
    slots: Mapping[str, Sequence[str]]
    """Values for the slots of the chat's templates."""
    talk: Sequence[str]
    mentions: Sequence[str]


WORDS = load_sibling(__file__, "words.yaml", SyntheticWords)

PERSON, PLACE, NUMBER = "person", "place", "number"
ATTRIBUTES = [(name, kind) for kind, names in WORDS.attributes.items() for name in names]
VERBS = {deed: verb for verb, deed in WORDS.events.items()}
"""The verb of the question about each event, by its wording in statements."""
AGO = [(days, text) for text, days in WORDS.ago.items()]
COUNTED = ("zero", "one", "two", "three", "four", "five", "six")

PLAIN = "{} {} {} {}."
NEWS, SURE, HEARD, CORRECTED = FORMS = (
    "There is news: {} {} {} {} now.",
    "I am sure that {} {} {} {}.",
    "I heard that {} {} {} {}.",
    "I have to correct myself: {} {} {} {}.",
)
"""Templates for an attribute that changes or is disputed; slots: whose, attribute, verb, value."""


def add_opening(rng: Random, sentence: str) -> str:
    """A sentence after a random opening."""
    opening = pick(rng, WORDS.openings)
    return opening + sentence if opening else sentence[0].upper() + sentence[1:]


def draw_value(rng: Random, kind: str) -> str:
    if kind == NUMBER:
        return str(1000 + int(rng.random() * 9000))
    if kind == PLACE:
        return pick(rng, WORDS.place_starts) + pick(rng, WORDS.place_ends)
    if kind == PERSON:
        return f"{pick(rng, WORDS.first_names)} {pick(rng, WORDS.last_names)}"

    return f"{pick(rng, WORDS.adjectives)} {pick(rng, WORDS.nouns)}"
