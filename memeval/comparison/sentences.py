"""Sentences on differences: words first, then figures, and no claim beyond the data."""

from collections.abc import Container, Sequence
from itertools import pairwise
from operator import attrgetter

from memeval.comparison.records import (
    BENJAMINI_HOCHBERG,
    ComparedRun,
    Comparison,
    Difference,
    are_too_few,
    is_significant,
    pair_labels,
)
from memeval.comparison.significance import groups_of
from memeval.metrics.formats import figure, probability
from memeval.metrics.metric import DOLLARS, POINTS
from memeval.statistics.clusters import ClusteredMean
from memeval.statistics.differences import ClusteredDifference, more_clusters
from memeval.text.shown import counted

ALMOST_ALL = 0.99
"""Minimum share of common questions; below it, the first sentence gives their number."""
MAX_SENTENCES = 12
"""Maximum differences described in words; the files of a comparison have all."""
MAX_NAMES = 4
"""Maximum runs that a headline names; the others are counted."""


def with_interval(
    result: ClusteredMean | ClusteredDifference, unit: str, *, signed: bool = False
) -> str:
    """`+4.1 [0.9, 7.3]`, or only the value if there is no interval."""
    value, ends = figure(result.mean, unit, signed=signed), interval(result, unit)
    return f"{value} {ends}".rstrip()


def interval(result: ClusteredMean | ClusteredDifference, unit: str) -> str:
    """`[0.9, 7.3]`; empty without an interval."""
    if result.low is None or result.high is None:
        return ""

    return f"[{figure(result.low, unit)}, {figure(result.high, unit)}]"


def sentences(comparison: Comparison, most: int | None = None) -> list[str]:
    """Sentences on all differences: one for all if the conversations are too few."""
    if len(comparison.differences) > 1 and are_too_few(comparison.differences):
        limit = detection_limit(widest_of(comparison.differences), comparison.unit)
        return [f"{limit}.", *_sentences_on_alike(comparison, most)]

    lines = [sentence(comparison, difference) for difference in comparison.differences[:most]]
    left = len(comparison.differences) - len(lines)
    if left:
        lines.append(f"comparison.md has {counted(left, 'more difference')}.")

    return lines


def details(comparison: Comparison, most: int) -> list[str]:
    """Sentences after the lead: all differences in figures, if one is shown or would be shown
    alone; else only the pairs that sent the same prompts.
    """
    if any(pair.is_shown or is_significant(pair.result.p) for pair in comparison.differences):
        return sentences(comparison, most)

    return _sentences_on_alike(comparison, most)


def _sentences_on_alike(comparison: Comparison, most: int | None) -> list[str]:
    """Sentences on the pairs that sent the same prompts."""
    alike = [pair for pair in comparison.differences if pair.sent_alike]
    return [sentence(comparison, pair) for pair in alike[:most]]


def findings(comparison: Comparison) -> list[str]:
    """The lead and the sentences after it, on at most `MAX_SENTENCES` differences."""
    return [*lead_sentences(comparison), *details(comparison, MAX_SENTENCES)]


def lead_sentences(comparison: Comparison) -> list[str]:
    """First sentences, without statistics: `A 50.8 % · B 50.0 % are higher than C 37.7 %.`

    A sentence for each group of runs that were compared with each other.
    """
    leads = []
    for keys in groups_of((pair.first, pair.second) for pair in comparison.differences):
        pairs = [pair for pair in comparison.differences if pair.first in keys]
        leads.append(f"{_lead_of(comparison, keys, pairs)}{_sentence_on_common(pairs)}")

    return leads


def _sentence_on_common(pairs: Sequence[Difference]) -> str:
    """Sentence on a difference over only a part of the scored questions; otherwise empty."""
    pair = min(pairs, key=attrgetter("common_share"))
    if pair.common_share >= ALMOST_ALL:
        return ""

    least = "at least " if len(pairs) > 1 else ""
    questions = f"{least}{pair.result.count:,} of {pair.most_scored:,}"
    return f" Compared on the questions that both scored, {questions}."


def _lead_of(comparison: Comparison, keys: Container[str], pairs: list[Difference]) -> str:
    runs = [run for run in comparison.runs if run.key in keys and run.result is not None]
    runs.sort(key=_mean, reverse=True)
    about = _metric_words(comparison)
    if about:
        about += ": "

    ranked = _rank_groups(runs)
    if len(ranked) > 1:
        return f"{about}{ranking_text([_figures(comparison, group) for group in ranked])}."

    # Two runs may differ from each other although neither differs from the baseline.
    apart = _lower_runs(runs)
    if apart or any(pair.is_shown for pair in pairs):
        return f"{about}{_against_baseline(comparison, pairs, apart)}."

    return f"{about}{no_difference(_figures(comparison, runs), pairs, comparison.unit)}."


