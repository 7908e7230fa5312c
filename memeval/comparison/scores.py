"""Score of each question of a run, read from `records.jsonl`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Protocol, Self

from msgspec import Struct, field
from msgspec.structs import replace

from memeval.datasets.grouping import group
from memeval.metrics.metric import Metric
from memeval.records import Role
from memeval.results import Record, is_imported
from memeval.results.run import Run
from memeval.statistics.differences import ClusteredDifference, clustered_difference
from memeval.statistics.means import mean, sample_std
from memeval.text.shown import counted


class Weighted(Protocol):
    @property
    def weight(self) -> float:
        """Number of questions that a question represents."""


class AskedQuestion(Struct, frozen=True):
    """Properties of a question before it is answered."""

    case_id: str
    category: str
    category_name: str
    gold: tuple[str, ...]
    text: str = ""
    weight: float = 1.0
    """Number of questions of its category that it represents in a sample."""


class RunScores(Struct, frozen=True):
    """The values of one run under one metric."""

    questions: Mapping[str, AskedQuestion]
    """The questions that were asked and count for the metric, by id, in the run's order."""
    values: Mapping[str, float]
    """Mean over the repeats of each question that has a value, by id."""
    std: float | None
    """Sample standard deviation of repeats' means: re-run noise. None for one repeat."""
    repeats: int
    metrics: frozenset[str] = frozenset()
    """Names of the metrics in the run's records, if no question has a value of this one."""
    models: Mapping[tuple[Role, str], set[str]] = field(default_factory=dict)
    """The models that replies named, if known, by role and requested model."""

    def on(self, questions: Iterable[str]) -> Self:
        """The scores on some of its questions."""
        asked = {name: self.questions[name] for name in questions}
        values = {name: self.values[name] for name in asked if name in self.values}
        return replace(self, questions=asked, values=values)

    def common(self, other: Self) -> list[str]:
        """The questions that have a value in both runs."""
        return [question for question in self.values if question in other.values]

    def grouped(self, member: str, questions: Iterable[str]) -> dict[str, list[str]]:
        """Some of its questions by a member, such as `case_id`, in order."""
        return group((getattr(self.questions[name], member), name) for name in questions)

    @property
    def mean(self) -> float | None:
        """The mean over the questions that have a value, if any."""
        return mean(self.values.values(), weights_of(self, self.values))


def deltas_of(
    values: Mapping[str, float], others: Mapping[str, float], questions: Iterable[str]
) -> list[float]:
    """The increase of the value of each question."""
    return [values[question] - others[question] for question in questions]


def cases_of(scores: RunScores, questions: Iterable[str]) -> list[str]:
    return [scores.questions[question].case_id for question in questions]


def shared_scores(scores: Sequence[RunScores]) -> list[RunScores]:
    """The scores on the questions that all runs asked in the same words, with the same answers."""
    asked = scores[0].questions
    names = list(asked)
    for other in scores[1:]:
        names = [name for name in names if _asks_same(asked[name], other.questions.get(name))]

    return [other.on(names) for other in scores]


def _asks_same(question: AskedQuestion, other: AskedQuestion | None) -> bool:
    return other is not None and (question.text, question.gold) == (other.text, other.gold)


def weights_of(scores: RunScores, questions: Iterable[str]) -> list[float]:
    """The number of questions that each question represents."""
    return [scores.questions[question].weight for question in questions]


def describe_other_weights(
    questions: Mapping[str, Weighted], others: Mapping[str, Weighted]
) -> Iterator[str]:
    """A reason not to compare, if questions have other weights elsewhere: it is another sample."""
    ratios = []
    for name, question in questions.items():
        if name in others:
            ratios.append(others[name].weight / question.weight)

    # A factor that all weights have in common changes no figure.
    if ratios and max(ratios) > (1 + 1e-9) * min(ratios):
        changed = sum(abs(ratio - 1) > 1e-9 for ratio in ratios)
        yield f"different weights of {counted(changed, 'question')}: a different sample"


def difference_on(
    questions: Sequence[str],
    scores: RunScores,
    values: Mapping[str, float],
    others: Mapping[str, float],
    *,
    most: float | None = None,
) -> ClusteredDifference:
    """Values minus others on some questions of `scores`, at least one, with its uncertainty.

    `most` is the largest possible difference.
    """
    deltas = deltas_of(values, others, questions)
    cases, weights = cases_of(scores, questions), weights_of(scores, questions)
    result = clustered_difference(deltas, cases, weights, most=most)
    assert result is not None, "there are questions"
    return result


def read_scores(run: Run, metric: Metric) -> RunScores:
    """The scores of a run.

    Raises `UserError` naming file and line if its records can't be read.
    """
    headline = run.summary.headline
    unknown = metric.of_calls and is_imported(run.summary)
    questions: dict[str, AskedQuestion] = {}
    columns: dict[str, list[float | None]] = {}
    repeats: dict[int, tuple[list[float | None], list[float]]] = {}
    names: frozenset[str] = frozenset()
    models: dict[tuple[Role, str], set[str]] = {}

    for record in run.iter_records():
        names = names or frozenset(record.metrics)
        for usage in record.usage:
            named = record.notes.get(usage.role.models_note)
            # Without the note, each reply named the requested model, or none that is known.
            if not isinstance(named, list):
                named = [usage.model]
            models.setdefault((usage.role, usage.model), set()).update(map(str, named))

        category = str(record.category)
        # Such as LoCoMo’s adversarial questions, which never enter the accuracy.
        if headline and not (metric.all_categories or category in headline):
            continue

        # The records of imported answers contain only the judge's calls.
        value = None if unknown else metric.of_question(record)
        if record.question_id not in questions:
            questions[record.question_id] = _asked_question(record)

        columns.setdefault(record.question_id, []).append(value)
        column, weights = repeats.setdefault(record.repeat, ([], []))
        column.append(value)
        weights.append(record.weight)

    means = {question_id: mean(column) for question_id, column in columns.items()}
    values = {name: value for name, value in means.items() if value is not None}
    return RunScores(
        questions=questions,
        values=values,
        std=sample_std(starmap(mean, repeats.values())),
        repeats=len(repeats),
        metrics=frozenset() if values else names,
        models=models,
    )


def _asked_question(record: Record) -> AskedQuestion:
    category = str(record.category)
    return AskedQuestion(
        case_id=record.case_id,
        category=category,
        category_name=record.category_name or category,
        gold=record.gold,
        text=record.question,
        weight=record.weight,
    )
