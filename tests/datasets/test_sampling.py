"""The sample that `dataset.sample` draws."""

from __future__ import annotations

from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.datasets.sampling import PoolQuestion, Sample, allocate, draw
from memeval.datasets.settings import DatasetSettings
from memeval.errors import UserError
from memeval.statistics.clusters import clustered_mean

CONVERSATIONS = 10
RIGHT = {"single": 0.8, "temporal": 0.3, "open": 0.5}
"""Share of right answers by category, so that a disproportionate sample would be far off."""


def population() -> list[PoolQuestion]:
    """1,000 questions of ten conversations: 700 single, 250 temporal, 50 open."""
    questions = []
    for number in range(1000):
        category = "single" if number % 20 < 14 else "temporal" if number % 20 < 19 else "open"
        case = f"conv-{number // 100}"
        questions.append(PoolQuestion(f"{case}/q{number}", case, category))

    return questions


def is_right(question: PoolQuestion) -> float:
    """A fixed score: right for a known share of each category, and less often in later
    conversations.
    """
    number = int(question.question_id.partition("/q")[2])
    shift = 0.02 * (number // 100 - 4.5)
    return float((number * 7919) % 1000 / 1000 < RIGHT[str(question.category)] - shift)


def estimate(
    sample: Sample, by_id: dict[str, PoolQuestion]
) -> tuple[float, float, tuple[float, float]]:
    """The weighted mean of a sample, its standard error and its interval."""
    drawn = [by_id[name] for name in sample.weights]
    result = clustered_mean(
        [is_right(question) for question in drawn],
        [question.case_id for question in drawn],
        list(sample.weights.values()),
        is_share=True,
    )
    assert result is not None and result.se is not None
    assert result.low is not None and result.high is not None
    return result.mean, result.se, (result.low, result.high)


def test_sample_covers_all_conversations_and_keeps_the_shares() -> None:
    questions = population()
    sample = draw(questions, 200, 0)
    drawn = [question for question in questions if question.question_id in sample.weights]
    assert len(drawn) == 200 and sample.of == 1000
    assert (sample.conversations, sample.drawn_conversations) == (CONVERSATIONS, CONVERSATIONS)

    by_category = [question.category for question in drawn]
    assert [by_category.count(name) for name in RIGHT] == [140, 50, 10]
    # Each conversation has its share of a category, give or take one question.
    for case in range(CONVERSATIONS):
        own = [question for question in drawn if question.case_id == f"conv-{case}"]
        assert abs(sum(question.category == "single" for question in own) - 14) <= 1
        assert abs(sum(question.category == "temporal" for question in own) - 5) <= 1


def test_weights_add_up_to_the_questions_of_each_category() -> None:
    questions = population()
    sample = draw(questions, 37, 5)
    for category in RIGHT:
        own = [question for question in questions if question.category == category]
        weights = [sample.weights.get(question.question_id, 0.0) for question in own]
        assert sum(weights) == pytest.approx(len(own))


@pytest.mark.slow
def test_estimates_are_unbiased_and_their_interval_covers_the_truth() -> None:
    questions = population()
    by_id = {question.question_id: question for question in questions}
    truth = fmean(map(is_right, questions))
    estimates = [estimate(draw(questions, 100, seed), by_id) for seed in range(200)]

    means = [mean for mean, _, _ in estimates]
    spread = pstdev(means)
    assert abs(fmean(means) - truth) < 3 * spread / 200**0.5
    # The reported error includes the spread of drawing and that of the conversations.
    assert fmean(se for _, se, _ in estimates) >= 0.95 * spread
    within = sum(low <= truth <= high for _, _, (low, high) in estimates)
    assert within >= 185


def test_sample_depends_only_on_questions_and_seed() -> None:
    questions = population()
    assert draw(questions[::-1], 50, 3).weights == draw(questions, 50, 3).weights
    assert draw(questions, 50, 3).weights != draw(questions, 50, 4).weights
    # Pinned, because another sample under the same seed would ask, and pay for, other questions.
    assert sorted(draw(questions, 3, 0).weights) == PINNED


PINNED = ["conv-3/q314", "conv-3/q330", "conv-5/q599"]


def test_sample_larger_than_the_data_set_is_all_of_it() -> None:
    questions = population()
    assert set(draw(questions, 5000, 0).weights.values()) == {1.0}
    assert len(draw(questions, 5000, 0).weights) == 1000


@given(
    st.dictionaries(st.integers(1, 9), st.integers(1, 300), min_size=1, max_size=9),
    st.integers(1, 400),
)
def test_every_category_gets_its_share(counts: dict[int, int], size: int) -> None:
    size = min(size, sum(counts.values()))
    if size < len(counts):
        with pytest.raises(UserError, match="smaller than the number of categories"):
            allocate(counts, size)
        return

    sizes = allocate(counts, size)
    assert sum(sizes.values()) == size
    assert all(1 <= sizes[category] <= count for category, count in counts.items())
    if size >= 2 * len(counts):
        assert all(sizes[category] >= min(2, count) for category, count in counts.items())


def test_a_sample_of_the_questions_that_a_run_got_wrong_is_refused_by_its_setting() -> None:
    with pytest.raises(UserError, match=r"but dataset\.only excludes some"):
        DatasetSettings(sample=9, only="wrong:16e712a2", question_ids=("demo-1/q0",))
