"""BEAM's scores: values of the official functions, and what they reward."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_records import record, verdict

from memeval.datasets.beam.metrics import (
    EVENT_ORDERING,
    empty_floor,
    line_events,
    official_measures,
    order_f1,
    rubric_score,
    tau_b,
    tau_norm,
)
from memeval.records import Label

FIVE = ("alpha", "beta", "gamma", "delta", "epsilon")


def events_of(response: str) -> tuple[int, ...]:
    """Events of a response; each line takes the first unused item whose text it contains."""
    lines = response.split("\n")
    matches: list[int | None] = []
    for line in lines:
        free = (n for n, item in enumerate(FIVE) if n not in matches and item in line)
        matches.append(next(free, None))

    return line_events(lines, matches, FIVE)


@pytest.mark.parametrize(
    ("response", "tau", "final"),
    [
        ("alpha\nbeta\ngamma\ndelta\nepsilon", 1, 1),
        ("epsilon\ndelta\ngamma\nbeta\nalpha", 0, 0),
        ("beta\nalpha\ngamma\ndelta\nepsilon", 0.9, 0.9),
        ("alpha\nbeta\ngamma", 0.974341649, 0.730756237),
        ("The order:\nalpha\nbeta\ngamma\ndelta\nepsilon", 0.666666667, 0.606060606),
        ("alpha\n\nbeta\n\ngamma\n\ndelta\n\nepsilon", 0.933333333, 0.666666667),
        ("v\nw\nx\ny\nz", 0.142857143, 0),
        ("", 0.211324865, 0),
        ("I do not know", 0.211324865, 0),
        ("alpha beta gamma delta epsilon", 0.816227766, 0.272075922),
        ("alpha\nalpha\nbeta\ngamma\ndelta\nepsilon", 1, 1),
    ],
)
def test_event_ordering_scores(response: str, tau: float, final: float) -> None:
    events = events_of(response)
    assert tau_norm(events, 5) == pytest.approx(tau, abs=1e-8)
    assert tau_norm(events, 5) * order_f1(events, 5) == pytest.approx(final, abs=1e-8)


@pytest.mark.parametrize(
    ("events", "precision"),
    [
        ((0, 0, 1), 1.0),
        ((0, 0, 0, 3), 1 / 2),
        ((0, 1, 0, 3, 3), 2 / 4),
        ((3, 4), 0.0),
    ],
)
def test_repeated_item_counts_once(events: tuple[int, ...], precision: float) -> None:
    recall = len({event for event in events if event < 3}) / 3
    whole = precision + recall
    f1 = 2 * precision * recall / whole if whole else 0.0
    assert order_f1(events, 3) == pytest.approx(f1)


@given(st.integers(2, 12), st.lists(st.integers(0, 14), min_size=1, max_size=14))
def test_tau_norm_is_a_share(items: int, events: list[int]) -> None:
    assert 0 <= tau_norm(events, items) <= 1


@given(st.integers(2, 12))
def test_empty_response_gets_the_floor(items: int) -> None:
    assert tau_norm((items,), items) == pytest.approx(empty_floor(items))


def test_a_ranking_of_ties_has_no_tau() -> None:
    assert tau_b((1, 1), (1, 2)) is None
    assert tau_norm((0,), 1) == 1.0
    # Four equal lines and two missing items have the same rank: that is not agreement.
    assert tau_norm((2, 2, 2, 2), 2) == 0.5


@pytest.mark.parametrize(
    ("scores", "v1", "v2"),
    [
        ((1.0, 0.5, 0.5, 0.0), 0.25, 0.5),
        ((0.5,), 0, 0.5),
        ((1.0,), 1, 1),
        ((1, 1, 0.5, 0, 0.5), 0.4, 0.6),
        ((0.5, 0.5), 0, 0.5),
    ],
)
def test_half_credit_counts_only_in_version_2(
    scores: tuple[float, ...], v1: float, v2: float
) -> None:
    assert rubric_score(scores, "v1") == pytest.approx(v1)
    assert rubric_score(scores, "v2") == pytest.approx(v2)


def judged(name: str, ability: str, score: float | None, **parts: tuple[float, ...]) -> object:
    label = Label.UNSCORED if score is None else Label.CORRECT
    return record(
        question_id=name,
        category=ability,
        verdict=verdict(label, score=score, graded=True, parts=parts),
    )


def test_the_overall_score_is_the_mean_of_the_abilities() -> None:
    records = [
        judged("a", "abstention", 0.5, items=(0.5,)),
        judged("b", "abstention", 1.0, items=(1.0,)),
        judged("c", "summarization", None),
        judged("d", "knowledge_update", 1.0, items=(1.0,)),
        judged("e", EVENT_ORDERING, 0.9, items=(1.0,) * 5, order=(1.0, 0.0, 2.0, 3.0, 4.0)),
        # Blank answers: no judge was called. In event ordering they get the official floor.
        record(question_id="f", category=EVENT_ORDERING, verdict=verdict(Label.WRONG)),
        record(question_id="g", category="knowledge_update", verdict=verdict(Label.WRONG)),
    ]
    measures = official_measures(records, {"e": 5, "f": 5})  # type: ignore[arg-type]
    tau = (0.9 + empty_floor(5)) / 2
    assert measures == pytest.approx(
        {
            "beam_v1": (0.5 + 0.5 + tau) / 3,
            "beam_v2": (0.75 + 0.5 + tau) / 3,
            "event_ordering_f1": 0.5,
            "event_ordering_final": 0.45,
            "event_ordering_tau": tau,
            "event_ordering_floor": empty_floor(5),
        }
    )


def test_without_the_beam_judge_only_the_floor_is_reported() -> None:
    records = [record(question_id="e", category=EVENT_ORDERING)]
    assert official_measures(records, {"e": 3}) == {"event_ordering_floor": empty_floor(3)}
    assert official_measures([record()], {}) == {}