def _metric_words(comparison: Comparison) -> str:
    """The metric, and what it is a mean over unless it is a share: `latency_ms per question`. Empty
    for the accuracy, which needs no name.
    """
    if comparison.metric == "accuracy":
        return ""
    if comparison.unit == POINTS.name:
        return comparison.metric
    # Calls of a memory's ingest belong to no question: the table counts them, these figures don't.
    if comparison.metric in ("cost_usd", "tokens"):
        return f"{comparison.metric} per answer and verdict"

    return f"{comparison.metric} per question"


def _mean(run: ComparedRun) -> float:
    assert run.result is not None, "it was compared, so it has scored questions"
    return run.result.mean


def _rank_groups(runs: list[ComparedRun]) -> list[list[ComparedRun]]:
    """Groups of runs in descending order, each higher than the next; one group if their letters
    overlap.
    """
    groups: dict[str, list[ComparedRun]] = {}
    for run in runs:
        groups.setdefault(run.letters, []).append(run)

    letters = "".join(groups)
    if "" in groups or len(set(letters)) < len(letters):
        return [runs]

    ranked = list(groups.values())
    for higher, lower in pairwise(ranked):
        # If the runs vary widely, the lowest may share its letter with the highest.
        if _mean(higher[-1]) <= _mean(lower[0]):
            return [runs]

    return ranked


def _lower_runs(runs: list[ComparedRun]) -> dict[str, list[ComparedRun]]:
    """By label, the lower runs that share no letter with a run; `runs` are in descending order."""
    apart: dict[str, list[ComparedRun]] = {}
    for position, run in enumerate(runs, start=1):
        letters = set(run.letters)
        lower = [low for low in runs[position:] if low.letters and not letters & set(low.letters)]
        if letters and lower:
            apart[run.label] = lower

    return apart


def ranking_text(groups: list[list[str]]) -> str:
    """`A is higher than B · C, which are higher than D`."""
    higher, lower, *rest = groups
    text = f"{_join_names(higher)} {_verb(len(higher))} higher than {_join_names(lower)}"
    for before, group in pairwise([lower, *rest]):
        text += f", which {_verb(len(before))} higher than {_join_names(group)}"

    return text


def _against_baseline(
    comparison: Comparison, pairs: list[Difference], apart: dict[str, list[ComparedRun]]
) -> str:
    """The runs that are higher and lower than the baseline, or than another run; without a
    baseline, the number of pairs that differ.
    """
    if comparison.baseline is None:
        shown = sum(pair.is_shown for pair in pairs)
        return f"{shown} of {len(pairs)} pairs of runs differ; no other difference is shown"

    higher, lower, others = [], [], []
    for pair in pairs:
        run = comparison.run(pair.first)
        if not pair.is_shown:
            others.append(run)
        elif pair.result.mean > 0:
            higher.append(run)
        else:
            lower.append(run)

    baseline = comparison.run(comparison.baseline)
    (against,) = _figures(comparison, [baseline])
    parts = []
    for direction, runs in (("higher", higher), ("lower", lower)):
        if runs:
            names = _join_names(_figures(comparison, runs))
            parts.append(f"{names} {_verb(len(runs))} {direction} than {against}")

    if others:
        # Capitalised at the start of the sentence, unless the name of a metric comes first.
        no = "No" if not parts and comparison.metric == "accuracy" else "no"
        of = baseline.label if parts else against
        names = _join_names(_figures(comparison, others))
        parts.append(f"{no} difference from {of} is shown for {names}")
    if not higher and not lower:
        for label, below in list(apart.items())[:MAX_NAMES]:
            parts.append(f"{label} is higher than {_join_names([run.label for run in below])}")

    return "; ".join(parts)


def no_difference(values: list[str], differences: Sequence[Difference], unit: str) -> str:
    """`A 37.6 % · B 35.5 %: no difference shown; 3 conversations are too few, …`."""
    sentence_text = f"{_join_names(values)}: no difference shown"
    if are_too_few(differences):
        widest = widest_of(differences)
        more = larger_data(widest, unit).replace(";", ",")
        return f"{sentence_text}; {_too_few(widest)}{more}"

    vaguest = max(differences, key=lambda difference: difference.result.mde or 0.0).result
    if (
        vaguest.mde is None
        or vaguest.mde <= abs(vaguest.mean)
        or (unit == POINTS.name and vaguest.mde >= 1)
    ):
        return f"{sentence_text}; {detection_limit(vaguest, unit)}"

    limit = f"{figure(vaguest.mde, unit)} {_word(unit)}"
    return f"{sentence_text}; {counted(vaguest.groups, 'conversation')} can show about {limit}"


