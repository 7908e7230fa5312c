"""Scores of all artifacts for a query: by vectors alone, or by vectors and words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

DENSE_SHARE = 0.7
"""The rest is BM25's."""


def hybrid(dense: Scores, keyword: Scores) -> Scores:
    """0.7 * dense + 0.3 * BM25, each in shares of its best score for this query."""
    return DENSE_SHARE * shares(dense) + (1 - DENSE_SHARE) * shares(keyword)


def shares(scores: Scores) -> Scores:
    """Scores over the best one, those below 0 as 0: the best has 1, unless all are 0."""
    positive = np.maximum(scores, 0.0)
    best = positive.max(initial=0.0)
    return positive / best if best > 0 else positive
