"""Conditions for comparing two runs: the same data, questions, labels, judge and prices, and enough
coverage. Runs that differ in one of them are different experiments. Comparing them is refused, with
the reason, unless `--force` is given.
"""

from collections.abc import Iterator

from msgspec import structs

from memeval.comparison.scores import RunScores, describe_other_weights
from memeval.metrics.formats import coverage_percent, percent
from memeval.metrics.metric import DOLLARS, Metric
from memeval.results import (
    JudgeIdentity,
    Note,
    NoteKind,
    RunSummary,
    is_same_judge,
    judge_shown,
)
from memeval.results.judge import RECORDED
from memeval.results.own_prices import PACKAGE_PRICES
from memeval.results.own_prices import VARIABLE as PRICES_VARIABLE
from memeval.results.prices import has_other_prices
from memeval.text.shown import counted, one_line

MIN_COVERAGE = 0.99
MIN_COMMON = 2
"""Minimum number of common questions for a comparison."""
LABELS = "dataset.labels"


def reasons_against(
    first: tuple[RunSummary, RunScores], second: tuple[RunSummary, RunScores], metric: Metric
) -> Iterator[Note]:
    """All reasons not to compare two runs under a metric."""
    summary, scores = first
    other, other_scores = second
    common = len(scores.common(other_scores))
    if common < MIN_COMMON:
        how_many = "one question" if common else "no question"
        text = f"{how_many} in common has a value of {metric.name} in both"
        yield Note(NoteKind.COMMON, text, common)

    if summary.dataset != other.dataset:
        names = f"{one_line(summary.dataset)}, {one_line(other.dataset)}"
        yield Note(NoteKind.DATASET, f"different data sets: {names}")

    if summary.data_sha256 != other.data_sha256:
        yield Note(NoteKind.DATA, _other_data(summary, other))

    yield from _other_questions(scores, other_scores)
    yield from _other_labels(first, second)
    # A run that only retrieves has no judge, and no value in common either.
    has_judges = not (summary.only_retrieves or other.only_retrieves)
    if metric.judged and has_judges and not is_same_judge(summary.judge, other.judge):
        text = other_judge(summary.judge, other.judge) + _same_model(summary, other)
        yield Note(NoteKind.JUDGE, text)

    yield from reasons_of_run(summary, metric)
    yield from reasons_of_run(other, metric)


def reasons_of_run(run: RunSummary, metric: Metric) -> Iterator[Note]:
    """The reasons that concern one run alone."""
    # Runs that differ only in settings of their system have the same name.
    name = f"{one_line(run.name)} ({run.run_key[:8]})"
    if run.found_nothing:
        text = f"no question of {name} got any context from its memory"
        yield Note(NoteKind.NOTHING_FOUND, text)

    # On questions that a run got wrong, its own accuracy is 0, and any other run's is higher.
    if "only" in run.tags and (metric.judged or metric.is_main):
        text = f"{name} asked only {one_line(run.tags['only'])}, so it has no score"
        yield Note(NoteKind.ONLY, text)

    if metric.unit is DOLLARS and has_other_prices(run.tags):
        way_out = f"repeat its command, or name its price file in {PRICES_VARIABLE}"
        if PACKAGE_PRICES in run.tags:
            packed = one_line(run.tags[PACKAGE_PRICES], 400)
            way_out = f"put those of its package into your price file:  models: {packed}"

        text = f"{name} has other prices than those in force: {way_out}"
        yield Note(NoteKind.PRICES, text)

    coverage = run.metrics.get("coverage")
    if coverage is None or coverage < MIN_COVERAGE:
        text = f"coverage of {name} is {low_coverage(coverage)}"
        yield Note(NoteKind.COVERAGE, text)


def low_coverage(coverage: float | None) -> str:
    """`97.1 %, below 99.0 %`."""
    shown = "not known" if coverage is None else f"{coverage_percent(coverage)} %"
    return f"{shown}, below {percent(MIN_COVERAGE)} %"


def _other_data(summary: RunSummary, other: RunSummary) -> str:
    digests, versions = [], []
    for run in (summary, other):
        digests.append(one_line(run.data_sha256[:8]) or "not known")
        versions.append(run.tags.get("data_version"))

    text = f"different data: sha256 {', '.join(digests)}"
    if None not in versions:
        text += f" (versions {', '.join(map(one_line, versions))})"

    return text


def other_judge(first: JudgeIdentity | None, second: JudgeIdentity | None) -> str:
    """The differences between two judges, in words."""
    if first is None or second is None or not (first.is_named and second.is_named):
        shown = ", ".join(one_line(judge_shown(judge)) or "none" for judge in (first, second))
        recorded = RECORDED in (getattr(first, "name", ""), getattr(second, "name", ""))
        more = " (evaluate --judged-by=NAME names it)" if recorded else ""
        return f"different judges: {shown}; an unnamed judge never equals another judge{more}"

    shown = f"{one_line(first.shown)}, {one_line(second.shown)}"
    parts = "; ".join(map(one_line, first.differences(second)))
    return f"different judges: {shown} (they differ in {parts})"


def _same_model(first: RunSummary, second: RunSummary) -> str:
    """A hint if two runs differ in their judge only because each was judged by its own model."""
    if first.judge is None or second.judge is None or first.judge.model == second.judge.model:
        return ""
    # Recorded verdicts do not come from a model of the run.
    if RECORDED in (first.judge.name, second.judge.name):
        return ""
    if not is_same_judge(structs.replace(first.judge, model=second.judge.model), second.judge):
        return ""
    for run in (first, second):
        if run.params.get("llm.judge.model") is not None:
            return ""

    return "; each run was judged by the model that answered: set llm.judge.model for both"


def _other_questions(scores: RunScores, other: RunScores) -> Iterator[Note]:
    asked, asked_other = scores.questions.keys(), other.questions.keys()
    if asked != asked_other:
        yield Note(
            NoteKind.QUESTIONS,
            f"different questions: {len(asked):,} and {len(asked_other):,}, "
            f"{len(asked & asked_other):,} in common",
        )

    for text in describe_other_weights(scores.questions, other.questions):
        yield Note(NoteKind.WEIGHTS, text)


def _other_labels(
    first: tuple[RunSummary, RunScores], second: tuple[RunSummary, RunScores]
) -> Iterator[Note]:
    (summary, scores), (other, other_scores) = first, second
    labels, other_labels = str(summary.params.get(LABELS, "")), str(other.params.get(LABELS, ""))
    # Different settings change many golds, so naming the settings says more than counting golds.
    if labels != other_labels:
        text = f"different labels: {one_line(labels)}, {one_line(other_labels)}"
        yield Note(NoteKind.LABELS, text)
        return

    relabelled = 0
    for name, question in scores.questions.items():
        relabelled += question.gold != other_scores.questions.get(name, question).gold

    if relabelled:
        questions = counted(relabelled, "question has", "questions have")
        text = f"different labels: {questions} different gold answers"
        yield Note(NoteKind.LABELS, text, relabelled)
