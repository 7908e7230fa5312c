"""Compares a run with a baseline that is kept in a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from memeval.api.arguments import check_types
from memeval.comparison.build import scores_of
from memeval.comparison.finding import check_records, usual_metric
from memeval.comparison.gating.baseline import Baseline, baseline_of, read_baseline, write_baseline
from memeval.comparison.gating.output import Gate
from memeval.comparison.gating.verdict import GateRules, judge_run, not_sound
from memeval.comparison.scores import read_scores
from memeval.errors import UserError
from memeval.metrics.metric import POINTS, Metric
from memeval.metrics.registry import metric_named
from memeval.results.run import Run
from memeval.text.shown import one_line


class UnsoundError(UserError):
    """A run can't be a baseline, because its figures are not valid."""


@check_types
def gate(
    run: Run,
    baseline: str | Path,
    *,
    margin: float = 0.0,
    non_inferior: float | None = None,
    must_pass: Sequence[str] = (),
    metric: str | None = None,
) -> Gate:
    """Tests whether a run is worse than its baseline, in the same way as `compare`.

    A loss below `margin` is never called worse; with `non_inferior` the run fails unless a loss of
    that size is ruled out. Both are in percentage points. `must_pass` are ids of questions that
    must be right. `metric` must be the baseline's, if it is given.

    Raises `UserError` for a baseline or records that can't be read, and for a question of
    `must_pass` that is in neither.
    """
    rules = rules_of(margin, non_inferior)
    kept = read_baseline(Path(baseline))
    check_records(run)
    chosen = _share_metric(kept.metric)
    if metric and metric_named(metric) != chosen:
        raise UserError(
            f"the baseline's metric is {one_line(chosen.name)}, not {one_line(metric)}",
            "for another metric, bless another baseline",
        )

    scores = read_scores(run, chosen)
    for name in must_pass:
        # A question that only the baseline has is not misspelt: it makes the two incomparable.
        if name not in scores.questions and name not in kept.questions:
            raise UserError(f"{one_line(run.name)} did not ask '{one_line(name)}', which must pass")

    result = judge_run(kept, run, scores, chosen, rules=rules, must_pass=must_pass)
    return Gate(run, kept, chosen, rules, result)


@check_types
def bless(
    run: Run, baseline: str | Path, *, must_pass: Sequence[str] = (), metric: str | None = None
) -> Baseline:
    """Writes a run as the baseline. Questions that had to pass before must still pass.

    Raises `UnsoundError` for a run whose figures are not valid, `UserError` for other mistakes, and
    `StorageError` if the file can't be written.
    """
    path = Path(baseline)
    check_records(run)
    if reasons := list(not_sound(run)):
        raise UnsoundError(f"not blessed: {one_line(run.name)}: {'; '.join(reasons)}")

    kept: tuple[str, ...] = ()
    name = metric or usual_metric([run.summary])
    if path.exists():
        before = read_baseline(path)
        kept, name = before.must_pass, metric or before.metric

    chosen = _share_metric(name)
    (scores,) = scores_of([run], chosen)
    made = baseline_of(run, chosen, scores, [*kept, *must_pass])
    write_baseline(made, path)
    return made


def rules_of(margin: float, non_inferior: float | None) -> GateRules:
    """Requirements of a gate, in percentage points. Raises `UserError`."""
    least = None if non_inferior is None else _share("non-inferior", non_inferior)
    if least == 0:
        raise UserError("non-inferior must be above 0: no data can rule out every loss")

    return GateRules(margin=_share("margin", margin), non_inferior=least)


def _share(name: str, points: float) -> float:
    if not (math.isfinite(points) and 0 <= points <= 100):
        raise UserError(f"{name} must be between 0 and 100 points, not {points:g}")

    return points / 100


def _share_metric(name: str) -> Metric:
    metric = metric_named(name)
    if metric.unit != POINTS:
        raise UserError(f"gate compares shares, such as accuracy or recall@10, not {metric.name}")

    return metric
