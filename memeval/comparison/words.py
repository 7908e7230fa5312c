"""Differences in figures and sentences that claim no more than the data show."""

from collections.abc import Iterable

from memeval.comparison.records import (
    BENJAMINI_HOCHBERG,
    Comparison,
    Difference,
    compared_keys,
    pair_labels,
)
from memeval.metrics.formats import probability
from memeval.metrics.retrieval import cutoff_of
from memeval.report.flags import OF_SESSIONS
from memeval.statistics.clusters import dominating_cluster
from memeval.text.shown import counted, one_line, some_of

MAX_PAIRS = 8
RAW_VERDICTS = (
    "Differences, their intervals and p are based on the raw verdicts, not on corrected accuracies."
)
INDEPENDENT = (
    "*: the MDE uses the error of independent questions, which is larger here than the clustered "
    "one."
)
NO_WIDTH = "An interval without width says nothing about other conversations."


def describe_counts(comparison: Comparison, difference: Difference) -> str:
    """Numbers of questions of a difference, and of those that only one run has right."""
    first, second = pair_labels(comparison, difference)
    text = (
        f"{counted(difference.result.count, 'question')} in common, {difference.only_first:,} only "
        f"in {first}, {difference.only_second:,} only in {second}"
    )
    if difference.first_alone is None:
        return text

    return (
        f"{text}; right alone: {first} {difference.first_alone:,}, {second} "
        f"{difference.second_alone:,} (McNemar p {probability(difference.mcnemar_p)}, which "
        "ignores conversations)"
    )


def legend(comparison: Comparison) -> list[str]:
    """Meaning of the columns, and warnings that a reader must not overlook."""
    of_what = "the second run"
    letters = "Compared runs that share a letter can't be told apart."
    if comparison.baseline:
        of_what = "the baseline"
        letters = (
            "Runs that share a letter can't be told apart: from the baseline, by the rows here; "
            "from each other, by all their pairs, adjusted together."
        )

    lines = [
        f"Δ: run minus {of_what}, on the questions that both scored, in {comparison.unit}. "
        "In brackets: 95 % intervals, which allow for the questions of one conversation "
        "being correlated. The interval of Δ and p come from sign flips of whole conversations.",
        "The interval covers other conversations and questions; re-run std is the spread over "
        "repeats. Neither replaces the other.",
        f"adj.: p {adjusted_how(comparison)}. MDE: the smallest difference that this data shows "
        "with 80 % power.",
        *corrections(comparison),
    ]
    if any(run.letters for run in comparison.runs):
        lines.append(letters)

    if cutoff_of(comparison.metric) is not None:
        for run in comparison.runs:
            lines += [f"{run.label}: {flag}." for flag in run.flags if flag.startswith(OF_SESSIONS)]

    footnotes: dict[str, None] = {}
    for difference in comparison.differences:
        if difference.result.mde_from_independent:
            footnotes[INDEPENDENT] = None
        if difference.result.is_uniform:
            footnotes[NO_WIDTH] = None

    return [*lines, *footnotes, *caveats(comparison)]


def caveats(comparison: Comparison) -> list[str]:
    """Names each conversation with half of the questions or more, which decides alone, and the
    models that the replies named if these differ between runs.
    """
    lines: dict[str, str] = {}
    for difference in comparison.differences:
        name = dominating_cluster({case.case_id: case.count for case in difference.cases})
        if name is not None:
            lines[name] = f"{one_line(name, 80)} holds half of the questions or more."

    return [*lines.values(), *comparison.model_notes]


def adjusted_how(comparison: Comparison) -> str:
    """The adjustment of p for the number of tests."""
    if comparison.adjustment == BENJAMINI_HOCHBERG:
        return (
            f"by Benjamini–Hochberg over {comparison.tests:,} tests of all metrics: 5 % of the "
            "differences found are expected to be chance"
        )

    return "adjusted for all comparisons together (max-T)"


def corrections(comparison: Comparison) -> list[str]:
    """The corrected accuracies, and a line that differences are not based on them."""
    if comparison.metric != "accuracy":
        return []

    lines = []
    for run in comparison.runs:
        if run.corrected:
            about = f"{run.label}, corrected for its judge's error"
            lines.append(f"{about}: {run.corrected}")

    return [*lines, RAW_VERDICTS] if lines else []


def table_remarks(comparisons: Iterable[Comparison]) -> list[str]:
    """A remark if the table of the runs counts questions that are not compared."""
    if not any(comparison.left_out for comparison in comparisons):
        return []

    return ["The sentences compare the common questions; the table has all questions of each run."]


def headline(comparison: Comparison) -> list[str]:
    """The subject: the runs, the data, the judge; and whether the comparison was forced."""
    lines = [f"{comparison.metric}, in {comparison.unit}"]
    if comparison.baseline:
        lines[0] += f", against {comparison.run(comparison.baseline).label} (baseline)"
    else:
        lines[0] += ", all pairs"

    keys = compared_keys(comparison)
    runs = [run for run in comparison.runs if run.key in keys]
    if runs:
        data = ", ".join(dict.fromkeys(run.dataset for run in runs))
        lines[0] += f"; {_questions_compared(comparison)} of {data}"

    judges = dict.fromkeys(run.judge for run in runs if run.judge)
    if judges:
        word = "judges" if len(judges) > 1 else "judge"
        lines.append(f"{word}: {', '.join(judges)}")

    if comparison.warning:
        lines.append(comparison.warning)

    return lines


def _questions_compared(comparison: Comparison) -> str:
    """`38 to 122 questions of 10 conversations`."""
    counts, groups = set(), 0
    for difference in comparison.differences:
        counts.add(difference.result.count)
        groups = max(groups, difference.result.groups)

    asked = f"{min(counts):,}"
    if len(counts) > 1:
        asked += f" to {max(counts):,}"

    return f"{asked} questions of {counted(groups, 'conversation')}"


def refusal_lines(comparison: Comparison) -> list[str]:
    """The refusals, one line for all pairs with the same reasons."""
    by_reason: dict[tuple[str, ...], list[str]] = {}
    for refusal in comparison.refusals:
        pair = " with ".join(pair_labels(comparison, refusal))
        by_reason.setdefault(refusal.reasons, []).append(pair)

    lines = []
    for reasons, pairs in by_reason.items():
        why = "; ".join(reasons)
        lines.append(f"not compared: {some_of(pairs, MAX_PAIRS)}: {why}")

    return lines
