from __future__ import annotations

from typing import Any

import pytest

from memeval.datasets.locomo_mc10.metrics import position_bias, position_measures


def record(right: int, chosen: int | None, status: str = "ok", choices: int = 10) -> dict[str, Any]:
    return {
        "choices": [str(place) for place in range(choices)],
        "right_choices": [right],
        "chosen": None if chosen is None else [chosen],
        "status": "unparsed" if chosen is None and status == "ok" else status,
        "verdict": None
        if status != "ok"
        else {"label": "unscored" if chosen is None else "correct" if chosen == right else "wrong"},
    }


def test_bias_is_half_the_distance_between_the_shares() -> None:
    assert position_bias([(0, 0), (1, 1), (2, 2)]) == 0
    assert position_bias([(0, 1), (1, 0)]) == 0  # all wrong, and no position preferred
    assert position_bias([(place, 0) for place in range(10)]) == pytest.approx(0.9)
    assert position_bias([(0, 0), (1, 0), (2, 2), (3, 2)]) == 0.5
    assert position_bias([]) is None


def test_measures_of_a_run() -> None:
    rows = [
        record(0, 0),
        record(0, 3),
        record(3, 3),
        record(5, None),
        record(7, None, status="answer_failed"),
    ]
    measures = position_measures(rows)
    assert measures["accuracy_all_types"] == pytest.approx(2 / 3)
    assert measures["unparsed_rate"] == 0.25  # failures are no replies
    assert measures["random_accuracy"] == pytest.approx(0.1)
    assert {name: value for name, value in measures.items() if name.startswith("accuracy_at")} == {
        "accuracy_at_position/0": 0.5,
        "accuracy_at_position/3": 1.0,
    }
    assert measures["position_bias"] == pytest.approx(1 / 3)


def test_guessing_depends_on_how_many_choices_there_are() -> None:
    assert position_measures([record(0, 0, choices=4), record(0, 0, choices=2)])[
        "random_accuracy"
    ] == pytest.approx(0.375)


def test_nothing_is_measured_of_nothing() -> None:
    assert position_measures([]) == {
        "accuracy_all_types": None,
        "unparsed_rate": None,
        "position_bias": None,
        "random_accuracy": None,
    }
