"""The baseline of a gate: a small file to commit, read back as data from outside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memeval.compare.finding import FinishedRun
from memeval.compare.metric import Metric
from memeval.compare.protocol import judge_identity
from memeval.compare.scores import RunScores
from memeval.errors import StorageError, UserError
from memeval.redaction import redacted
from memeval.results.fields import Fields, is_number, is_weight
from memeval.results.files import as_json, write_atomically
from memeval.shown import one_line

VERSION = 1
LARGEST = 64 * 2**20
"""Bytes of a baseline: a hundred times LoCoMo's."""
LABELS = "dataset.labels"
_MEMBERS = (
    "memeval_baseline",
    "metric",
    "run_key",
    "name",
    "dataset",
    "protocol",
    "data_sha256",
    "labels",
    "judge",
    "tokens",
    "cost_usd",
    "must_pass",
    "questions",
)
_OF_QUESTION = ("case", "category", "value", "weight")


@dataclass(frozen=True)
class BaselineQuestion:
    """A question as the run of the baseline asked it."""

    case_id: str
    category: str
    value: float | None
    """Mean over the repeats; None where it was not scored."""
    weight: float = 1.0


@dataclass(frozen=True)
class Baseline:
    """What a run is compared with."""

    metric: str
    run_key: str
    name: str
    dataset: str
    protocol: str
    """Shown, not compared: what must be equal has members of its own."""
    data_sha256: str
    labels: str
    judge: str | None
    """Name, model, prompt and settings of the judge; None where the metric is not the judge's."""
    tokens: float | None
    cost_usd: float | None
    must_pass: tuple[str, ...]
    questions: Mapping[str, BaselineQuestion]

    @property
    def values(self) -> dict[str, float]:
        """The values of the scored questions."""
        return {
            name: question.value
            for name, question in self.questions.items()
            if question.value is not None
        }


def judge_key(run: FinishedRun, metric: Metric) -> str | None:
    """Who judged a run, where the metric depends on it; with the whole digest of the prompt."""
    if not metric.judged:
        return None

    judge = judge_identity(run.summary)
    parts = [judge.name, judge.model or "", judge.prompt_sha256 or ""]
    parts += [f"{name}={value}" for name, value in judge.settings]
    return one_line(" ".join(filter(None, parts)), 1000)


def baseline_of(
    run: FinishedRun, metric: Metric, scores: RunScores, must_pass: Iterable[str]
) -> Baseline:
    """The baseline that a run makes.

    Raises `UserError` for a question that must pass and was not asked.
    """
    named = tuple(sorted(set(must_pass)))
    for name in named:
        if name not in scores.questions:
            raise UserError(f"--must-pass: {one_line(run.name)} did not ask '{one_line(name)}'")

    summary = run.summary
    questions = {
        name: BaselineQuestion(
            case_id=asked.case_id,
            category=asked.category_name,
            value=scores.values.get(name),
            weight=asked.weight,
        )
        for name, asked in scores.questions.items()
    }
    return Baseline(
        metric=metric.name,
        run_key=run.key,
        name=redacted(summary.name),
        dataset=summary.dataset,
        # Redacted: the file is committed.
        protocol=redacted(summary.tags.get("protocol", "")),
        data_sha256=summary.tags.get("data_sha256", ""),
        labels=str(summary.params.get(LABELS, "")),
        judge=judge_key(run, metric),
        tokens=summary.metrics.get("tokens/total"),
        cost_usd=summary.metrics.get("cost_usd_uncached/total"),
        must_pass=named,
        questions=questions,
    )


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Writes the file: a question a line, sorted, so that a diff shows what changed.

    Raises `StorageError` where the disk refuses.
    """
    head = {
        "memeval_baseline": VERSION,
        "metric": baseline.metric,
        "run_key": baseline.run_key,
        "name": baseline.name,
        "dataset": baseline.dataset,
        "protocol": baseline.protocol,
        "data_sha256": baseline.data_sha256,
        "labels": baseline.labels,
        "judge": baseline.judge,
        "tokens": baseline.tokens,
        "cost_usd": baseline.cost_usd,
        "must_pass": list(baseline.must_pass),
    }
    # json.dumps would put each member of a question on a line of its own: a diff would be long.
    lines = [f" {as_json(name)}: {as_json(value)}," for name, value in head.items()]
    rows = []
    for name, question in sorted(baseline.questions.items()):
        row: dict[str, Any] = {
            "case": question.case_id,
            "category": question.category,
            "value": question.value,
        }
        # Only questions of a sample have other weights.
        if question.weight != 1.0:
            row["weight"] = question.weight

        rows.append(f"  {as_json(name)}: {as_json(row)}")

    text = "\n".join(["{", *lines, ' "questions": {', ",\n".join(rows), " }", "}", ""])
    try:
        write_atomically(path, text)
    except OSError as error:
        raise StorageError(f"{path} can't be written: {error.strerror or error}") from error


def read_baseline(path: Path) -> Baseline:
    """Reads and checks a baseline.

    Raises `UserError` that says what does not fit.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it is larger than {LARGEST // 2**20} MB")

        # A merge of two branches may leave a question twice.
        content = json.loads(path.read_bytes(), object_pairs_hook=_without_twins)
        return _baseline_from(content)
    except FileNotFoundError:
        raise UserError(
            f"the baseline {one_line(path)} is missing",
            f"make it from a run:  python -m memeval gate --baseline {one_line(path)} --bless RUN",
        ) from None
    except OSError as error:
        raise UserError(f"{one_line(path)} can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{one_line(path)} is not a baseline: {one_line(error)}",
            "move it away, and make it again:  python -m memeval gate --baseline FILE --bless RUN",
        ) from error


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no name occurs twice: the last would win in silence."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name occurs twice in one object")

    return members


def _baseline_from(content: Any) -> Baseline:
    if not isinstance(content, dict):
        raise ValueError("it does not hold an object")

    members = Fields(content)
    members.check_names(_MEMBERS)
    if content.get("memeval_baseline") != VERSION:
        raise ValueError(f"memeval_baseline is not {VERSION}")

    rows = members.member("questions")
    if rows is None:
        raise members.wrong("questions")

    questions = {name: _question_from(rows, name) for name in content["questions"]}
    must_pass = members.strings("must_pass")
    for name in must_pass:
        if name not in questions:
            raise ValueError(f"must_pass names '{one_line(name)}', which is not a question")

    return Baseline(
        metric=members.string("metric"),
        run_key=members.string("run_key"),
        name=members.string("name"),
        dataset=members.string("dataset"),
        protocol=members.string("protocol"),
        data_sha256=members.string("data_sha256"),
        labels=members.string("labels"),
        judge=members.string_or_none("judge"),
        tokens=members.number_or_none("tokens"),
        cost_usd=members.number_or_none("cost_usd"),
        must_pass=must_pass,
        questions=questions,
    )


def _question_from(rows: Fields, name: str) -> BaselineQuestion:
    row = rows.member(name)
    if row is None:
        raise rows.wrong(name)

    row.check_names(_OF_QUESTION)
    value, weight = row.raw("value"), row.raw("weight")
    if value is not None and not (is_number(value) and 0 <= value <= 1):
        raise row.wrong("value")
    if weight is not None and not is_weight(weight):
        raise row.wrong("weight")

    return BaselineQuestion(
        case_id=row.string("case"),
        category=row.string("category"),
        value=None if value is None else float(value),
        weight=1.0 if weight is None else float(weight),
    )
