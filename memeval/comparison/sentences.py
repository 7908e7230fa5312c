"""Sentences on differences: words first, figures after, and no more than the data show."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise

from memeval.comparison.records import (
    BENJAMINI_HOCHBERG,
    ComparedRun,
    Comparison,
    Difference,
    is_significant,
)
from memeval.comparison.significance import groups_of
from memeval.metrics.formats import figure, probability
from memeval.metrics.metric import DOLLARS, POINTS
from memeval.statistics.clusters import ClusteredMean
from memeval.statistics.differences import ClusteredDifference, more_clusters
from memeval.text.shown import counted

MOST_SENTENCES = 12
"""Maximum differences described in words; the files of a comparison have all."""
MOST_NAMES = 4
"""Maximum runs that a headline names; of the others it says only how many there are."""


def with_interval(
    result: ClusteredMean | ClusteredDifference, unit: str, *, signed: bool = False
) -> str:
    """`+4.1 [0.9, 7.3]`, or only the value if there is no interval."""
    value, ends = figure(result.mean, unit, signed=signed), interval(result, unit)

    return f"{value} {ends}" if ends else value


def interval(result: ClusteredMean | ClusteredDifference, unit: str) -> str:
    """`[0.9, 7.3]`; empty without an interval."""
    if result.low is None or result.high is None:
        return ""

    return f"[{figure(result.low, unit)}, {figure(result.high, unit)}]"


def sentences(comparison: Comparison, most: int | None = None) -> list[str]:
    """Sentences on all differences: one for all if the conversations are too few."""
    results = [difference.result for difference in comparison.differences]
    if len(results) > 1 and are_too_few(comparison):
        widest = widest_of(results)
        alike = [pair for pair in comparison.differences if pair.sent_alike]
        return [
            f"{detection_limit(widest, comparison.unit)}.",
            *(sentence(comparison, pair) for pair in alike[:most]),
        ]

    lines = [sentence(comparison, difference) for difference in comparison.differences[:most]]
    left = len(comparison.differences) - len(lines)
    if left:
        lines.append(f"{left} more differences are in comparison.md.")

    return lines


def details(comparison: Comparison, most: int) -> list[str]:
    """Sentences after the lead: all differences in figures, if one is shown or would be shown
    alone; else only the pairs that sent the same prompts.
    """
    if any(pair.is_shown or is_significant(pair.result.p) for pair in comparison.differences):
        return sentences(comparison, most)

    alike = [pair for pair in comparison.differences if pair.sent_alike]
    return [sentence(comparison, pair) for pair in alike[:most]]


def findings(comparison: Comparison) -> list[str]:
    """The lead and the sentences after it, on at most `MOST_SENTENCES` differences."""
    return [*lead_sentences(comparison), *details(comparison, MOST_SENTENCES)]


def lead_sentences(comparison: Comparison) -> list[str]:
    """First sentences, without statistics: `A 50.8 % · B 50.0 % are higher than C 37.7 %.`

    A sentence for each group of runs that were compared with each other.
    """
    groups = groups_of((pair.first, pair.second) for pair in comparison.differences)
    return [_lead_of(comparison, keys) for keys in groups]


def _lead_of(comparison: Comparison, keys: Container[str]) -> str:
    pairs = [pair for pair in comparison.differences if pair.first in keys]
    runs = [run for run in comparison.runs if run.key in keys and run.result is not None]
    runs.sort(key=_mean, reverse=True)
    about = "" if comparison.metric == "accuracy" else f"{_metric_words(comparison)}: "
    ranked = _rank_groups(runs)
    if len(ranked) > 1:
        return f"{about}{ranking_text([_figures(comparison, group) for group in ranked])}."

    # Two runs may differ from each other although neither differs from the baseline.
    apart = _lower_runs(runs)
    if apart or any(pair.is_shown for pair in pairs):
        return f"{about}{_against_baseline(comparison, pairs, apart)}."

    results = [pair.result for pair in pairs]
    return f"{about}{no_difference(_figures(comparison, runs), results, comparison.unit)}."


def _metric_words(comparison: Comparison) -> str:
    """The metric, followed by `per question` unless it is a share: `tokens per question`."""
    per = "" if comparison.unit == POINTS.name else " per question"
    return f"{comparison.metric}{per}"


def _mean(run: ComparedRun) -> float:
    return run.result.mean if run.result else 0.0


def _rank_groups(runs: list[ComparedRun]) -> list[list[ComparedRun]]:
    """Groups of runs in descending order, each higher than the next; one group if their letters
    overlap.
    """
    groups: dict[str, list[ComparedRun]] = {}
    for run in runs:
        groups.setdefault(run.letters, []).append(run)

    ranked = list(groups.values())
    letters = "".join(groups)
    overlap = "" in groups or len(set(letters)) < len(letters)
    # If the runs vary widely, the lowest may share its letter with the highest.
    interleaved = any(_mean(higher[-1]) <= _mean(lower[0]) for higher, lower in pairwise(ranked))

    return [runs] if overlap or interleaved else ranked


def _lower_runs(runs: list[ComparedRun]) -> dict[str, list[ComparedRun]]:
    """By label, the lower runs that share no letter with a run; `runs` are in descending order."""
    apart: dict[str, list[ComparedRun]] = {}
    for at, run in enumerate(runs):
        letters = set(run.letters)
        lower = [low for low in runs[at + 1 :] if low.letters and not letters & set(low.letters)]
        if letters and lower:
            apart[run.label] = lower

    return apart


def ranking_text(groups: list[list[str]]) -> str:
    """`A is higher than B · C, which are higher than D`."""
    parts = [_join_names(groups[0])]
    for before, group in pairwise(groups):
        which = ", which" if len(parts) > 1 else ""
        parts.append(f"{which} {_verb(len(before))} higher than {_join_names(group)}")

    return "".join(parts)


def _against_baseline(
    comparison: Comparison, pairs: list[Difference], apart: dict[str, list[ComparedRun]]
) -> str:
    """Which runs are higher and lower than the baseline, or else than another run; without a
    baseline, how many pairs differ.
    """
    shown = [pair for pair in pairs if pair.is_shown]
    if comparison.baseline is None:
        return f"{len(shown)} of {len(pairs)} pairs of runs differ; no other difference is shown"

    higher = [comparison.run(pair.first) for pair in shown if pair.result.mean > 0]
    lower = [comparison.run(pair.first) for pair in shown if pair.result.mean < 0]
    others = [comparison.run(pair.first) for pair in pairs if not pair.is_shown]
    baseline = comparison.run(comparison.baseline)
    (against,) = _figures(comparison, [baseline])
    parts = [
        f"{_join_names(_figures(comparison, runs))} {_verb(len(runs))} {direction} than {against}"
        for direction, runs in (("higher", higher), ("lower", lower))
        if runs
    ]
    if others:
        named, of = (
            _join_names(_figures(comparison, others)),
            against if not shown else baseline.label,
        )
        # Capitalised at the start of the sentence, unless the name of a metric comes first.
        no = "No" if not parts and comparison.metric == "accuracy" else "no"
        parts.append(f"{no} difference from {of} is shown for {named}")
    if not shown:
        parts += [
            f"{label} is higher than {_join_names([run.label for run in lower])}"
            for label, lower in apart.items()
        ][:MOST_NAMES]

    return "; ".join(parts)


def no_difference(values: list[str], results: Sequence[ClusteredDifference], unit: str) -> str:
    """`A 37.6 % · B 35.5 %: no difference shown; 3 conversations are too few, …`."""
    said = f"{_join_names(values)}: no difference shown"
    if all(result.has_too_few_clusters for result in results):
        widest = widest_of(results)
        more = larger_data(widest, unit).replace(";", ",")
        return f"{said}; {_too_few(widest)}{more}"

    least = max(results, key=lambda result: result.mde or 0.0)
    if (
        least.mde is None
        or least.mde <= abs(least.mean)
        or (unit == POINTS.name and least.mde >= 1)
    ):
        return f"{said}; {detection_limit(least, unit)}"

    able = f"{counted(least.groups, 'conversation')} can"
    return f"{said}; {able} show about {figure(least.mde, unit)} {_word(unit)}"


def widest_of(results: Sequence[ClusteredDifference]) -> ClusteredDifference:
    """The difference whose error determines how many more conversations would be enough."""
    return max(results, key=lambda result: (result.groups, result.largest_error or 0.0))


def _figures(comparison: Comparison, runs: list[ComparedRun]) -> list[str]:
    """`bm25 37.7 %` for each run."""
    return [
        f"{run.label} {with_unit(run.result.mean if run.result else None, comparison.unit)}"
        for run in runs
    ]


def with_unit(value: float | None, unit: str) -> str:
    """`37.7 %`, `$0.02`, `304 tokens`."""
    shown = figure(value, unit)
    if value is None:
        return shown
    if unit == POINTS.name:
        return f"{shown} %"

    return f"${shown}" if unit == DOLLARS.name else f"{shown} {unit}"


def _word(unit: str) -> str:
    """A unit as it is written after a figure in a sentence."""
    return DOLLARS.word if unit == DOLLARS.name else unit


def _join_names(names: list[str]) -> str:
    """Names separated by dots; of many, only the first ones and the number of the others."""
    left = len(names) - MOST_NAMES
    if left < 2:
        return " · ".join(names)

    return f"{' · '.join(names[:MOST_NAMES])} and {left} more"


def _verb(count: int) -> str:
    return "is" if count == 1 else "are"


def are_too_few(comparison: Comparison) -> bool:
    """Whether each difference has too few conversations to be shown."""
    return all(difference.result.has_too_few_clusters for difference in comparison.differences)


def sentence(comparison: Comparison, difference: Difference) -> str:
    """Sentence on a difference: words first, figures after."""
    result, unit = difference.result, comparison.unit
    names = [comparison.run(key).label for key in (difference.first, difference.second)]
    measured = "" if comparison.metric == "accuracy" else f" in {_metric_words(comparison)}"
    if difference.sent_alike:
        alike = f"{difference.sent_alike:,} of {result.count:,} questions"
        rest = "" if difference.same_prompts else ", and no question has a different value"
        why = f": {difference.why_alike}" if difference.why_alike else ""
        return f"{names[0]} sent the same prompts as {names[1]} on {alike}{rest}{why}."

    pair = f"{measured} between {names[0]} and {names[1]}"

    if result.largest_error is None and result.mean == 0:
        return f"{names[0]} and {names[1]} have the same value{measured} on every question."

    amount = f"{figure(result.mean, unit, signed=True)} {_word(unit)}"
    if result.has_too_few_clusters:
        few = _too_few(result)
        return f"{few} to show any difference{pair}: {amount}{larger_data(result, unit)}."

    amount = " ".join([amount, interval(result, unit)])
    if not difference.is_shown and not is_significant(result.p):
        return f"No difference shown{pair}: {amount}; {detection_limit(result, unit)}."

    direction = "higher" if result.mean > 0 else "lower"
    upwards = result if result.mean >= 0 else result.reversed()
    amount = f"{figure(upwards.mean, unit)} {_word(unit)} {interval(upwards, unit)}"
    clause = f"{names[0]} is {direction} than {names[1]}{measured} by {amount}"
    p, adjusted = probability(result.p), probability(difference.adjusted_p)
    if not difference.is_shown:
        return (
            f"{clause} on its own (p {p}), but not among {difference.among:,} comparisons "
            f"({adjusted_name(comparison)} {adjusted})."
        )

    more = f", {adjusted_name(comparison)} {adjusted}" if difference.among > 1 else ""
    return f"{clause} (p {p}{more})."


def detection_limit(result: ClusteredDifference, unit: str) -> str:
    """End of a sentence about a difference not shown: which difference the data could show."""
    if result.has_too_few_clusters:
        return f"{_too_few(result)} to show any difference{larger_data(result, unit)}"
    if result.mde is None and result.mean:
        return "every question differs by the same amount, so this data shows no spread"
    if result.mde is None:
        return "no question has a different value"
    # Two shares differ by 100 points at most.
    if unit == POINTS.name and result.mde >= 1:
        return "this data can't reliably detect any difference"
    # The conversations disagree so much that the MDE, a rule of thumb, is below a difference that
    # was not shown.
    if result.mde <= abs(result.mean):
        return f"such data would show {figure(result.mde, unit)} with 80 % power, but not here"

    return f"the smallest difference this data could reliably detect is {figure(result.mde, unit)}"


def larger_data(result: ClusteredDifference, unit: str) -> str:
    """`; 10 would show about 26.8 points`; empty if it is not known."""
    # A single conversation does not say how strongly its questions are correlated.
    if result.groups < 2 or result.largest_error is None:
        return ""

    most = 1.0 if unit == POINTS.name else None
    found = more_clusters(result.largest_error, result.groups, most=most)
    if found is None:
        return ""

    return f"; {found[0]:,} would show about {figure(found[1], unit)} {_word(unit)}"


def _too_few(result: ClusteredDifference) -> str:
    """`3 conversations are too few`."""
    return f"{counted(result.groups, 'conversation')} {_verb(result.groups)} too few"


def adjusted_name(comparison: Comparison) -> str:
    """Name of the adjusted p in sentences."""
    is_discovery = comparison.adjustment == BENJAMINI_HOCHBERG
    return "Benjamini–Hochberg" if is_discovery else "adjusted"
