"""The difference between two systems that the data of a sweep could show."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import sqrt
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memeval.comparison.finding import finished_runs
from memeval.comparison.scores import (
    RunScores,
    cases_of,
    deltas_of,
    read_scores,
    weights_of,
)
from memeval.config.paths import outputs_dir
from memeval.errors import MemevalError
from memeval.metrics.registry import metric_named
from memeval.pipeline.measure.figures import in_headline
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.records import EvalCase
from memeval.results.run import Run
from memeval.runs.plan import Plan
from memeval.runs.units import CaseCache
from memeval.statistics.clusters import clustered_se, independent_se
from memeval.statistics.differences import detectable_difference, more_clusters

ASSUMED_SD = 0.5
"""Standard deviation of the difference per question, for two systems that each have half of the
questions right, with a correlation of .5 between them.
"""
ASSUMED_DESIGN_EFFECT = 2.0
"""Design effect assumed if several questions share a case: LoCoMo shows at least this."""
MAX_RUNS = 4
"""Number of earlier runs that are read to measure the spread of differences."""


class Outlook(Struct, frozen=True):
    """Differences that a data set of the sweep could show."""

    dataset: str
    questions: int
    cases: int
    difference: float | None
    """The smallest true difference in accuracy that would be detected with 80 % power; None for
    fewer than six cases, which can't show any.
    """
    cases_needed: int | None
    """Number of such cases that would show `difference_then`, if these are too few."""
    difference_then: float | None
    design_effect: float
    basis: str
    """Source of the spread."""


class _Spread(Struct, frozen=True):
    """Spread of the differences between two runs."""

    sd: float
    design_effect: float
    basis: str


def look_ahead(plan: Plan, cases: CaseCache) -> list[Outlook]:
    """The outlook for each data set with an accuracy, from earlier runs of the home if possible."""
    runs = outputs_dir() / "runs"
    outlooks: dict[tuple[str, int, int], Outlook] = {}
    for planned in plan.cells:
        config = planned.cell.config
        if retrieves_only(config) or config.dataset.get("only"):
            continue

        name = planned.cell.loaded.name or str(config.dataset["name"])
        counts = [count_scored(case, planned.cell) for case in cases.of(planned.cell)]
        questions, asked = sum(counts), sum(map(bool, counts))
        key = (name, questions, asked)
        if key not in outlooks:
            outlooks[key] = outlook_for(name, questions=questions, cases=asked, runs=runs)

    return list(outlooks.values())


def count_scored(case: EvalCase, cell: Cell) -> int:
    """Number of a case's questions that enter the accuracy."""
    headline = cell.dataset.headline
    return sum(in_headline(headline, asked) for asked in case.questions)


def outlook_for(
    name: str,
    *,
    questions: int,
    cases: int,
    runs: Path | None = None,
    design_effect: float | None = None,
) -> Outlook:
    """Differences that `questions` questions in `cases` cases could show.

    The spread of the differences is that of earlier runs in the folder `runs`, else assumed;
    `design_effect` replaces that of the spread.
    """
    spread = _assumed_spread(questions, cases)
    if runs is not None:
        spread = _measured_spread(name, runs) or spread
    if design_effect is not None:
        spread = replace(spread, design_effect=design_effect)

    difference = cases_needed = difference_then = None
    if questions:
        se = spread.sd * sqrt(spread.design_effect / questions)
        difference = detectable_difference(se, cases, most=1.0)
        if difference is None and (more := more_clusters(se, cases, most=1.0)):
            cases_needed, difference_then = more

    return Outlook(
        dataset=name,
        questions=questions,
        cases=cases,
        difference=difference,
        cases_needed=cases_needed,
        difference_then=difference_then,
        design_effect=spread.design_effect,
        basis=spread.basis,
    )


def _assumed_spread(questions: int, groups: int) -> _Spread:
    effect = ASSUMED_DESIGN_EFFECT if questions > groups else 1.0
    return _Spread(
        sd=ASSUMED_SD,
        design_effect=effect,
        basis=f"assumed: systems right half of the time, correlation .5, design effect {effect:g}",
    )


def _measured_spread(name: str, runs: Path) -> _Spread | None:
    """The widest spread between valid runs on the data set; None with fewer than two of them."""
    earlier_runs = []
    for run in finished_runs(runs):
        has_accuracy = run.valid and run.metrics.get("accuracy") is not None
        if has_accuracy and run.summary.dataset == name:
            earlier_runs.append(run)

    spreads = list(_spreads(earlier_runs[-MAX_RUNS:]))
    return max(spreads, key=lambda spread: spread.sd**2 * spread.design_effect, default=None)


def _spreads(runs: Sequence[Run]) -> Iterator[_Spread]:
    scores: list[RunScores] = []
    for run in runs:
        try:
            scores.append(read_scores(run, metric_named("accuracy")))
        except (MemevalError, OSError, ValueError):
            continue

    for first, second in combinations(scores, 2):
        shared = first.common(second)
        clusters, weights = cases_of(first, shared), weights_of(first, shared)
        differences = deltas_of(first.values, second.values, shared)
        clustered = clustered_se(differences, clusters, weights)
        independent = independent_se(differences, weights)
        # Runs that agree on every question show no spread, which is not evidence of a small one.
        if clustered is None or not independent:
            continue

        yield _Spread(
            # Converts a standard error back to the deviation of one question.
            sd=independent * sqrt(len(shared)),
            # With few cases the clustered error can come out too small by chance.
            design_effect=max(1.0, (clustered / independent) ** 2),
            basis=f"from {len(scores)} earlier runs: the pair with the largest spread",
        )
