"""Quantiles of Student's t, compared with scipy's."""

from __future__ import annotations

import pytest
from scipy.special import stdtrit

from memeval.statistics.student import share_within, two_sided_quantile


@pytest.mark.parametrize(
    "freedom", [0.9, 1, 1.312655086848635, 2, 2.3924050632911396, 3, 4, 5, 9, 10, 30, 499, 1998]
)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_quantiles_equal_scipys(freedom: float, confidence: float) -> None:
    found = two_sided_quantile(freedom, confidence)
    assert found == pytest.approx(float(stdtrit(freedom, (1 + confidence) / 2)), rel=1e-9)
    assert share_within(found, freedom) == pytest.approx(confidence, abs=1e-12)