def widest_of(differences: Sequence[Difference]) -> ClusteredDifference:
    """The difference whose error determines how many more conversations would be enough."""
    results = [difference.result for difference in differences]
    return max(results, key=lambda result: (result.groups, result.largest_error or 0.0))


def _figures(comparison: Comparison, runs: list[ComparedRun]) -> list[str]:
    """`bm25 37.7 %` for each run."""
    return [f"{run.label} {with_unit(_mean(run), comparison.unit)}" for run in runs]


def with_unit(value: float | None, unit: str) -> str:
    """`37.7 %`, `$0.02`, `304 tokens`."""
    shown = figure(value, unit)
    if value is None:
        return shown
    if unit == POINTS.name:
        return f"{shown} %"
    if unit == DOLLARS.name:
        return f"${shown}"

    return f"{shown} {unit}"


def _word(unit: str) -> str:
    """A unit as it is written after a figure in a sentence."""
    return DOLLARS.word if unit == DOLLARS.name else unit


def _join_names(names: list[str]) -> str:
    """Names separated by dots; of many, only the first ones and the number of the others."""
    left = len(names) - MAX_NAMES
    if left < 2:
        return " · ".join(names)

    return f"{' · '.join(names[:MAX_NAMES])} and {left} more"


def _verb(count: int) -> str:
    return "is" if count == 1 else "are"


def sentence(comparison: Comparison, difference: Difference) -> str:
    """Sentence on a difference: words first, then figures."""
    result, unit = difference.result, comparison.unit
    first, second = pair_labels(comparison, difference)
    if difference.sent_alike:
        alike = f"{difference.sent_alike:,} of {result.count:,} questions"
        if not difference.same_prompts:
            alike += ", and no question has a different value"
        if difference.why_alike:
            alike += f": {difference.why_alike}"

        return f"{first} sent the same prompts as {second} on {alike}."

    measured = _metric_words(comparison)
    if measured:
        measured = f" in {measured}"

    if result.largest_error is None and result.mean == 0:
        return f"{first} and {second} have the same value{measured} on every question."

    pair = f"{measured} between {first} and {second}"
    amount = f"{figure(result.mean, unit, signed=True)} {_word(unit)}"
    if result.has_too_few_clusters:
        few = _too_few(result)
        return f"{few} to show any difference{pair}: {amount}{larger_data(result, unit)}."

    amount = f"{amount} {interval(result, unit)}"
    if not difference.is_shown and not is_significant(result.p):
        return f"No difference shown{pair}: {amount}; {detection_limit(result, unit)}."

    return f"{first} {_higher_or_lower(comparison, difference, second + measured)}."


def _higher_or_lower(comparison: Comparison, difference: Difference, other: str) -> str:
    """`is higher than B by 12.3 points [6.5, 20.7] (p .004)`."""
    result, unit, direction = difference.result, comparison.unit, "higher"
    if result.mean < 0:
        result, direction = result.reversed(), "lower"

    amount = f"{figure(result.mean, unit)} {_word(unit)} {interval(result, unit)}"
    clause = f"is {direction} than {other} by {amount}"
    p = f"p {probability(result.p)}"
    name = "Benjamini–Hochberg" if comparison.adjustment == BENJAMINI_HOCHBERG else "adjusted"
    adjusted = f"{name} {probability(difference.adjusted_p)}"
    if not difference.is_shown:
        among = f"but not among {difference.among:,} comparisons ({adjusted})"
        return f"{clause} on its own ({p}), {among}"
    if difference.among > 1:
        p += f", {adjusted}"

    return f"{clause} ({p})"


def detection_limit(result: ClusteredDifference, unit: str) -> str:
    """End of a sentence about a difference not shown: the difference that the data could show."""
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
    """`; 10 would show about 26.8 points`; empty if unknown."""
    # The correlation of questions can't be estimated from a single conversation.
    if result.groups < 2 or result.largest_error is None:
        return ""

    most = 1.0 if unit == POINTS.name else None
    enough = more_clusters(result.largest_error, result.groups, most=most)
    if enough is None:
        return ""

    return f"; {enough[0]:,} would show about {figure(enough[1], unit)} {_word(unit)}"


def _too_few(result: ClusteredDifference) -> str:
    """`3 conversations are too few`."""
    return f"{counted(result.groups, 'conversation')} {_verb(result.groups)} too few"
