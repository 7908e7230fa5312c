"""Selects the open questions that a plan asks: all of a small sweep; of a large one, a sample
spread over repeats and cases.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Self, TypeVar

from msgspec import Struct, field

from memeval.config.roles import ROLES, settings_of_role
from memeval.pipeline.execute.run import text_size
from memeval.records import EvalCase, Role
from memeval.runs.plan import PlannedCell
from memeval.statistics.clusters import weighted_mean

T = TypeVar("T")

QUESTIONS_PER_CASE = 100
"""Number of sampled questions per case: preparing a case takes longer than asking."""


class OpenRepeat(Struct, frozen=True):
    """A repeat of a cell with open questions."""

    planned: PlannedCell
    seed: int
    cases: Sequence[EvalCase]
    """Each with its open questions."""

    @property
    def group(self) -> Hashable:
        """Key of repeats that send similar requests: of a large group, only some are composed."""
        config = self.planned.cell.config
        return (
            self.planned.reach,
            repr(sorted(config.dataset.items())),
            repr(sorted(config.system.items(), key=str)),
            (config.prompt.name, config.judge.name, config.judge.repeats),
            tuple(settings_of_role(config.llm, role).model for role in ROLES),
        )


class Extent(Struct):
    """The amount of work, each unit counted once."""

    text: dict[str, int] = field(default_factory=dict)
    """Characters of the cases by the key of their memories."""
    answers: dict[str, int] = field(default_factory=dict)
    """Questions by the key of their answers."""
    verdicts: dict[str, int] = field(default_factory=dict)

    def add(self, repeat: OpenRepeat, cases: Sequence[EvalCase]) -> None:
        keys = repeat.planned.cell.keys(repeat.seed)
        questions = count_questions(cases)
        # Counting characters takes a while on large data: once per key.
        if keys.prepare not in self.text:
            self.text[keys.prepare] = sum(map(text_size, cases))

        self.answers.setdefault(keys.answer, questions)
        self.verdicts.setdefault(keys.judge, questions)

    def weight(self, part: Self, role: Role) -> float:
        """The number of calls of all the work that each call in a part of it represents."""
        return self.of(role) / max(1, part.of(role))

    def of(self, role: Role) -> int:
        """The amount of work that determines the calls of a role."""
        by_role = {Role.INGEST: self.text, Role.JUDGE: self.verdicts}
        return sum(by_role.get(role, self.answers).values())


def count_questions(cases: Sequence[EvalCase]) -> int:
    return sum(len(case.questions) for case in cases)


def sample_cases(cases: Sequence[EvalCase], most: int, turns: int) -> Sequence[EvalCase]:
    """The open questions that are asked: all, or about `most`, from cases with about `turns` turns.

    They are the same in each repeat, so that equal requests are recognised.
    """
    total_turns = 0
    for case in cases:
        total_turns += sum(len(session.turns) for session in case.sessions)

    by_size = sorted(cases, key=text_size)
    chosen = _of_mean_size(by_size, max(1, turns * len(cases) // max(1, total_turns)))
    if count_questions(chosen) <= most:
        return chosen

    chosen = _of_mean_size(chosen, max(1, most // QUESTIONS_PER_CASE))
    share = max(1, most // len(chosen))
    return [replace(case, questions=tuple(evenly_spaced(case.questions, share))) for case in chosen]


def _of_mean_size(by_size: Sequence[EvalCase], count: int) -> Sequence[EvalCase]:
    """At most `count` cases: of each of `count` parts the one whose size is nearest to the mean
    over the part's questions, since prompts grow with their case.
    """
    if len(by_size) <= count:
        return by_size

    chosen = []
    for number in range(count):
        part = by_size[number * len(by_size) // count : (number + 1) * len(by_size) // count]
        sizes = list(map(text_size, part))
        size = weighted_mean(sizes, [len(case.questions) for case in part])
        nearest = min(range(len(part)), key=lambda place: abs(sizes[place] - size))
        chosen.append(part[nearest])

    return chosen


def evenly_spaced(items: Sequence[T], count: int) -> list[T]:
    """At most `count` items: the middle one of each of `count` parts."""
    if len(items) <= count:
        return list(items)

    return [items[(2 * number + 1) * len(items) // (2 * count)] for number in range(count)]
