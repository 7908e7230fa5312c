"""What a plan says of the difference that the data could show."""

from __future__ import annotations

import pytest

from memeval.cli.plan_text import outlook_line
from memeval.sweep.outlook import Outlook


@pytest.mark.parametrize(
    ("difference", "told"),
    [
        (None, "can't show a difference between systems: that takes two cases at least"),
        (0.123, "can show a difference of 12.3 points of accuracy in 80 of 100 cases (assumed)"),
        (1.548, "can't show any difference in 80 of 100 cases (assumed)"),
    ],
)
def test_a_difference_is_at_most_the_whole_scale(difference: float | None, told: str) -> None:
    outlook = Outlook(
        dataset="demo",
        questions=3,
        cases=3,
        difference=difference,
        design_effect=1.0,
        basis="assumed",
    )
    assert outlook_line(outlook) == f"demo: 3 questions in 3 cases {told}"
