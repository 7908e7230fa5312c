"""Shared parts of the data sets of network operations: abilities as categories, and questions that
are drafted by template and chosen evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import ClassVar, TypeVar

from memeval.datasets.chance import draw
from memeval.datasets.contract import Dataset
from memeval.datasets.grouping import group
from memeval.records import AnswerKind, CategoryId, EvalQuestion

Material = TypeVar("Material")

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
"""Categories of the headline. Abstention rewards refusal and is reported separately."""


class NetOps(Dataset):
    """Questions by ability, and a facet that names the question's template."""

    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.SENTENCES,)
    facet_names: Mapping[str, str] = {"task": "Task"}

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return ABILITIES

    @property
    def headline(self) -> frozenset[CategoryId]:
        return ANSWERABLE


Draft = EvalQuestion
"""A question that has no id yet. Its template is its facet `task`."""


def draft(
    ability: str,
    task: str,
    text: str,
    gold: tuple[str, ...],
    *,
    evidence: tuple[str, ...],
    asked_at: datetime,
    form: str = "",
) -> Draft:
    """A question from a template. Without a gold the right answer is a refusal; `form` says how to
    write the answer.
    """
    return EvalQuestion(
        question_id="",
        text=text,
        category=ability,
        gold=gold,
        evidence=evidence,
        asked_at=asked_at,
        answerable=bool(gold),
        instruction=form,
        facets={"task": task},
    )


def drafts_of(
    templates: Iterable[Callable[[Material], Iterator[Draft]]], material: Material
) -> Iterator[Draft]:
    """The questions of all templates, one template after the other."""
    for template in templates:
        yield from template(material)


def choose(rng: Random, drafts: Iterable[Draft], count: int) -> list[Draft]:
    """At most `count` drafts: one of each ability in turn, and within an ability one of each task
    in turn, as long as there are any.

    Each text occurs only once.
    """
    unique = list({draft.text: draft for draft in drafts}.values())
    by_ability: dict[CategoryId, list[Draft]] = {ability: [] for ability in ABILITIES}
    by_ability |= group((draft.category, draft) for draft in unique)

    return _interleaved([_by_turns(rng, drafts) for drafts in by_ability.values()])[:count]


def _by_turns(rng: Random, drafts: Sequence[Draft]) -> list[Draft]:
    """Drafts of one ability in random order, one of each task in turn."""
    by_task = group((draft.facets["task"], draft) for draft in drafts)
    return _interleaved([draw(rng, of_task) for of_task in by_task.values()])


def _interleaved(queues: Sequence[Sequence[Draft]]) -> list[Draft]:
    longest = max(map(len, queues), default=0)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


def questions(case_id: str, drafts: Sequence[Draft]) -> tuple[EvalQuestion, ...]:
    """The drafts as questions `{case_id}/q0`, `{case_id}/q1` …"""
    return tuple(
        replace(draft, question_id=f"{case_id}/q{number}") for number, draft in enumerate(drafts)
    )
