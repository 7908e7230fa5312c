from __future__ import annotations

import subprocess
import sys
from math import sqrt

import pytest

from memeval.statistics.clusters import clustered_mean
from memeval.statistics.means import bounds, design_effect, mean, sample_std, scored_mean


def test_statistics_without_values_are_none() -> None:
    assert (
        mean([])
        is mean([None])
        is sample_std([])
        is sample_std([0.3])
        is sample_std([0.3, None])
        is bounds([])
        is None
    )
    assert scored_mean([], []) is design_effect([], []) is None


def test_equal_values_have_a_deviation_of_exactly_0() -> None:
    # The floating-point mean of three times 0.1 is 0.10000000000000002.
    assert sample_std([0.1, 0.1, 0.1]) == 0.0


def test_unscored_values_are_left_out_of_a_mean() -> None:
    assert mean([1.0, None, 0.0, 1.0]) == pytest.approx(2 / 3)
    assert sample_std([1.0, None, 3.0]) == pytest.approx(sqrt(2))


def test_unscored_values_are_left_out_of_an_interval() -> None:
    values, clusters = [1.0, None, 0.0, 1.0, None], list("aabbc")
    found = scored_mean(values, clusters, [1.0, 2.0, 3.0, 1.0, 1.0])
    assert found == clustered_mean([1.0, 0.0, 1.0], list("abb"), [1.0, 3.0, 1.0], is_share=True)
    assert scored_mean([None], ["a"]) is scored_mean([], []) is None


def test_number_of_clusters_must_match_number_of_values() -> None:
    with pytest.raises(ValueError, match="zip"):
        scored_mean([1.0, 0.0], ["a"])


def test_doubling_every_answer_within_its_case_doubles_the_design_effect() -> None:
    values, clusters = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0], list(range(6))
    once, twice = design_effect(values, clusters), design_effect(values * 2, clusters * 2)
    assert once == pytest.approx(1.0)
    assert twice == pytest.approx(2.0 * 11 / 12 * 6 / 5)


def test_equal_values_have_no_design_effect() -> None:
    assert design_effect([1.0, 1.0], ["a", "b"]) is None


def test_bounds_count_the_unscored_as_wrong_and_as_right() -> None:
    assert bounds([1.0, None, 0.0, None]) == (0.25, 0.75)
    assert bounds([1.0, 0.0]) == (0.5, 0.5)


def test_scipy_stats_is_not_loaded() -> None:
    code = (
        "import sys; from memeval.statistics.means import scored_mean; assert 'scipy' "
        "not in sys.modules;"
        "scored_mean([1, 0], 'ab'); assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
