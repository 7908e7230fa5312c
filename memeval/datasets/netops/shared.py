"""What the data sets of network operations share: abilities, names and numbers that judges can read, seeded choice, drafts of questions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from random import Random
from typing import TypeVar

from memeval.datasets.contract import Dataset
from memeval.records import CategoryId, EvalQuestion

T = TypeVar("T")

ABILITIES: Mapping[CategoryId, str] = {
    "IE": "information_extraction",
    "MR": "multi_session_reasoning",
    "TR": "temporal_reasoning",
    "KU": "knowledge_update",
    "CR": "conflict_resolution",
    "ABS": "abstention",
}
"""Abilities as categories, in the order of tables."""

ANSWERABLE: frozenset[CategoryId] = frozenset(ABILITIES) - {"ABS"}
"""The headline. Abstention rewards refusal and is reported apart."""


class NetOps(Dataset):
    """What the two have in common: questions by ability, and a facet that tells the template."""

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return ABILITIES

    @property
    def headline(self) -> frozenset[CategoryId]:
        return ANSWERABLE

    @property
    def facet_names(self) -> Mapping[str, str]:
        return {"task": "Task"}


WORDS = tuple("no one two three four five six seven eight nine ten eleven twelve".split())
HIDDEN = frozenset({1, 10})
"""Numbers whose words stand within common others ("none", "often"), where a judge that looks for the gold in the answer would find them."""

IN_WORDS = "Write a number up to twelve as a word, a greater one in digits without commas."
"""Instruction for counts."""
ALL_OF_THEM = "Name all of them."


def one_word(name: str) -> str:
    """A name of a component or a fault as the data sets show it: each run of other characters than letters and digits is one `_`.

    Judges that compare words would else take `node-4` for `node-6`: single characters are no words to them, and parts of names count each.
    """
    return re.sub(r"[\W_]+", "_", name).strip("_")


def amount(count: int, noun: str) -> str:
    """`three incidents`, `38 incidents`, `one incident`."""
    number = WORDS[count] if count < len(WORDS) else str(count)
    return f"{number} {noun}" if count == 1 else f"{number} {noun}s"


def counted(count: int, noun: str) -> tuple[str, ...]:
    """Golds for a count: the number with and without what is counted; the first alone where the bare word is part of common others."""
    phrase = amount(count, noun)
    return (phrase,) if count in HIDDEN else (phrase, phrase.partition(" ")[0])


def day(time: datetime) -> str:
    """`2021-03-04`."""
    return time.date().isoformat()


def minute(time: datetime) -> str:
    """`14:57`."""
    return f"{time.hour:02d}:{time.minute:02d}"


def seeded(*parts: object) -> Random:
    """A generator of random numbers from whatever its seed is made of.

    Only its `random()` is used, whose sequence is the same in every version of Python and on every machine.
    """
    text = "/".join(map(str, parts))
    return Random(int.from_bytes(sha256(text.encode()).digest()[:8]))


def pick(rng: Random, items: Sequence[T]) -> T:
    """One of the items."""
    return items[int(rng.random() * len(items))]


def draw(rng: Random, items: Iterable[T], count: int | None = None) -> list[T]:
    """`count` of the items, or all, in random order."""
    left = list(items)
    size = len(left) if count is None else min(count, len(left))
    for place in range(size):
        other = place + int(rng.random() * (len(left) - place))
        left[place], left[other] = left[other], left[place]
    return left[:size]


@dataclass(frozen=True, slots=True)
class Draft:
    """A question before it has an id."""

    ability: str
    task: str
    """Which template it comes from; a facet of the question."""
    text: str
    gold: tuple[str, ...]
    """Empty where the right answer is a refusal."""
    evidence: tuple[str, ...]
    asked_at: datetime
    instruction: str = ""
    """In which form the answer is wanted."""


def choose(rng: Random, drafts: Iterable[Draft], count: int) -> list[Draft]:
    """At most `count` drafts: by turns one of each ability, and within an ability one of each task, as long as there are any.

    A text occurs once.
    """
    unique = list({draft.text: draft for draft in drafts}.values())
    queues = [
        _by_turns(rng, [draft for draft in unique if draft.ability == ability])
        for ability in ABILITIES
    ]
    return _interleaved(queues)[:count]


def _by_turns(rng: Random, drafts: Sequence[Draft]) -> list[Draft]:
    tasks = dict.fromkeys(draft.task for draft in drafts)
    return _interleaved(
        [draw(rng, [draft for draft in drafts if draft.task == task]) for task in tasks]
    )


def _interleaved(queues: Sequence[Sequence[Draft]]) -> list[Draft]:
    longest = max(map(len, queues), default=0)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


def questions(case_id: str, drafts: Sequence[Draft]) -> tuple[EvalQuestion, ...]:
    """The drafts as questions `{case_id}/q0`, `{case_id}/q1` …"""
    return tuple(
        EvalQuestion(
            question_id=f"{case_id}/q{number}",
            text=draft.text,
            category=draft.ability,
            gold=draft.gold,
            evidence=draft.evidence,
            asked_at=draft.asked_at,
            answerable=bool(draft.gold),
            instruction=draft.instruction,
            facets={"task": draft.task},
        )
        for number, draft in enumerate(drafts)
    )
