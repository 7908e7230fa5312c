"""Effect of each part of a run on its figure, measured from records and finished runs.

Each part is changed alone, so the changes do not add up.
"""

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from msgspec import Struct

from memeval.comparison.claims.matching import Match, claimed_rows, rests_on_answers
from memeval.comparison.claims.records import JUDGED
from memeval.comparison.scores import RunScores, difference_on, read_scores, weights_of
from memeval.datasets.lint.records import differing_settings
from memeval.metrics.registry import metric_named
from memeval.metrics.retrieval import CUTOFFS
from memeval.report.differences import setting_value
from memeval.results import HYPOTHESES_FILE, is_same_judge, judge_shown
from memeval.results.run import Run
from memeval.statistics.clusters import weighted_mean
from memeval.statistics.means import mean
from memeval.text.shown import counted, natural_order, one_line


class DifferingPart(StrEnum):
    """Parts in which two figures may differ."""

    JUDGE = "judge"
    CATEGORIES = "categories"
    AVERAGE = "average"
    QUESTIONS = "questions"
    FILE = "file"
    K = "k"
    PROMPT = "prompt"
    MODEL = "reading model"
    SYSTEM = "system's settings"
    COVERAGE = "coverage"


_SETTINGS: Mapping[DifferingPart, Callable[[str], bool]] = {
    DifferingPart.K: lambda name: name == "top_k",
    DifferingPart.FILE: lambda name: name in ("dataset.labels", "dataset.path"),
    DifferingPart.PROMPT: lambda name: name.partition(".")[0] == "prompt",
    DifferingPart.MODEL: lambda name: name.startswith("llm") and not name.startswith("llm.judge"),
}
"""For each part in which finished runs may differ, whether a setting belongs to it."""
_RULES = ("keyword_pass", "contains", "exact_match")
"""Metrics of records that judge an answer without a model."""


class Effect(Struct, frozen=True):
    """The run's figure after one change."""

    part: DifferingPart
    text: str
    """The change, in words."""
    value: float
    """The figure after the change, in per cent."""
    change: float
    """In points, against the run's own figure."""
    low: float | None = None
    """Low end of its 95 % interval (points); None if questions differ or conversations too few."""
    high: float | None = None


def effects_of(match: Match, run: Run, known: Sequence[Run]) -> tuple[float | None, list[Effect]]:
    """The run's figure as a claim counts it, in per cent, and the effect of each part on it.

    `known` are the finished runs; valid ones may differ from it in only one part. Raises
    `UserError` if records can't be read.
    """
    if not rests_on_answers(match.figure.metric):
        return match.own, list(_of_retrieval(match, run))

    asked = _read(run, match.figure.metric)
    value = _mean_percent(_claimed(asked, match, run))
    if value is None:
        return None, []

    return value, list(_of_answers(match, run, asked, [other for other in known if other.valid]))


def _read(run: Run, metric: str) -> RunScores:
    """The scores of all questions of a run. Raises `UserError` if records can't be read."""
    return read_scores(run, replace(metric_named(metric), all_categories=True))


def _claimed(asked: RunScores, match: Match, run: Run) -> RunScores:
    wanted = {row.category for row in claimed_rows(match.claim.protocol, run.summary)}
    return asked.on(_names(asked, wanted))


def _names(scores: RunScores, categories: Collection[str]) -> list[str]:
    """The questions of some categories."""
    return [name for name, question in scores.questions.items() if question.category in categories]


def _mean_percent(scores: RunScores) -> float | None:
    """The mean over questions, in per cent."""
    return None if scores.mean is None else 100 * scores.mean


def _of_answers(match: Match, run: Run, asked: RunScores, known: Sequence[Run]) -> Iterator[Effect]:
    """Measured effects on a share of right answers."""
    answers = _claimed(asked, match, run)
    if match.figure.metric in JUDGED:
        yield from _by_judges(match, run, answers, known)

    yield from _by_categories(asked, answers)
    yield from _by_averages(answers)
    unscored = len(answers.questions) - len(answers.values)
    if unscored:
        filled = [answers.values.get(name, 0.0) for name in answers.questions]
        value = 100 * weighted_mean(filled, weights_of(answers, answers.questions))
        text = f"{counted(unscored, 'question')} without a score counted as wrong"
        yield from _effect(DifferingPart.COVERAGE, text, value, answers)

    yield from _by_other_runs(match, run, answers, known)


def _by_categories(asked: RunScores, answers: RunScores) -> Iterator[Effect]:
    """With the categories that the claim leaves out, or without each of its own."""
    categories = _categories(answers)
    if len(answers.questions) < len(asked.questions):
        others = _categories(asked) - categories
        text = f"with category {', '.join(map(one_line, sorted(others, key=natural_order)))}"
        yield from _effect(DifferingPart.CATEGORIES, text, _mean_percent(asked), answers)
        text += " in the numerator only"
        value = _with_unclaimed_in_numerator(asked, answers)
        yield from _effect(DifferingPart.CATEGORIES, text, value, answers)
    elif len(categories) > 1:
        for category in sorted(categories, key=natural_order):
            rest = answers.on(_names(answers, categories - {category}))
            text = f"without category {one_line(category)}"
            yield from _effect(DifferingPart.CATEGORIES, text, _mean_percent(rest), answers)


def _categories(scores: RunScores) -> set[str]:
    return {question.category for question in scores.questions.values()}


