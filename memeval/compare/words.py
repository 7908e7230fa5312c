"""Differences in figures and sentences that promise no more than the data show."""

from __future__ import annotations

from memeval.compare.metric import POINTS
from memeval.compare.records import BENJAMINI_HOCHBERG, Comparison, Difference
from memeval.report.figures import NONE, short_count
from memeval.statistics.clusters import ClusteredMean
from memeval.statistics.flips import EXACT_CLUSTERS

MINUS = "−"
RAW_VERDICTS = (
    "Differences, their intervals and p rest on the raw verdicts, without that correction."
)


def figure(value: float | None, unit: str, *, signed: bool = False) -> str:
    """A value in its unit: points with one decimal, dollars with three digits."""
    if value is None:
        return NONE

    size = abs(value)
    if unit == POINTS:
        text = f"{100 * size:.1f}"
    elif unit == "$":
        text = f"{size:.3g}" if size < 100 else f"{size:,.0f}"
    elif unit == "ms":
        text = f"{size:.1f}" if size < 100 else short_count(size)
    else:
        text = f"{size:.3g}" if size < 100 else short_count(size)

    if value < 0:
        return MINUS + text

    return f"+{text}" if signed and value > 0 else text


def probability(p: float | None) -> str:
    """A p as `.008`, `<.001` or `1`."""
    if p is None:
        return NONE
    if p < 0.001:
        return "<.001"
    if p >= 0.9995:
        return "1"

    return f"{p:.3f}".lstrip("0")


def with_interval(result: ClusteredMean, unit: str, *, signed: bool = False) -> str:
    """`+4.1 ± 3.2`, or only the value where there is no interval."""
    value = figure(result.mean, unit, signed=signed)
    half = result.half_width

    return value if half is None else f"{value} ± {figure(half, unit)}"


def sentence(comparison: Comparison, difference: Difference) -> str:
    """What a difference says, in words."""
    unit, result = comparison.unit, difference.result
    first = comparison.run(difference.first).label
    second = comparison.run(difference.second).label
    measured = "" if comparison.metric == "accuracy" else f" in {comparison.metric}"

    if difference.p is None:
        return (
            f"{first} minus {second}{measured}: {figure(result.mean, unit, signed=True)} "
            f"{unit}, without an interval or a p: all {result.count:,} questions are of one "
            "conversation."
        )

    ps = f"p {probability(difference.p)}"
    if comparison.adjustment == BENJAMINI_HOCHBERG:
        ps += f", Benjamini–Hochberg {probability(difference.adjusted_p)}"
    elif len(comparison.differences) > 1:
        ps += f", adjusted {probability(difference.adjusted_p)}"

    if difference.is_shown:
        direction = "higher" if result.mean > 0 else "lower"
        amount = with_interval(result, unit).removeprefix(MINUS)
        return f"{first} is {direction} than {second}{measured} by {amount} {unit} ({ps})."

    # No spread at all: both standard errors are 0.
    if result.mde is None:
        return f"{first} and {second} have the same value{measured} on every question."

    return (
        f"{first} and {second} can't be told apart{measured}: "
        f"{with_interval(result, unit, signed=True)} ({ps}); this data "
        f"{could_show(result.mde, unit)}."
    )


def could_show(mde: float, unit: str) -> str:
    """Which difference some data could have shown, as the end of a sentence about them."""
    # Two shares differ by 100 points at most.
    if unit == POINTS and mde >= 1:
        return "can't show any difference"

    return f"could have shown {figure(mde, unit)}"


def describe_counts(comparison: Comparison, difference: Difference) -> str:
    """On which questions a difference rests, and how many only one of the cells has right."""
    first = comparison.run(difference.first).label
    second = comparison.run(difference.second).label
    result = difference.result
    parts = [f"{result.count:,} questions in common"]
    for label, only in ((first, difference.only_first), (second, difference.only_second)):
        parts.append(f"{only:,} only in {label}")

    text = ", ".join(parts)
    if difference.first_alone is None:
        return text

    return (
        f"{text}; right alone: {first} {difference.first_alone:,}, {second} "
        f"{difference.second_alone:,} (McNemar p {probability(difference.mcnemar_p)}, which "
        "ignores conversations)"
    )


