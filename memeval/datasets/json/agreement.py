"""How far the reviewers of a user's own questions agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct

from memeval.datasets.json.frozen import case_id_of
from memeval.datasets.json.review import REVIEWS, decisions
from memeval.datasets.json.versions import named_questions
from memeval.statistics.agreement import Kappa, cohen_kappa


class ReviewerPair(Struct, frozen=True, kw_only=True):
    """Two reviewers, on the questions that both decided in the current wording."""

    first: str
    second: str
    count: int
    differing: tuple[str, ...]
    """Questions that one reviewer accepted and the other rejected."""
    kappa: Kappa | None
    """None if it is undefined: both made the same decision every time, or share no question."""


class ReviewAgreement(Struct, frozen=True, kw_only=True):
    """All pairs of reviewers of a file."""

    pairs: tuple[ReviewerPair, ...]
    outdated: int
    """Number of decisions on an earlier wording of their question, which do not count."""


def review_agreement(cases: Sequence[Mapping[str, Any]]) -> ReviewAgreement:
    """How far reviewers agree, over cases in their written form."""
    decisions_of: dict[str, Mapping[str, str]] = {}
    case_ids: dict[str, str] = {}
    total = 0
    for case in cases:
        for name, question in named_questions([case]).items():
            decisions_of[name] = decisions(question)
            case_ids[name] = case_id_of(case)
            total += len(question.get(REVIEWS) or ())

    reviewers = sorted({reviewer for decided in decisions_of.values() for reviewer in decided})
    return ReviewAgreement(
        pairs=tuple(
            _pair(first, second, decisions_of, case_ids)
            for first, second in combinations(reviewers, 2)
        ),
        outdated=total - sum(map(len, decisions_of.values())),
    )


def agreement_text(pair: ReviewerPair) -> str:
    """A pair in words: `Ana and Ben: κ 0.71 [0.50, 0.92], they differ on 5 of 50 questions`."""
    differ = f"they differ on {len(pair.differing):,} of {pair.count:,} questions"
    kappa = "κ is not defined"
    if pair.kappa is not None:
        kappa = f"κ {pair.kappa.value:.2f}"
        low, high = pair.kappa.low, pair.kappa.high
        ends = f" [{low:.2f}, {high:.2f}]" if low is not None and high is not None else ""
        kappa += ends or " without an interval"

    return f"{pair.first} and {pair.second}: {kappa}, {differ}"


def _pair(
    first: str,
    second: str,
    decisions_of: Mapping[str, Mapping[str, str]],
    case_ids: Mapping[str, str],
) -> ReviewerPair:
    both = [name for name, decided in decisions_of.items() if {first, second} <= set(decided)]
    ones = [decisions_of[name][first] for name in both]
    twos = [decisions_of[name][second] for name in both]
    differing = [name for name, one, two in zip(both, ones, twos, strict=True) if one != two]
    return ReviewerPair(
        first=first,
        second=second,
        count=len(both),
        differing=tuple(differing),
        kappa=cohen_kappa(ones, twos, [case_ids[name] for name in both]),
    )
