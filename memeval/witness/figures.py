"""The figures of a run, and comparisons of several runs, computed from their rows alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memeval.witness.flips import adjusted_ps, flip_test
from memeval.witness.share import share_interval, weighted_mean

Figures = dict[str, float | None]
Row = Mapping[str, Any]
"""A line of `records.jsonl`."""


class ScoredQuestion(Struct, frozen=True):
    """A question with its score: the mean over the repeats that have one."""

    case: str
    category: str
    weight: float
    scores: tuple[float | None, ...]
    """One per repeat."""

    @property
    def value(self) -> float | None:
        """The question's score; None if no repeat has one."""
        known = [score for score in self.scores if score is not None]
        return sum(known) / len(known) if known else None


def score_of(row: Row) -> float | None:
    """1 for a right answer, 0 for a wrong or abstained one, the judge's score if it is graded;
    None if the answer was not scored.
    """
    verdict = row.get("verdict")
    if row.get("status") != "ok" or verdict is None or verdict["label"] == "unscored":
        return None
    if verdict.get("graded"):
        return None if verdict["score"] is None else float(verdict["score"])

    return 1.0 if verdict["label"] == "correct" else 0.0


def questions_of(rows: Iterable[Row]) -> dict[str, ScoredQuestion]:
    """The questions by id, in the order in which they were first asked."""
    scores: dict[str, list[float | None]] = {}
    first: dict[str, Row] = {}
    for row in rows:
        name = row["question_id"]
        scores.setdefault(name, []).append(score_of(row))
        first.setdefault(name, row)

    return {
        name: ScoredQuestion(
            case=str(first[name].get("case_id", "")),
            category=str(first[name].get("category", "")),
            weight=float(first[name].get("weight", 1.0)),
            scores=tuple(own),
        )
        for name, own in scores.items()
    }


def figures(rows: Iterable[Row], headline: Collection[str]) -> Figures:
    """`accuracy`, its interval, `coverage`, counts, and those of each category `category:<id>`.

    Only categories of the `headline` enter the accuracy.
    """
    listed = list(rows)
    questions = questions_of(listed)
    own = [question for question in questions.values() if question.category in headline]
    made = {f"accuracy{end}": value for end, value in _share(own).items()}
    scored = sum(score is not None for one in questions.values() for score in one.scores)
    retrieved = sum(row.get("status") == "retrieved" for row in listed)
    made["coverage"] = (scored + retrieved) / len(listed) if listed else None
    for category in sorted({question.category for question in questions.values()}):
        within = [one for one in questions.values() if one.category == category]
        named = {f"category:{category}{end}": value for end, value in _share(within).items()}
        made |= named
        made[f"category:{category}:n"] = float(len(within))
        scores = [score for one in within for score in one.scores]
        made[f"category:{category}:scored"] = float(sum(score is not None for score in scores))

    return made


def _share(questions: Sequence[ScoredQuestion]) -> Figures:
    known = [one for one in questions if one.value is not None]
    if not known:
        return {"": None, ":low": None, ":high": None}

    values = [one.value for one in known if one.value is not None]
    weights = [one.weight for one in known]
    ends = share_interval(values, [one.case for one in known], weights)
    low, high = ends or (None, None)
    return {"": weighted_mean(values, weights), ":low": low, ":high": high}


class PairedDifference(Struct, frozen=True):
    """One run minus another, on the questions that both scored."""

    mean: float
    low: float | None
    high: float | None
    p: float
    sums: dict[str, float]
    """Σ d of each conversation."""


def difference(
    first: Mapping[str, ScoredQuestion], second: Mapping[str, ScoredQuestion]
) -> PairedDifference | None:
    """The paired difference of two runs; None if they have no question in common."""
    sums: dict[str, float] = {}
    sizes: dict[str, float] = {}
    deltas: list[tuple[str, float, float]] = []
    for name, question in first.items():
        other = second[name].value if name in second else None
        if question.value is not None and other is not None:
            deltas.append((question.case, question.value - other, question.weight))

    if not deltas:
        return None

    weights = [weight for _, _, weight in deltas]
    is_equal = min(weights) == max(weights)
    for case, delta, weight in deltas:
        own = 1.0 if is_equal else weight
        sums[case] = sums.get(case, 0.0) + own * delta
        sizes[case] = sizes.get(case, 0.0) + own

    p, low, high = flip_test(list(sums.values()), list(sizes.values()))
    return PairedDifference(sum(sums.values()) / sum(sizes.values()), low, high, p, sums)


def compare_pairs(
    runs: Sequence[Mapping[str, ScoredQuestion]], pairs: Sequence[tuple[int, int]]
) -> list[tuple[PairedDifference | None, float | None]]:
    """The difference of each pair of runs (by position), and its p adjusted over all pairs."""
    found = [difference(runs[first], runs[second]) for first, second in pairs]
    known = [one for one in found if one is not None]
    ps = iter(adjusted_ps([one.sums for one in known]))
    return [(one, None if one is None else max(next(ps), one.p)) for one in found]
