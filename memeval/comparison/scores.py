"""Score of each question of a run, read from `records.jsonl`.

At the end of a sweep the records of all cells are read. Of each line only the members that the
metric needs are parsed, and content that many lines share (the question, an offline judge's
verdict) once: a tenth of the time that whole records take.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memeval.errors import UserError
from memeval.metrics.metric import Metric
from memeval.results import RECORDS_FILE, Record
from memeval.results.run import MADE_AGAIN, Run
from memeval.statistics.means import mean, sample_std
from memeval.text.shown import one_line

# None of these can be within a string: there, quotes have a backslash before them.
_AFTER_QUESTION = b', "answerable": '
_STATUS = b', "status": '
_METRICS = b', "metrics": '
_RETRIEVED = b', "retrieved": '
_MOST_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """Known facts about a question before any answer."""

    question_id: str
    case_id: str
    category: str
    category_name: str
    repeat: int
    gold: tuple[str, ...]
    text: str = ""
    """Text of the question."""
    weight: float = 1.0
    """How many questions of its category it represents, in a sample."""


@dataclass(frozen=True)
class RunScores:
    """The values of one run under one metric."""

    questions: Mapping[str, AskedQuestion]
    """The questions that were asked and count for the metric, by id, in the run's order."""
    values: Mapping[str, float]
    """Means over the repeats, of the questions that have a value."""
    std: float | None
    """Sample standard deviation of the repeats' means: the noise of running again. None for one."""
    repeats: int
    metrics: frozenset[str] = frozenset()
    """Names of the metrics that records of the run have, if none has a value."""


def cases_of(scores: RunScores, questions: Iterable[str]) -> list[str]:
    """The conversation of each question."""
    return [scores.questions[question].case_id for question in questions]


def shared_scores(scores: Sequence[RunScores]) -> list[RunScores]:
    """The scores on the questions that all runs asked in the same words, with the same answers."""
    names = []
    for name, question in (scores[0].questions if scores else {}).items():
        asked = [own.questions.get(name) for own in scores]
        if all(one and (one.text, one.gold) == (question.text, question.gold) for one in asked):
            names.append(name)

    shared = []
    for own in scores:
        questions = {name: own.questions[name] for name in names}
        values = {name: own.values[name] for name in names if name in own.values}
        shared.append(replace(own, questions=questions, values=values))

    return shared


def weights_of(scores: RunScores, questions: Iterable[str]) -> list[float]:
    """How many questions each question represents."""
    return [scores.questions[question].weight for question in questions]


@dataclass
class ScoreReader:
    """Reads runs under one metric, and remembers what their lines share."""

    metric: Metric
    _questions: dict[bytes, AskedQuestion] = field(default_factory=dict)
    _values: dict[bytes, float | None] = field(default_factory=dict)

    def read(self, run: Run) -> RunScores:
        """The scores of a run.

        Raises `UserError` naming file and line if its records can't be read.
        """
        path = run.folder / RECORDS_FILE
        headline = {row.category for row in run.summary.categories if row.headline}
        unknown = self.metric.of_calls and run.summary.tags.get("imported") == "true"
        questions: dict[str, AskedQuestion] = {}
        columns: dict[str, list[float | None]] = {}
        repeats: dict[int, tuple[list[float | None], list[float]]] = {}

        for question, value in self._rows(path):
            # Such as LoCoMo’s adversarial questions, which never enter the accuracy.
            counts = self.metric.all_categories or question.category in headline
            if headline and not counts:
                continue

            # The records of imported answers hold the judge's calls alone.
            known = None if unknown else value
            questions.setdefault(question.question_id, question)
            columns.setdefault(question.question_id, []).append(known)
            column, weights = repeats.setdefault(question.repeat, ([], []))
            column.append(known)
            weights.append(question.weight)

        means = {question_id: mean(column) for question_id, column in columns.items()}
        values = {name: value for name, value in means.items() if value is not None}
        return RunScores(
            questions=questions,
            values=values,
            std=sample_std(mean(column, weights) for column, weights in repeats.values()),
            repeats=len(repeats),
            metrics=frozenset() if values else _metric_names(path),
        )

    def _rows(self, path: Path) -> Iterator[tuple[AskedQuestion, float | None]]:
        number = 0
        try:
            with path.open("rb") as file:
                for line in file:
                    number += 1
                    yield self._line(line)
        except OSError as error:
            raise UserError(
                f"{path} can't be read: {error.strerror or error}", MADE_AGAIN
            ) from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: {one_line(error)}", MADE_AGAIN) from error

    def _line(self, line: bytes) -> tuple[AskedQuestion, float | None]:
        # `json.loads` of whole lines, with their chunks and contexts, takes ten times as long.
        end = line.find(_AFTER_QUESTION)
        start = line.find(_STATUS, end)
        stop = line.find(_METRICS if self.metric.of_verdict else _RETRIEVED, start)
        is_in_line = self.metric.of_verdict is not None or self.metric.of_record is None
        if min(end, start, stop) < 0 or not is_in_line:
            return self._whole(line)

        try:
            question = _remembered(self._questions, line[:end] + b"}", _question_of)
            value = _remembered(self._values, b"{" + line[start + 2 : stop] + b"}", self._value)
        except (ValueError, KeyError, TypeError, AttributeError):
            return self._whole(line)

        return question, value

    def _value(self, members: Mapping[str, Any]) -> float | None:
        if self.metric.of_verdict is not None:
            return self.metric.of_verdict(members)

        value = members["metrics"].get(self.metric.name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"metrics.{self.metric.name} is not a number")

        return float(value)

    def _whole(self, line: bytes) -> tuple[AskedQuestion, float | None]:
        """Reads the whole record, if it is not laid out as ours are."""
        content = json.loads(line)
        if not isinstance(content, dict):
            raise ValueError("not an object")

        record = Record.from_json(content)
        return _question(record), self.metric.of_question(record)


def _remembered(known: dict[bytes, Any], text: bytes, read: Callable[[Any], Any]) -> Any:
    if text not in known:
        # A metric of many different values would else keep every line.
        if len(known) >= _MOST_REMEMBERED:
            known.clear()

        known[text] = read(json.loads(text))

    return known[text]


def _question(record: Record) -> AskedQuestion:
    return AskedQuestion(
        question_id=record.question_id,
        case_id=record.case_id,
        category=str(record.category),
        category_name=record.category_name or str(record.category),
        repeat=record.repeat,
        gold=record.gold,
        text=record.question,
        weight=record.weight,
    )


def _question_of(members: Mapping[str, Any]) -> AskedQuestion:
    """As `_question`, only from the members before the answer."""
    return _question(Record.from_json(members))


def _metric_names(path: Path) -> frozenset[str]:
    """The metrics of the first record, for an error that names them."""
    with path.open("rb") as file:
        line = file.readline()

    content = json.loads(line) if line.strip() else {}
    metrics = content.get("metrics") if isinstance(content, dict) else None
    return frozenset(metrics) if isinstance(metrics, dict) else frozenset()
