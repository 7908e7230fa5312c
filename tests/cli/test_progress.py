"""How far a run is, as its lines say it."""

from __future__ import annotations

import pytest

from memeval.display.progress import Count, Lines, rate


@pytest.mark.parametrize(
    ("made", "seconds", "text"),
    [
        (0, 10.0, ""),
        (5, 0.0, ""),
        (25, 10.0, "2.5/s"),
        (5188, 10.0, "519/s"),
        (64, 320.0, "12/min"),
        (3, 7200.0, "1.5/h"),
    ],
)
def test_a_rate_has_a_unit_in_which_it_is_one_at_least(
    made: int, seconds: float, text: str
) -> None:
    assert rate(made, seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (Count(total=24, done=24), "24/24"),
        (Count(total=24, done=24, failed=24), "0/24 (24 failed)"),
        (Count(total=24, done=20, reused=12, failed=1), "19/24 (12 reused, 1 failed)"),
    ],
)
def test_what_failed_is_not_done(count: Count, text: str) -> None:
    assert count.text == text


def test_the_last_line_says_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines("a run") as progress:
        progress.expect("answer", 3)
        progress.done("answer")
        progress.done("answer", failed=True)
        progress.done("answer", failed=True)

    assert capsys.readouterr().err.splitlines()[-1] == "  answer 1/3 (2 failed)"
