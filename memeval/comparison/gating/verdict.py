"""The verdict of a gate: worse, inconclusive, better, unchanged or broken."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from math import inf

from msgspec import Struct

from memeval.comparison.gating.baseline import Baseline, judge_of
from memeval.comparison.protocol import LABELS, MIN_COMMON, MIN_COVERAGE, low_coverage, other_judge
from memeval.comparison.records import CategoryDifference
from memeval.comparison.scores import (
    RunScores,
    describe_other_weights,
    difference_on,
    weights_of,
)
from memeval.metrics.formats import coverage_percent
from memeval.metrics.metric import Metric
from memeval.metrics.retrieval import cutoff_of
from memeval.results import is_same_judge
from memeval.results.run import Run
from memeval.statistics.clusters import weighted_mean
from memeval.statistics.differences import ClusteredDifference
from memeval.text.shown import one_line

FINE, WORSE_STATUS, BROKEN_STATUS = 0, 1, 3
"""Exit statuses; 2 is a user's mistake."""
_ROUNDING = 1e-12
"""Shares that differ by less are equal: means of repeats have rounding errors."""


class GateOutcome(StrEnum):
    WORSE = "worse"
    INFERIOR = "not shown to be non-inferior"
    MUST_PASS = "a question that must pass does not"
    INCONCLUSIVE = "inconclusive"
    UNCHANGED = "unchanged"
    BETTER = "better"
    NON_INFERIOR = "non-inferior"
    BROKEN = "broken"


FAILING = (GateOutcome.WORSE, GateOutcome.INFERIOR, GateOutcome.MUST_PASS)


class GateRules(Struct, frozen=True):
    margin: float = 0.0
    """As a share: a smaller loss is never `worse`."""
    non_inferior: float | None = None
    """As a share: a loss this large must be ruled out; None: no such requirement."""


class MustPass(Struct, frozen=True):
    question_id: str
    before: float | None
    now: float | None
    passes: bool
    """Whether it is no worse than in the baseline or, if it was not scored there, right."""


class GateResult(Struct, frozen=True):
    outcome: GateOutcome
    reasons: tuple[str, ...]
    """Reasons for `broken`."""
    change: ClusteredDifference | None = None
    """Now minus the baseline, from the same flips as in `compare`, so that the two can't contradict
    each other.
    """
    before: float | None = None
    """The baseline's mean over the questions that both scored; `now` is the run's."""
    now: float | None = None
    categories: tuple[CategoryDifference, ...] = ()
    must_pass: tuple[MustPass, ...] = ()
    lost: tuple[str, ...] = ()
    """Questions whose value is worse."""
    gained: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        if self.outcome is GateOutcome.BROKEN:
            return BROKEN_STATUS

        return WORSE_STATUS if self.outcome in FAILING else FINE


def judge_run(
    baseline: Baseline,
    run: Run,
    scores: RunScores,
    metric: Metric,
    *,
    rules: GateRules,
    must_pass: Iterable[str] = (),
) -> GateResult:
    """Compares a run with its baseline."""
    before, now = baseline.values, scores.values
    common = [name for name in now if name in before]
    reasons = [*not_sound(run), *_not_comparable(baseline, run, scores, metric)]
    if len(common) < MIN_COMMON:
        reasons.append("fewer than two questions have a value in both runs")

    passes = []
    for name in sorted({*baseline.must_pass, *must_pass}):
        passes.append(_must_pass(name, before.get(name), now.get(name), metric))
        if name not in scores.questions:
            reasons.append(f"must pass: '{one_line(name)}' was not asked")

    # Figures of runs that can't be compared are not put side by side.
    if reasons:
        return GateResult(GateOutcome.BROKEN, tuple(reasons), must_pass=tuple(passes))

    change = difference_on(common, scores, now, before, most=1.0)
    lost = [name for name in common if now[name] < before[name]]
    gained = [name for name in common if now[name] > before[name]]
    if not metric.more_is_better:
        lost, gained = gained, lost

    # Both means use today's weights, so that their difference is that of the verdict.
    weights = weights_of(scores, common)
    return GateResult(
        outcome=_outcome(as_gain(change, metric), rules, passes),
        reasons=(),
        change=change,
        before=weighted_mean([before[name] for name in common], weights),
        now=weighted_mean([now[name] for name in common], weights),
        categories=tuple(_by_category(common, baseline, scores)),
        must_pass=tuple(passes),
        lost=tuple(lost),
        gained=tuple(gained),
    )


