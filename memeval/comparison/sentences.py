"""What differences say: words first, figures after, and no more than the data show."""

from __future__ import annotations

from dataclasses import replace

from memeval.comparison.records import BENJAMINI_HOCHBERG, Comparison, Difference, is_significant
from memeval.comparison.words import figure, probability
from memeval.metrics.metric import POINTS
from memeval.statistics.clusters import ClusteredMean
from memeval.statistics.differences import ClusteredDifference, more_clusters

MOST_NAMES = 4
"""Cells that a headline names; of more it says how many there are."""


def with_interval(
    result: ClusteredMean | ClusteredDifference, unit: str, *, signed: bool = False
) -> str:
    """`+4.1 [0.9, 7.3]`, or only the value where there is no interval."""
    value, ends = figure(result.mean, unit, signed=signed), interval(result, unit)

    return f"{value} {ends}" if ends else value


def interval(result: ClusteredMean | ClusteredDifference, unit: str) -> str:
    """`[0.9, 7.3]`; empty where there is none."""
    if result.low is None or result.high is None:
        return ""

    return f"[{figure(result.low, unit)}, {figure(result.high, unit)}]"


def sentences(comparison: Comparison, most: int | None = None) -> list[str]:
    """What all differences say: one sentence for all where the conversations are too few."""
    results = [difference.result for difference in comparison.differences]
    if len(results) > 1 and are_too_few(comparison):
        widest = max(results, key=lambda result: (result.groups, result.largest_error or 0.0))
        alike = [pair for pair in comparison.differences if pair.sent_alike]
        return [
            f"{limits(widest, comparison.unit)}.",
            *(sentence(comparison, pair) for pair in alike[:most]),
        ]

    said = [sentence(comparison, difference) for difference in comparison.differences[:most]]
    left = len(comparison.differences) - len(said)
    if left:
        said.append(f"{left} more differences are in comparison.md.")

    return said


def lead(comparison: Comparison) -> list[str]:
    """What a page says first: the sentence of one difference; of several, how many are shown."""
    if len(comparison.differences) == 1 or are_too_few(comparison):
        return sentences(comparison)

    shown = [difference for difference in comparison.differences if difference.is_shown]
    pairs = len(comparison.differences)
    if comparison.baseline is None:
        return [f"{len(shown)} of {pairs} pairs of runs differ; no other difference is shown."]

    label = {pair.first: comparison.run(pair.first).label for pair in comparison.differences}
    higher = [label.pop(pair.first) for pair in shown if pair.result.mean > 0]
    lower = [label.pop(pair.first) for pair in shown if pair.result.mean < 0]
    baseline = comparison.run(comparison.baseline).label
    parts = [
        f"{_named(names)} {_is(len(names))} {direction} than {baseline}"
        for direction, names in (("higher", higher), ("lower", lower))
        if names
    ]
    if label:
        others = _named(list(label.values()))
        parts.append(f"no difference from {baseline} is shown for {others}")

    return [f"{'; '.join(parts)}."]


def _named(names: list[str]) -> str:
    """`a, b and c`, or how many there are if a sentence could not hold them."""
    if len(names) > MOST_NAMES:
        return f"{len(names):,} runs"

    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def are_too_few(comparison: Comparison) -> bool:
    """Whether the conversations of all differences are too few to show any."""
    return all(difference.result.is_too_few for difference in comparison.differences)


def sentence(comparison: Comparison, difference: Difference) -> str:
    """What a difference says: words first, figures after."""
    result, unit = difference.result, comparison.unit
    names = [comparison.run(key).label for key in (difference.first, difference.second)]
    measured = "" if comparison.metric == "accuracy" else f" in {comparison.metric}"
    if difference.sent_alike:
        alike = f"{difference.sent_alike:,} of {result.count:,} questions"
        rest = "" if difference.same_prompts else ", and no question has another value"
        why = f": {difference.why_alike}" if difference.why_alike else ""
        return f"{names[0]} sent the same prompts as {names[1]} on {alike}{rest}{why}."

    pair = f"{measured} between {names[0]} and {names[1]}"

    if result.largest_error is None and result.mean == 0:
        return f"{names[0]} and {names[1]} have the same value{measured} on every question."

    amount = f"{figure(result.mean, unit, signed=True)} {unit}"
    if result.is_too_few:
        few = conversations(result.groups, "is", "are")
        return f"{few} too few to show any difference{pair}: {amount}{larger_data(result, unit)}."

    amount = " ".join([amount, interval(result, unit)])
    if not difference.is_shown and not is_significant(result.p):
        return f"No difference shown{pair}: {amount}; {limits(result, unit)}."

    direction = "higher" if result.mean > 0 else "lower"
    amount = f"{figure(abs(result.mean), unit)} {unit} {interval(turned_up(result), unit)}"
    said = f"{names[0]} is {direction} than {names[1]}{measured} by {amount}"
    p, adjusted = probability(result.p), probability(difference.adjusted_p)
    if not difference.is_shown:
        return (
            f"{said} taken alone (p {p}), not among {difference.among:,} comparisons "
            f"({adjusted_name(comparison)} {adjusted})."
        )

    more = f", {adjusted_name(comparison)} {adjusted}" if difference.among > 1 else ""
    return f"{said} (p {p}{more})."


def turned_up(result: ClusteredDifference) -> ClusteredDifference:
    """The difference the other way round where it is below 0: `lower by 4.1 [0.9, 7.3]`."""
    if result.mean >= 0 or result.low is None or result.high is None:
        return result

    return replace(result, mean=-result.mean, low=-result.high, high=-result.low)


def limits(result: ClusteredDifference, unit: str) -> str:
    """What some data could have shown, as the end of a sentence that shows no difference."""
    if result.is_too_few:
        few = conversations(result.groups, "is", "are")
        return f"{few} too few for any difference to be shown{larger_data(result, unit)}"
    if result.mde is None:
        return "no question has another value"
    # Two shares differ by 100 points at most.
    if unit == POINTS.name and result.mde >= 1:
        return "this data can't reliably detect any difference"
    # Conversations that disagree this much: the rule of thumb is below what was not shown.
    if result.mde <= abs(result.mean):
        return f"such data shows {figure(result.mde, unit)} in 80 of 100 cases, but not here"

    return f"the smallest difference this data could reliably detect is {figure(result.mde, unit)}"


def larger_data(result: ClusteredDifference, unit: str) -> str:
    """`; 10 would show about 26.8 points`; empty where it is not known."""
    # How much the questions of one conversation hang together a single one does not say.
    if result.groups < 2 or result.largest_error is None:
        return ""

    most = 1.0 if unit == POINTS.name else None
    found = more_clusters(result.largest_error, result.groups, most=most)
    return (
        "" if found is None else f"; {found[0]:,} would show about {figure(found[1], unit)} {unit}"
    )


def conversations(count: int, one: str, many: str) -> str:
    """`1 conversation is`, `3 conversations are`."""
    return f"{count:,} conversation {one}" if count == 1 else f"{count:,} conversations {many}"


def adjusted_name(comparison: Comparison) -> str:
    """What an adjusted p is called."""
    is_discovery = comparison.adjustment == BENJAMINI_HOCHBERG
    return "Benjamini–Hochberg" if is_discovery else "adjusted"
