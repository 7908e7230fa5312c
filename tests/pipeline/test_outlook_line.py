"""What a plan says of the difference that the data could show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memeval.cli.plan_text import outlook_line
from memeval.runs.forecast.outlook import Outlook

OUTLOOK = Outlook(
    dataset="demo",
    questions=3,
    cases=3,
    difference=None,
    cases_needed=None,
    difference_then=None,
    design_effect=1.0,
    basis="assumed",
)


@pytest.mark.parametrize(
    ("difference", "told"),
    [
        (0.123, "can show a difference of 12.3 points of accuracy with 80 % power (assumed)"),
        (1.0, "can't show any difference with 80 % power (assumed)"),
    ],
)
def test_a_difference_is_at_most_the_whole_scale(difference: float, told: str) -> None:
    outlook = replace(OUTLOOK, difference=difference)
    assert outlook_line(outlook) == f"demo: 3 questions in 3 cases {told}"


def test_too_few_cases_are_named_and_how_many_would_do() -> None:
    few = "demo: 3 questions in 3 cases are too few to show any difference"
    assert outlook_line(OUTLOOK) == f"{few} (assumed)"
    more = replace(OUTLOOK, cases_needed=10, difference_then=0.268)
    assert (
        outlook_line(more) == f"{few}; 10 cases would show about 26.8 points of accuracy (assumed)"
    )
