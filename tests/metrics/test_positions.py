from __future__ import annotations

import pytest
from sample_records import record, verdict

from memeval.metrics.positions import position_bias, position_measures
from memeval.records import Label, Status
from memeval.results import Record


def choosing(
    right: int, chosen: int | None, status: Status | None = None, choices: int = 10
) -> Record:
    read = None
    if status is None and chosen is None:
        read = verdict(Label.UNSCORED)
    elif status is None:
        label = Label.CORRECT if chosen == right else Label.WRONG
        read = verdict(label, chosen=(chosen,))
    return record(
        choices=tuple(map(str, range(choices))),
        right_choices=(right,),
        status=status or (Status.UNPARSED if chosen is None else Status.OK),
        verdict=read,
    )


def test_bias_is_half_the_distance_between_the_shares() -> None:
    assert position_bias([(0, 0), (1, 1), (2, 2)]) == 0
    assert position_bias([(0, 1), (1, 0)]) == 0  # all wrong, but no position preferred
    assert position_bias([(place, 0) for place in range(10)]) == pytest.approx(0.9)
    assert position_bias([(0, 0), (1, 0), (2, 2), (3, 2)]) == 0.5
    assert position_bias([]) is None


def test_measures_of_a_run() -> None:
    rows = [
        choosing(0, 0),
        choosing(0, 3),
        choosing(3, 3),
        choosing(5, None),
        choosing(7, None, status=Status.ANSWER_FAILED),
    ]
    measures = position_measures(rows)
    assert measures["accuracy_all_types"] == pytest.approx(2 / 3)
    assert measures["unparsed_rate"] == 0.25  # failed calls are not replies
    assert measures["random_accuracy"] == pytest.approx(0.1)
    assert {name: value for name, value in measures.items() if name.startswith("accuracy_at")} == {
        "accuracy_at_position/0": 0.5,
        "accuracy_at_position/3": 1.0,
    }
    assert measures["position_bias"] == pytest.approx(1 / 3)


def test_random_accuracy_depends_on_the_number_of_choices() -> None:
    assert position_measures([choosing(0, 0, choices=4), choosing(0, 0, choices=2)])[
        "random_accuracy"
    ] == pytest.approx(0.375)


def test_position_measures_without_records_are_none() -> None:
    assert position_measures([]) == {
        "accuracy_all_types": None,
        "unparsed_rate": None,
        "position_bias": None,
        "random_accuracy": None,
    }
