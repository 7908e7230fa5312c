"""How far several judges agree on the same answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct

from memeval.calibration.scored import JudgedAnswer, read_answers
from memeval.errors import UserError
from memeval.report.differences import unique_labels
from memeval.results import judge_shown
from memeval.results.fields import as_plain
from memeval.results.run import Run
from memeval.statistics.agreement import krippendorff_alpha
from memeval.text.shown import one_line

UnitKey = tuple[str, int, str]
"""A question's id, a repeat, and the digest of its answer."""


class PairAgreement(Struct, frozen=True):
    """Two judges on the answers that both gave a verdict on."""

    first: int
    """Position of the first judge in `Agreement.judges`."""
    second: int
    both_right: int
    first_alone: int
    """Answers that only the first called right."""
    second_alone: int
    both_wrong: int
    alpha: float | None

    @property
    def count(self) -> int:
        return self.both_right + self.first_alone + self.second_alone + self.both_wrong


class Disagreement(Struct, frozen=True):
    """An answer on which judges differ."""

    question_id: str
    repeat: int
    verdicts: tuple[bool | None, ...]
    """One per judge: whether it called the answer right; None if it gave no verdict."""


class Agreement(Struct, frozen=True):
    """Several judges on the same answers."""

    judges: tuple[str, ...]
    runs: tuple[str, ...]
    """Run key of each judge."""
    answers: int
    """Answers with a verdict of two judges or more."""
    unshared: int
    """Answers with a verdict of only one judge: to other questions, or with other texts."""
    alpha: float | None
    pairs: tuple[PairAgreement, ...]
    differing: tuple[Disagreement, ...]
    left_out: tuple[str, ...] = ()
    """Keys of the runs without a verdict, such as those of `stages=retrieve`."""

    def to_json(self) -> dict[str, Any]:
        """The agreement as plain JSON."""
        content = as_plain(self)
        for pair, own in zip(content["pairs"], self.pairs, strict=True):
            pair["count"] = own.count

        return content


def measure_agreement(runs: Sequence[Run]) -> Agreement:
    """How far the judges of runs agree on the answers that the runs share.

    Runs without a verdict are left out. Raises `UserError` if fewer than two are left, if the runs
    have different data, or if no answer is shared.
    """
    answers = {run.key: read_answers(run) for run in runs}
    left_out = tuple(key for key, own in answers.items() if not _has_verdict(own))
    runs = [run for run in runs if run.key not in left_out]
    if left_out and len(runs) < 2:
        raise UserError(
            f"judge agree needs two runs with verdicts, but these have none: {', '.join(left_out)}",
            "all runs of this home:  python -m memeval list",
        )

    data = {(run.summary.dataset, run.summary.data_sha256) for run in runs}
    if len(data) > 1:
        names = ", ".join(dict.fromkeys(one_line(run.summary.dataset) for run in runs))
        raise UserError(f"the runs have different data: {names}")

    units = _units([answers[run.key] for run in runs])
    # An answer that only one judge scored says nothing about agreement.
    shared = {key: labels for key, labels in units.items() if len(labels) - labels.count(None) > 1}
    if not shared:
        raise UserError(
            "no answer was judged in more than one of the runs",
            "judge the answers of one run again:  python -m memeval evaluate "
            "outputs/runs/KEY/hypotheses.jsonl dataset=NAME judge=NAME",
        )

    rows = list(shared.values())
    return Agreement(
        judges=tuple(_names(runs)),
        runs=tuple(run.key for run in runs),
        answers=len(shared),
        unshared=len(units) - len(shared),
        alpha=krippendorff_alpha(rows),
        pairs=tuple(_pair(rows, *pair) for pair in combinations(range(len(runs)), 2)),
        differing=tuple(
            Disagreement(question_id, repeat, tuple(labels))
            for (question_id, repeat, _), labels in shared.items()
            if {True, False} <= set(labels)
        ),
        left_out=left_out,
    )


def _has_verdict(answers: Sequence[JudgedAnswer]) -> bool:
    return any(answer.right is not None for answer in answers)


def _units(of_runs: Sequence[Sequence[JudgedAnswer]]) -> dict[UnitKey, list[bool | None]]:
    """The verdicts on each answer, one per run; None if a run has no verdict."""
    units: dict[UnitKey, list[bool | None]] = {}
    for number, answers in enumerate(of_runs):
        for answer in answers:
            key = (answer.question_id, answer.repeat, answer.answer_id)
            units.setdefault(key, [None] * len(of_runs))[number] = answer.right

    return units


def _names(runs: Sequence[Run]) -> list[str]:
    """The judges, each under a distinct name."""
    names = [one_line(judge_shown(run.summary.judge)) for run in runs]
    return unique_labels(names, [run.summary for run in runs])


def _pair(rows: Sequence[Sequence[bool | None]], first: int, second: int) -> PairAgreement:
    pairs = [(row[first], row[second]) for row in rows]
    return PairAgreement(
        first=first,
        second=second,
        both_right=pairs.count((True, True)),
        first_alone=pairs.count((True, False)),
        second_alone=pairs.count((False, True)),
        both_wrong=pairs.count((False, False)),
        alpha=krippendorff_alpha(pairs),
    )