def legend(comparison: Comparison) -> list[str]:
    """What the columns mean, and what a reader must not overlook."""
    of_what = "the baseline" if comparison.baseline else "the second run"
    lines = [
        f"Δ: run minus {of_what}, on the questions that both scored, in {comparison.unit}. "
        "±: its 95 % interval, clustered by conversation.",
        "sampling SE: the error from having these conversations and questions and no others. "
        "re-run std: the spread over repeats. Neither replaces the other.",
        f"p: by flipping the signs of whole conversations. adj.: {adjusted_how(comparison)}. "
        "MDE: the difference that this data shows in 80 of 100 cases.",
        *corrections(comparison),
    ]
    if any(run.letters for run in comparison.runs):
        lines.append("Runs that share a letter can't be told apart (all pairs, adjusted together).")

    results = [difference.result for difference in comparison.differences]
    if any(result.mde_from_independent for result in results):
        lines.append(
            "*: the MDE takes the error of independent questions, which is larger here than the "
            "clustered one."
        )

    if any(result.se == 0 and result.mde is not None for result in results):
        lines.append(
            "No ± where all conversations show the same difference: few conversations that agree "
            "do not prove certainty. See p."
        )

    return [*lines, *few_conversations(comparison)]


def few_conversations(comparison: Comparison) -> list[str]:
    """That nothing can be shown, where there are too few conversations for a p of .05."""
    groups = max((difference.result.groups for difference in comparison.differences), default=0)
    # Of the 2^G ways to set the signs, the data's own and the opposite always count.
    smallest = 2 / 2**groups
    if not 1 < groups <= EXACT_CLUSTERS or smallest <= 0.05:
        return []

    return [
        f"With {groups} conversations no p is below {probability(smallest)}: nothing can be shown."
    ]


def adjusted_how(comparison: Comparison) -> str:
    """How p is adjusted for the number of tests."""
    if comparison.adjustment == BENJAMINI_HOCHBERG:
        return (
            f"Benjamini–Hochberg over {comparison.tests:,} tests of all metrics: of what is called "
            "a difference, 5 % are expected to be chance"
        )

    return "for all rows together (max-T)"


def corrections(comparison: Comparison) -> list[str]:
    """The corrected accuracies, and that differences do not rest on them."""
    if comparison.metric != "accuracy":
        return []

    lines = [
        f"{run.label}, corrected for its judge's error: {run.corrected}"
        for run in comparison.runs
        if run.corrected
    ]
    return [*lines, RAW_VERDICTS] if lines else []


def headline(comparison: Comparison) -> list[str]:
    """What is compared, on what, judged by whom; and that it was forced, where it was."""
    counts = sorted({difference.result.count for difference in comparison.differences})
    groups = sorted({difference.result.groups for difference in comparison.differences})
    lines = [f"{comparison.metric}, in {comparison.unit}"]
    if comparison.baseline:
        lines[0] += f", against {comparison.run(comparison.baseline).label} (baseline)"
    else:
        lines[0] += ", all pairs"

    if counts:
        conversations = "conversation" if groups[-1] == 1 else "conversations"
        asked = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        lines[0] += f"; {asked} questions of {groups[-1]:,} {conversations}"

    keys = {key for pair in comparison.differences for key in (pair.first, pair.second)}
    judges = dict.fromkeys(run.judge for run in comparison.runs if run.key in keys and run.judge)
    if judges:
        lines.append(f"{'judges' if len(judges) > 1 else 'judge'}: {', '.join(judges)}")

    if comparison.forced:
        lines.append(f"FORCED, not comparable: {'; '.join(comparison.forced)}")

    return lines


def refusal_lines(comparison: Comparison) -> list[str]:
    """The refusals, a line each: those with one reason together."""
    by_reason: dict[tuple[str, ...], list[str]] = {}
    for refusal in comparison.refusals:
        first, second = (comparison.run(key).label for key in (refusal.first, refusal.second))
        by_reason.setdefault(refusal.reasons, []).append(f"{first} with {second}")

    return [
        f"not compared: {', '.join(pairs)}: {'; '.join(reasons)}"
        for reasons, pairs in by_reason.items()
    ]
