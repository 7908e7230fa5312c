"""The conformance suite of metrics of answers: subclass it, name your metric, and run pytest.

class TestMine(MetricContract):
    metric = MINE
"""

from typing import ClassVar

from memeval.metrics.metric import Metric

PAIRS = (
    ("Kestrel 40", "Kestrel 40"),
    ("I don't know.", "Kestrel 40"),
    ("", "Kestrel 40"),
    ("Kestrel 40", ""),
    ("\x00 \u202e \U0001f600", "e\u0301"),
    ("你好，世界", "世界"),
    ("word " * 20_000, "word"),
)
"""Answers and golds of the kinds that models and data sets produce."""


class MetricContract:
    """The rules of every metric of answers."""

    metric: ClassVar[Metric]

    def test_it_measures_answers_and_is_shown(self) -> None:
        assert self.metric.of_answer is not None, "it does not measure answers"
        assert self.metric.titles, "no table shows it"

    def test_values_are_finite_and_within_the_bounds_of_the_unit(self) -> None:
        for answer, gold in PAIRS:
            self.metric.compare(answer, gold)  # which raises for other values

    def test_equal_answers_have_equal_values(self) -> None:
        for answer, gold in PAIRS:
            assert self.metric.compare(answer, gold) == self.metric.compare(answer, gold)

    def test_the_gold_itself_has_the_best_value(self) -> None:
        best = max if self.metric.more_is_better else min
        of_gold = self.metric.compare(*PAIRS[0])
        assert best(of_gold, self.metric.compare(*PAIRS[1])) == of_gold, (
            "an answer that says nothing is better than the gold"
        )
