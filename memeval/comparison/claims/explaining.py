"""Explains why a run's figure differs from a published one: differing parts and their effects.

Only available data are measured: the run's own records, and finished runs that differ from it in
one part alone. Each part is changed alone, so the changes do not add up to the gap.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from memeval.comparison.claims.effects import DifferingPart, Effect, effects_of
from memeval.comparison.claims.matching import Aspect, Match, Sameness
from memeval.results import is_imported
from memeval.results.run import Run

_PART_OF = {
    "judge": DifferingPart.JUDGE,
    "judge model": DifferingPart.JUDGE,
    "judge's requests": DifferingPart.JUDGE,
    "judgings of each answer": DifferingPart.JUDGE,
    "categories": DifferingPart.CATEGORIES,
    "average": DifferingPart.AVERAGE,
    "number of questions": DifferingPart.QUESTIONS,
    "data": DifferingPart.FILE,
    "labels": DifferingPart.FILE,
    "k": DifferingPart.K,
    "prompt": DifferingPart.PROMPT,
    "reader": DifferingPart.MODEL,
    "reader's settings": DifferingPart.MODEL,
    "settings": DifferingPart.SYSTEM,
    "coverage": DifferingPart.COVERAGE,
}
"""The part that each aspect of a match belongs to."""
WAYS = {
    DifferingPart.JUDGE: "the same answers, judged again: python -m memeval evaluate "
    "{folder}/hypotheses.jsonl dataset={dataset} {judge}",
    DifferingPart.CATEGORIES: "a run with the claim's dataset.categories=",
    DifferingPart.K: "a run that differs only in top_k=",
    DifferingPart.FILE: "a run that differs only in dataset.labels= or the file",
    DifferingPart.PROMPT: "a run that differs only in prompt=",
    DifferingPart.MODEL: "a run that differs only in llm.model=",
}
"""Commands that would measure a part not measured yet."""
_OF_THE_PROGRAM = (DifferingPart.K, DifferingPart.PROMPT, DifferingPart.MODEL)
"""Parts that only the source program of imported answers can change."""


class Explanation(Struct, frozen=True):
    """The gap between a run and a published figure."""

    run_key: str
    match: Match
    own: float | None
    """The run's figure as the claim counts it, in per cent; None if it was not measured."""
    effects: tuple[Effect, ...]
    missing: Mapping[DifferingPart, str]
    """The parts that differ or are not disclosed, and were not measured, each with the way to
    measure it; empty if memeval can't measure it.
    """

    @property
    def gap(self) -> float | None:
        """The run minus the published figure, in points."""
        return None if self.own is None else self.own - self.match.figure.value

    def aspects(self, part: DifferingPart) -> list[Aspect]:
        """Known facts about a part that differ or are unknown."""
        return [aspect for aspect in _open_aspects(self.match) if _PART_OF[aspect.name] is part]


def explain_match(match: Match, run: Run, known: Sequence[Run]) -> Explanation:
    """Explains a gap from available data. `known` are finished runs, possibly differing in one
    part.

    Raises `UserError` if records can't be read.
    """
    value, effects = effects_of(match, run, known)
    measured = {effect.part for effect in effects}
    missing = {}
    for aspect in _open_aspects(match):
        part = _PART_OF[aspect.name]
        if part not in measured:
            missing[part] = _next_step(part, match, run)

    return Explanation(run.key, match, value, tuple(effects), missing)


def _open_aspects(match: Match) -> list[Aspect]:
    """Aspects that differ or are unknown, except the settings of another system."""
    aspects = []
    for aspect in match.aspects:
        is_of_system = _PART_OF[aspect.name] is DifferingPart.SYSTEM
        if aspect.sameness is not Sameness.SAME and not (is_of_system and match.allowed_difference):
            aspects.append(aspect)

    return aspects


def _next_step(part: DifferingPart, match: Match, run: Run) -> str:
    if part in _OF_THE_PROGRAM and is_imported(run.summary):
        return ""

    return WAYS.get(part, "").format(
        folder=run.folder,
        dataset=match.claim.dataset,
        judge=f"judge={match.claim.protocol.judge_like or 'llm'} judge.prompt_file=FILE",
    )