def as_gain(result: ClusteredDifference, metric: Metric) -> ClusteredDifference:
    """A difference oriented so that more is better."""
    return result if metric.more_is_better else result.reversed()


def is_loss(result: ClusteredDifference, metric: Metric) -> bool:
    """Whether the whole interval is a loss."""
    high = as_gain(result, metric).high
    return high is not None and high < 0


def _must_pass(name: str, before: float | None, now: float | None, metric: Metric) -> MustPass:
    sign, least = (1, 1.0) if metric.more_is_better else (-1, 0.0)
    if before is not None:
        least = before

    # Averages of repeats leave rounding errors: 2/3 may be 1e-16 below the baseline’s 2/3.
    passes = now is not None and sign * now >= sign * least - _ROUNDING
    return MustPass(name, before, now, passes)


def _by_category(
    questions: Sequence[str], baseline: Baseline, scores: RunScores
) -> Iterator[CategoryDifference]:
    groups = scores.grouped("category_name", questions)
    for name in sorted(groups):
        result = difference_on(groups[name], scores, scores.values, baseline.values, most=1.0)
        yield CategoryDifference(name, result)


def _outcome(
    result: ClusteredDifference, rules: GateRules, passes: Sequence[MustPass]
) -> GateOutcome:
    # Too few conversations give no interval: neither a loss nor its absence is shown, unless no
    # question changed.
    is_same = result.largest_error is None and result.mean == 0
    low, high = result.low, result.high
    if low is None or high is None:
        low, high = (0.0, 0.0) if is_same else (-inf, inf)

    # Order matters: a loss is reported as a loss even if a named question also fails.
    if high < 0 and result.mean <= -rules.margin + _ROUNDING:
        return GateOutcome.WORSE
    if not all(question.passes for question in passes):
        return GateOutcome.MUST_PASS
    if rules.non_inferior is not None:
        is_ruled_out = low > -rules.non_inferior + _ROUNDING
        return GateOutcome.NON_INFERIOR if is_ruled_out else GateOutcome.INFERIOR

    if low > 0:
        return GateOutcome.BETTER

    return GateOutcome.UNCHANGED if is_same else GateOutcome.INCONCLUSIVE


def not_sound(run: Run) -> Iterator[str]:
    """Reasons why the figures of a run are not valid, even without a comparison."""
    summary = run.summary
    coverage = summary.metrics.get("coverage")
    if summary.is_stopped:
        yield (
            "the run was stopped before its end: the same command with a larger budget continues it"
        )
    elif summary.found_nothing:
        yield "no question got any context from the memory"
    elif coverage is None or coverage < MIN_COVERAGE:
        yield f"coverage is {low_coverage(coverage)}"
    elif not summary.valid:
        least = one_line(summary.params.get("min_coverage"))
        yield f"coverage is {coverage_percent(coverage)} %, below min_coverage={least}"
    if "only" in summary.tags:
        yield f"the run asked only {one_line(summary.tags['only'])}, so it has no score"


def _not_comparable(
    baseline: Baseline, run: Run, scores: RunScores, metric: Metric
) -> Iterator[str]:
    """Reasons why the run can't be compared with the baseline."""
    summary = run.summary
    labels = str(summary.params.get(LABELS, ""))
    pairs = (
        ("data set", baseline.dataset, summary.dataset),
        ("data: sha256", baseline.data_sha256, summary.data_sha256),
        ("labels", baseline.labels, labels),
    )
    for name, before, now in pairs:
        if before != now:
            yield (
                f"different {name}: {one_line(before, 100)} in the baseline, "
                f"{one_line(now, 100)} now"
            )

    judge = judge_of(run, metric)
    if metric.judged and not is_same_judge(baseline.judge, judge):
        yield other_judge(baseline.judge, judge)

    if baseline.values and not scores.values:
        text = f"no question has a value for {metric.name} now"
        # A reader who is shown three chunks has no recall@10.
        if cutoff_of(metric.name) is not None:
            text += f" (top_k={one_line(summary.params.get('top_k'))})"

        yield text

    yield from _other_questions(baseline, scores)


def _other_questions(baseline: Baseline, scores: RunScores) -> Iterator[str]:
    asked, before_asked = scores.questions.keys(), baseline.questions.keys()
    if asked != before_asked:
        yield (
            f"different questions: {len(before_asked):,} in the baseline, {len(asked):,} now, "
            f"{len(asked & before_asked):,} in common"
        )
        return

    yield from describe_other_weights(scores.questions, baseline.questions)
