"""Shared parts of the data sets of network operations: abilities as categories, and questions that
are drafted by template and chosen evenly.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, zip_longest
from random import Random
from typing import ClassVar, TypeVar

from memeval.datasets.chance import draw
from memeval.datasets.contract import Dataset
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
    by_task: dict[CategoryId, dict[str, list[Draft]]] = {ability: {} for ability in ABILITIES}
    for draft in {draft.text: draft for draft in drafts}.values():
        tasks = by_task.setdefault(draft.category, {})
        tasks.setdefault(draft.facets["task"], []).append(draft)

    queues = []
    for tasks in by_task.values():
        drawn = [draw(rng, of_task) for of_task in tasks.values()]
        queues.append(_interleaved(drawn))

    return _interleaved(queues)[:count]


def _interleaved(queues: Iterable[Sequence[Draft]]) -> list[Draft]:
    """The first of each queue, then the second of each, and so on."""
    return list(filter(None, chain.from_iterable(zip_longest(*queues))))


def questions(case_id: str, drafts: Sequence[Draft]) -> tuple[EvalQuestion, ...]:
    """The drafts as questions `{case_id}/q0`, `{case_id}/q1` …"""
    return tuple(
        replace(draft, question_id=f"{case_id}/q{number}") for number, draft in enumerate(drafts)
    )
