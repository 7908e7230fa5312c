from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit
from vectors import answers

from memeval.statistics.agreement import krippendorff_alpha
from memeval.statistics.clusters import clustered_se
from memeval.statistics.judge_error import (
    JudgedAnswers,
    JudgeRates,
    prediction_powered_mean,
    rogan_gladen,
)


def judged(
    verdicts: Sequence[float],
    *,
    weights: Sequence[float] = (),
    questions: Sequence[Hashable] = (),
    clusters: Sequence[Hashable] | None = None,
) -> JudgedAnswers:
    """Answers to different questions, all with the same weight, unless others are given."""
    weights = weights or [1.0] * len(verdicts)
    return JudgedAnswers(verdicts, weights, questions or [object() for _ in verdicts], clusters)


Y, VERDICTS, FURTHER = answers("1011010110"), answers("1011110111"), [1.0] * 30 + [0.0] * 10
GUESSED, UNLABELLED = judged(VERDICTS), judged(FURTHER)


@pytest.mark.parametrize(
    ("power", "used", "mean", "se"),
    [
        (None, 0.5157894736842105, 0.5742105263157895, 0.1308614913444651),
        (1.0, 1.0, 0.55, 0.14383149863642528),
        (0.0, 0.0, 0.60, 0.15491933384829668),
    ],
)
def test_ppi_matches_reference_values(
    power: float | None, used: float, mean: float, se: float
) -> None:
    found = prediction_powered_mean(Y, GUESSED, UNLABELLED, power)
    assert (found.power, found.mean, found.se) == pytest.approx((used, mean, se), rel=1e-14)