def _by_averages(answers: RunScores) -> Iterator[Effect]:
    """The mean of the categories' means, and of the conversations', if there are several."""
    for title, member in (("categories", "category"), ("conversations", "case_id")):
        groups = answers.grouped(member, answers.questions).values()
        if len(groups) > 1:
            value = mean(_mean_percent(answers.on(names)) for names in groups)
            text = f"mean of the {title}' means"
            yield from _effect(DifferingPart.AVERAGE, text, value, answers)


def _with_unclaimed_in_numerator(asked: RunScores, answers: RunScores) -> float | None:
    """All right answers divided by the claimed questions, in per cent: as in a published 84 %."""
    whole, claimed = _mean_percent(asked), _mean_percent(answers)
    if whole is None or claimed is None:
        return None

    return whole * _scored_weight(asked) / _scored_weight(answers)


def _scored_weight(scores: RunScores) -> float:
    return sum(weights_of(scores, scores.values))


def _effect(
    part: DifferingPart, text: str, value: float | None, answers: RunScores
) -> Iterator[Effect]:
    measured = _mean_percent(answers)
    if value is not None and measured is not None:
        yield Effect(part, text, value, value - measured)


def _paired_effect(
    part: DifferingPart, text: str, answers: RunScores, others: Mapping[str, float]
) -> Iterator[Effect]:
    """The change on the questions that have both values, with its interval."""
    common = [name for name in answers.values if name in others]
    if not common:
        return

    result = difference_on(common, answers, others, answers.values)
    if len(common) < len(answers.values):
        text += f", on {len(common):,} of {len(answers.values):,} questions"

    value = 100 * weighted_mean([others[name] for name in common], weights_of(answers, common))
    low, high = result.low, result.high
    if low is not None and high is not None:
        low, high = 100 * low, 100 * high

    yield Effect(part, text, value, change=100 * result.mean, low=low, high=high)


def _by_judges(
    match: Match, run: Run, answers: RunScores, known: Sequence[Run]
) -> Iterator[Effect]:
    """Effects of other judges on the same answers: the judges of finished runs, and word rules."""
    judges = _other_judges(run, known)
    for judge, other in judges.items():
        text = f"the same answers by {one_line(judge)} (run {other.key})"
        yield from _paired_effect(DifferingPart.JUDGE, text, answers, _values(match, other))

    yield from _by_rules(answers, run, judges)


def _by_rules(answers: RunScores, run: Run, judged: Container[str]) -> Iterator[Effect]:
    """Effects of judging the same answers by word rules, whose results the records contain. Rules
    in `judged` are left out.
    """
    run_judge = judge_shown(run.summary.judge)
    for rule in _RULES:
        name = rule.removesuffix("_pass")
        if name == run_judge or name in judged:
            continue

        text = f"the same answers by judge={name}"
        yield from _paired_effect(DifferingPart.JUDGE, text, answers, _read(run, rule).values)


def _other_judges(run: Run, known: Sequence[Run]) -> dict[str, Run]:
    """For each other judge, the latest finished run that judged the same answers."""
    digest = run.summary.files.get(HYPOTHESES_FILE)
    by_judge = {}
    for other in known:
        judge = other.summary.judge
        is_same = digest is not None and other.summary.files.get(HYPOTHESES_FILE) == digest
        if is_same and judge is not None and not is_same_judge(run.summary.judge, judge):
            by_judge[judge_shown(judge)] = other

    return by_judge


def _by_other_runs(
    match: Match, run: Run, answers: RunScores, known: Sequence[Run]
) -> Iterator[Effect]:
    """Effects in the latest finished run that differs in only one part, per part and its values."""
    differing: dict[tuple[DifferingPart, str], Run] = {}
    for other in known:
        part = _only_part(run, other)
        if part is not None and is_same_judge(run.summary.judge, other.summary.judge):
            differing[part, _describe_params(run, other)] = other

    for (part, text), other in differing.items():
        yield from _paired_effect(part, f"{text} (run {other.key})", answers, _values(match, other))


def _only_part(run: Run, other: Run) -> DifferingPart | None:
    """The only part in which two runs differ; None if they differ in another way, or not at all."""
    names = differing_settings(run.summary, other.summary)
    if not names or run.summary.dataset != other.summary.dataset:
        return None

    for part, is_setting_of in _SETTINGS.items():
        if all(map(is_setting_of, names)):
            return part

    return None


def _describe_params(run: Run, other: Run) -> str:
    names = differing_settings(run.summary, other.summary)
    # A model has many settings: its name is the most informative.
    keys = [name for name in names if name.endswith(("model", "top_k", "labels"))] or names[:2]
    return ", ".join(f"{name}={one_line(setting_value(other.summary, name), 60)}" for name in keys)


def _values(match: Match, other: Run) -> Mapping[str, float]:
    return _claimed(_read(other, match.figure.metric), match, other).values


def _of_retrieval(match: Match, run: Run) -> Iterator[Effect]:
    """The ranking at other depths and at the other level (turn or session), and the accuracy."""
    measured = match.own
    if measured is None:
        return

    name = match.figure.metric
    head = name.rpartition("_at_")[0]
    other_level = f"session_{name}"
    if "session_" in name:
        other_level = name.replace("session_", "")

    metrics = run.summary.metrics
    for other in [*(f"{head}_at_{k}" for k in CUTOFFS), other_level]:
        value = metrics.get(other)
        if value is not None and other != name:
            text = metric_named(other).paper_title
            yield Effect(DifferingPart.K, text, 100 * value, 100 * value - measured)

    accuracy = metrics.get("accuracy")
    if accuracy is not None:
        text = "accuracy, the share of right answers"
        yield Effect(DifferingPart.JUDGE, text, 100 * accuracy, 100 * accuracy - measured)
