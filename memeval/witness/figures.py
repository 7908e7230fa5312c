"""The figures of a run, and the comparisons of several, from their rows alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from memeval.witness.flips import Difference, adjusted, difference
from memeval.witness.rows import Question, Row, questions_of
from memeval.witness.share import share_interval, weighted_mean

Figures = dict[str, float | None]


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


def _share(questions: Sequence[Question]) -> Figures:
    known = [one for one in questions if one.value is not None]
    if not known:
        return {"": None, ":low": None, ":high": None}

    values = [one.value for one in known if one.value is not None]
    weights = [one.weight for one in known]
    ends = share_interval(values, [one.case for one in known], weights)
    low, high = ends or (None, None)
    return {"": weighted_mean(values, weights), ":low": low, ":high": high}


def compared(
    runs: Sequence[Mapping[str, Question]], pairs: Sequence[tuple[int, int]]
) -> list[tuple[Difference | None, float | None]]:
    """Each pair's difference and its p among all of them; runs by position."""
    found = [difference(dict(runs[first]), dict(runs[second])) for first, second in pairs]
    known = [one for one in found if one is not None]
    ps = iter(adjusted([one.sums for one in known]))
    return [(one, None if one is None else max(next(ps), one.p)) for one in found]
