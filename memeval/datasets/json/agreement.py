"""Agreement of the reviewers of a user's own questions."""

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
    """Agreement of all reviewers, from cases in their written form."""
    decisions_of: dict[str, Mapping[str, str]] = {}
    case_ids: dict[str, str] = {}
    reviewers: set[str] = set()
    outdated = 0
    for case in cases:
        for name, question in named_questions([case]).items():
            decided = decisions(question)
            decisions_of[name] = decided
            case_ids[name] = case_id_of(case)
            reviewers.update(decided)
            outdated += len(question.get(REVIEWS) or ()) - len(decided)

    pairs = combinations(sorted(reviewers), 2)
    return ReviewAgreement(
        pairs=tuple(_pair(*pair, decisions_of, case_ids) for pair in pairs), outdated=outdated
    )


def agreement_text(pair: ReviewerPair) -> str:
    """A pair as text: `Ana and Ben: κ 0.71 [0.50, 0.92], they differ on 5 of 50 questions`."""
    differ = f"they differ on {len(pair.differing):,} of {pair.count:,} questions"
    kappa = "κ is not defined"
    if pair.kappa is not None:
        kappa = f"κ {pair.kappa.value:.2f}"
        low, high = pair.kappa.low, pair.kappa.high
        if low is None or high is None:
            kappa += " without an interval"
        else:
            kappa += f" [{low:.2f}, {high:.2f}]"

    return f"{pair.first} and {pair.second}: {kappa}, {differ}"


def _pair(
    first: str,
    second: str,
    decisions_of: Mapping[str, Mapping[str, str]],
    case_ids: Mapping[str, str],
) -> ReviewerPair:
    of_first, of_second, cases_of_both, differing = [], [], [], []
    for name, decided in decisions_of.items():
        if first in decided and second in decided:
            of_first.append(decided[first])
            of_second.append(decided[second])
            cases_of_both.append(case_ids[name])
            if decided[first] != decided[second]:
                differing.append(name)

    return ReviewerPair(
        first=first,
        second=second,
        count=len(cases_of_both),
        differing=tuple(differing),
        kappa=cohen_kappa(of_first, of_second, cases_of_both),
    )
