"""The figures of a run, and comparisons of several runs, computed from their rows alone."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memeval.witness.flips import adjusted_ps, flip_test
from memeval.witness.share import share_interval, weighted_mean

Figures = dict[str, float | None]
Row = Mapping[str, Any]
"""A line of `records.jsonl`."""
MEMBERS = ("question_id", "case_id", "category", "weight", "status", "verdict")
"""The members of a line that are read here."""


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


def select_members(row: Row) -> dict[str, Any]:
    """A copy of a line with the `MEMBERS` that it has."""
    return {name: row[name] for name in MEMBERS if name in row}


def score_of(row: Row) -> float | None:
    """1 for a right answer, 0 for a wrong or abstained one, the judge's score if it is graded;
    None if the answer was not scored.
    """
    verdict = row.get("verdict")
    if row.get("status") != "ok" or verdict is None or verdict["label"] == "unscored":
        return None
    if not verdict.get("graded"):
        return float(verdict["label"] == "correct")

    score = verdict["score"]
    return None if score is None else float(score)


def questions_of(rows: Iterable[Row]) -> dict[str, ScoredQuestion]:
    """The questions by id, in the order in which they were first asked."""
    scores: dict[str, list[float | None]] = {}
    first: dict[str, Row] = {}
    for row in rows:
        scores.setdefault(row["question_id"], []).append(score_of(row))
        first.setdefault(row["question_id"], row)

    questions = {}
    for name, row in first.items():
        questions[name] = ScoredQuestion(
            case=str(row.get("case_id", "")),
            category=str(row.get("category", "")),
            weight=float(row.get("weight", 1.0)),
            scores=tuple(scores[name]),
        )

    return questions


def figures(rows: Iterable[Row], headline: Collection[str]) -> Figures:
    """`accuracy`, its interval, `coverage`, counts, and those of each category `category:<id>`.

    Only categories of the `headline` enter the accuracy.
    """
    listed = list(rows)
    counted: list[ScoredQuestion] = []
    by_category: dict[str, list[ScoredQuestion]] = {}
    scored = Counter[str]()
    for question in questions_of(listed).values():
        by_category.setdefault(question.category, []).append(question)
        scored[question.category] += len(question.scores) - question.scores.count(None)
        if question.category in headline:
            counted.append(question)

    made = _share("accuracy", counted)
    made["coverage"] = None
    if listed:
        retrieved = sum(row.get("status") == "retrieved" for row in listed)
        made["coverage"] = (scored.total() + retrieved) / len(listed)

    for category in sorted(by_category):
        name, within = f"category:{category}", by_category[category]
        made |= _share(name, within)
        made[f"{name}:n"] = float(len(within))
        made[f"{name}:scored"] = float(scored[category])

    return made


def _share(name: str, questions: Iterable[ScoredQuestion]) -> Figures:
    values, cases, weights = [], [], []
    for question in questions:
        value = question.value
        if value is not None:
            values.append(value)
            cases.append(question.case)
            weights.append(question.weight)

    if not values:
        return {name: None, f"{name}:low": None, f"{name}:high": None}

    low, high = share_interval(values, cases, weights) or (None, None)
    return {name: weighted_mean(values, weights), f"{name}:low": low, f"{name}:high": high}


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
    cases, deltas, weights = [], [], []
    for name, question in first.items():
        if name in second:
            value, other = question.value, second[name].value
            if value is not None and other is not None:
                cases.append(question.case)
                deltas.append(value - other)
                weights.append(question.weight)

    if not deltas:
        return None

    if min(weights) == max(weights):
        weights = [1.0] * len(weights)

    sums = dict.fromkeys(cases, 0.0)
    sizes = sums.copy()
    for case, delta, weight in zip(cases, deltas, weights, strict=True):
        sums[case] += weight * delta
        sizes[case] += weight

    # Means over three repeats cancel only up to rounding.
    for case, total in sums.items():
        if abs(total) < 1e-12:
            sums[case] = 0.0

    p, low, high = flip_test(list(sums.values()), list(sizes.values()))
    return PairedDifference(sum(sums.values()) / sum(sizes.values()), low, high, p, sums)


def compare_pairs(
    runs: Sequence[Mapping[str, ScoredQuestion]], pairs: Sequence[tuple[int, int]]
) -> list[tuple[PairedDifference | None, float | None]]:
    """The difference of each pair of runs (by position), and its p adjusted over all pairs."""
    pairs_found = [difference(runs[first], runs[second]) for first, second in pairs]
    ps = iter(adjusted_ps([pair.sums for pair in filter(None, pairs_found)]))
    return [(pair, None if pair is None else max(next(ps), pair.p)) for pair in pairs_found]