OWN, OTHERS = [index // 2 for index in range(10)], [index // 8 for index in range(40)]


def test_ppi_error_sums_the_influence_of_a_conversation_over_both_parts() -> None:
    found = prediction_powered_mean(
        Y, judged(VERDICTS, clusters=OWN), judged(FURTHER, clusters=OTHERS)
    )
    plain = prediction_powered_mean(Y, GUESSED, UNLABELLED)
    assert (found.mean, found.power) == (plain.mean, plain.power)

    rectifier = np.array(Y) - plain.power * np.array(VERDICTS)
    scaled = plain.power * np.array(FURTHER)
    influence = np.bincount(OWN, (rectifier - rectifier.mean()) / 10)
    influence += np.bincount(OTHERS, (scaled - scaled.mean()) / 40)
    assert found.se == pytest.approx(sqrt(5 / 4 * np.square(influence).sum()))
    apart = [clustered_se(scaled.tolist(), OTHERS), clustered_se(rectifier.tolist(), OWN)]
    assert found.se != pytest.approx(sqrt(sum((error or 0) ** 2 for error in apart)))


def test_ppi_error_is_never_below_that_of_independent_answers() -> None:
    """Labelled and unlabelled answers both cancel out within every conversation."""
    values, clusters = [1.0, 0.0] * 4, [index // 2 for index in range(8)]
    parts = [judged(values, clusters=clusters) for _ in range(2)]
    found = prediction_powered_mean(values, *parts)
    plain = prediction_powered_mean(values, judged(values), judged(values))
    assert found.se == plain.se > 0


def test_ppi_repeats_of_a_question_add_no_information() -> None:
    once = prediction_powered_mean(Y, GUESSED, UNLABELLED, 0.5)
    thrice = prediction_powered_mean(
        3 * Y,
        judged(3 * VERDICTS, questions=3 * list(range(10))),
        judged(3 * FURTHER, questions=3 * list(range(10, 50))),
        0.5,
    )
    assert (thrice.mean, thrice.se) == pytest.approx((once.mean, once.se))


def test_ppi_weight_of_2_equals_counting_an_answer_twice() -> None:
    """Answers with weight 2 equal twice as many answers with weight 1."""
    heavy = [2.0 if index % 2 else 1.0 for index in range(40)]
    weighted = prediction_powered_mean(
        Y,
        judged(VERDICTS, clusters=OWN, weights=heavy[:10]),
        judged(FURTHER, clusters=OTHERS, weights=heavy),
        0.5,
    )
    twice = [index for index in range(40) if index % 2]

    def doubled(values: Sequence[float]) -> list[float]:
        return [*values, *(values[index] for index in twice if index < len(values))]

    many = prediction_powered_mean(
        doubled(Y),
        judged(doubled(VERDICTS), clusters=doubled(OWN)),
        judged(doubled(FURTHER), clusters=doubled(OTHERS)),
        0.5,
    )
    assert (weighted.mean, weighted.se) == pytest.approx((many.mean, many.se))
    # Equal weights change nothing, λ included.
    plain = prediction_powered_mean(Y, GUESSED, UNLABELLED)
    alike = prediction_powered_mean(
        Y, judged(VERDICTS, weights=[3.0] * 10), judged(FURTHER, weights=[3.0] * 40)
    )
    assert (alike.mean, alike.se, alike.power) == pytest.approx((plain.mean, plain.se, plain.power))


@pytest.mark.slow
def test_ppi_with_conversations_has_nominal_coverage() -> None:
    """300 labels of 1,540 answers in ten conversations that vary in accuracy; the judge errs in 10
    %.
    """
    rng = np.random.default_rng(11)
    t, held = float(stdtrit(9, 0.975)), 0
    clusters = np.repeat(np.arange(10), 154)
    for _ in range(600):
        rates = rng.beta(0.6 * 20, 0.4 * 20, 10)
        truth = rng.random(1540) < rates[clusters]
        right = np.where(rng.random(1540) < 0.9, truth, ~truth)
        labelled = np.zeros(1540, dtype=bool)
        labelled[rng.choice(1540, 300, replace=False)] = True
        found = prediction_powered_mean(
            truth[labelled].astype(float).tolist(),
            *(
                judged(right[part].astype(float).tolist(), clusters=clusters[part].tolist())
                for part in (labelled, ~labelled)
            ),
        )
        held += abs(found.mean - 0.6) <= t * found.se

    assert 93 <= 100 * held / 600 <= 97.5


def test_ppi_without_labels_or_with_one_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match="labels"):
        prediction_powered_mean([], judged([]), judged([1.0]))
    with pytest.raises(ValueError, match="labels"):
        prediction_powered_mean([1.0], judged([1.0]), judged([]))
    with pytest.raises(ValueError, match="two clusters"):
        prediction_powered_mean(
            [1.0, 0.0], judged([1.0, 1.0], clusters=[0, 0]), judged([1.0], clusters=[0])
        )


def test_ppi_ignores_a_judge_with_constant_verdicts() -> None:
    found = prediction_powered_mean(Y, judged([1.0] * 10), judged([1.0] * 40))
    assert (found.power, found.mean) == (0.0, pytest.approx(0.6))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_ppi_power_is_between_0_and_1_and_reduces_the_error(pairs: list[tuple[bool, bool]]) -> None:
    labels = [float(label) for label, _ in pairs]
    parts = judged([float(guess) for _, guess in pairs]), judged([0.0, 1.0] * 30)
    found = prediction_powered_mean(labels, *parts)
    assert 0 <= found.power <= 1
    unaided = prediction_powered_mean(labels, *parts, 0.0)
    assert found.se <= unaided.se + 1e-12


@pytest.mark.parametrize(
    ("p", "count", "judge", "share", "low", "high"),
    [
        (
            0.4,
            1000,
            JudgeRates(right_kept=0.9, right_labels=200, wrong_caught=0.7, wrong_labels=200),
            0.1666666666666668,
            0.05635072484160894,
            0.2627330257859588,
        ),
        (
            0.62,
            2000,
            JudgeRates(right_kept=0.93, right_labels=350, wrong_caught=0.85, wrong_labels=150),
            0.6025641025641025,
            0.5544774781496563,
            0.6456327845409667,
        ),
    ],
)
def test_rogan_gladen_matches_reference_values(
    p: float, count: int, judge: JudgeRates, share: float, low: float, high: float
) -> None:
    found = rogan_gladen(p, count, judge)
    assert (found.share, found.low, found.high) == pytest.approx((share, low, high), rel=1e-12)


def test_a_judge_no_better_than_chance_is_refused() -> None:
    with pytest.raises(ValueError, match="no better than chance"):
        rogan_gladen(0.5, 100, JudgeRates(0.5, 100, 0.5, 100))
    with pytest.raises(ValueError, match="too few labels"):
        rogan_gladen(0.5, 100, JudgeRates(0.51, 0, 0.51, 0))


@pytest.mark.parametrize(
    ("units", "alpha"),
    [
        ([[1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 0, 1]], 1 - 132 / 420),
        ([[0, 1], [0, 1], [1, 0], [1, 0]], -0.75),
        ([[1, 1], [0, 0]], 1.0),
        ([[1, 1], [1, 1]], None),
        ([[1], [None, 0]], None),
        ([], None),
    ],
)
def test_krippendorff_alpha_matches_reference_values(
    units: list[list[int | None]], alpha: float | None
) -> None:
    found = krippendorff_alpha(units)
    assert found == (None if alpha is None else pytest.approx(alpha, rel=1e-14))


@given(st.lists(st.lists(st.sampled_from([0, 1, 2, None]), min_size=3, max_size=3), max_size=12))
def test_krippendorff_alpha_equals_that_of_the_coincidence_matrix(
    units: list[list[int | None]],
) -> None:
    matrix = np.zeros((3, 3))
    for unit in units:
        labels = [label for label in unit if label is not None]
        for first, one in enumerate(labels):
            for second, other in enumerate(labels):
                if first != second:
                    matrix[one, other] += 1 / (len(labels) - 1)

    totals, n = matrix.sum(axis=1), matrix.sum()
    expected = n * n - (totals**2).sum()
    found = krippendorff_alpha(units)
    if expected < 1e-9:
        assert found is None
    else:
        alpha = 1 - (n - 1) * (n - np.trace(matrix)) / expected
        assert found == pytest.approx(alpha)
