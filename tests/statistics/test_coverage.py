"""The simulation of docs/statistics.md stays within the bounds that the page states."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    """The module `perf/coverage.py`."""
    spec = importlib.util.spec_from_file_location("perf_coverage", ROOT / "perf" / "coverage.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("effect", [1.0, 2.0, 4.0])
def test_intervals_and_mde_have_nominal_coverage_and_power(
    coverage: ModuleType, effect: float
) -> None:
    kept = coverage.simulate(effect, 4000, np.random.default_rng(7))
    assert kept.covered == pytest.approx(95, abs=1.5)
    assert kept.power == pytest.approx(80, abs=3)
    if effect >= 2:
        assert kept.covered_naive < 87


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one with half of all", "twelve from 10 to 300", "six of 100"])
def test_coverage_holds_for_unequal_and_few_conversations(coverage: ModuleType, name: str) -> None:
    sizes = coverage.CONVERSATIONS[name]
    kept = coverage.simulate(2.0, 3000, np.random.default_rng(7), sizes)
    assert 93 <= kept.covered <= 99.5
    if len(set(sizes)) > 1:
        assert kept.covered_t < kept.covered - 3


@pytest.mark.slow
@pytest.mark.parametrize(("share", "least"), [(0.35, 93.5), (0.97, 92.0)])
def test_interval_of_a_share_covers_the_true_value(
    coverage: ModuleType, share: float, least: float
) -> None:
    rng = np.random.default_rng(7)
    assert coverage.simulate_share(share, coverage.SIZES, 1000, rng) >= least


def test_simulated_design_effect_is_the_requested_one(coverage: ModuleType) -> None:
    sizes = np.array(coverage.SIZES)
    extra = coverage.between_variance(3.0, coverage.SIZES) * (sizes**2).sum() / sizes.sum() ** 2
    assert 1 + extra / (coverage.SPREAD**2 / sizes.sum()) == pytest.approx(3.0)
