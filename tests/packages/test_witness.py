"""The witness: an independent second implementation, without shared code, gives the same
figures.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from memeval.statistics.clusters import clustered_mean
from memeval.statistics.differences import clustered_difference
from memeval.statistics.flips import max_t_ps
from memeval.witness.figures import ScoredQuestion, difference
from memeval.witness.flips import adjusted_ps, flip_test
from memeval.witness.share import share_interval

CLOSE = pytest.approx


def shares(right: str, asked: str) -> tuple[list[float], list[str], list[float]]:
    values: list[float] = []
    cases: list[str] = []
    for case, (ones, count) in enumerate(zip(right.split(), asked.split(), strict=True)):
        values += [float(number < int(ones)) for number in range(int(count))]
        cases += [str(case)] * int(count)

    return values, cases, [1.0] * len(values)


@pytest.mark.parametrize(
    "right, asked, low, high",
    [
        ("10 3 25 40", "40 20 60 80", 0.18391026048234907, 0.6446150992793244),
        ("1 1 1", "31 31 31", 0.004021471321735054, 0.2157991771031901),
        ("0 0 0", "31 31 31", 0, 0.1660151759025062),
        ("300 10 12 9 15", "400 20 20 20 20", 0.27064975324021545, 0.9472763354248313),
    ],
)
def test_intervals_of_a_share(right: str, asked: str, low: float, high: float) -> None:
    assert share_interval(*shares(right, asked)) == CLOSE((low, high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "sums, sizes, p, low, high",
    [
        ("3 -1 4 1 5 -2 6 0 2 1", "20 15 30 12 25 18 22 10 16 14", 0.06640625, 0, 2 / 11),
        ("5 4 6 3 2 7", "10 10 10 10 10 10", 0.03125, 0.2, 0.7),
        ("5 4 6 3 2", "10 10 10 10 10", 0.0625, None, None),
    ],
)
def test_p_and_interval_by_sign_flips(
    sums: str, sizes: str, p: float, low: float | None, high: float | None
) -> None:
    own = flip_test([float(one) for one in sums.split()], [float(one) for one in sizes.split()])
    assert own == CLOSE((p, low, high))


def test_random_weighted_runs_agree_with_the_other_implementation() -> None:
    chance = random.Random(7)
    for groups in (2, 3, 7, 18):
        cases = [str(chance.randrange(groups)) for _ in range(90)]
        weights = [chance.choice([1.0, 2.5]) for _ in cases]
        runs = [[chance.choice([0.0, 0.5, 1.0]) for _ in cases] for _ in range(3)]
        # The second list differs only by rounding.
        for values in (runs[0], [chance.choice([0.3, 0.1 + 0.2]) for _ in cases]):
            mean = clustered_mean(values, cases, weights, is_share=True)
            assert mean is not None
            assert share_interval(values, cases, weights) == CLOSE((mean.low, mean.high), rel=1e-9)

        asked = [
            {
                str(number): ScoredQuestion(case, "1", weight, (value,))
                for number, (case, weight, value) in enumerate(
                    zip(cases, weights, run, strict=True)
                )
            }
            for run in runs
        ]
        rows = []
        for other in (1, 2):
            own = difference(asked[0], asked[other])
            deltas = [one - less for one, less in zip(runs[0], runs[other], strict=True)]
            result = clustered_difference(deltas, cases, weights)
            assert own is not None and result is not None
            assert (own.mean, own.p) == CLOSE((result.mean, result.p))
            assert (own.low, own.high) == CLOSE((result.low, result.high))
            rows.append(own.sums)

        assert adjusted_ps(rows) == CLOSE(max_t_ps([list(row.values()) for row in rows]))


def test_thirds_that_cancel_are_no_difference() -> None:
    cases, runs = [str(number // 4) for number in range(40)], [(1, 3, 2, 0) * 10, (2, 2, 1, 1) * 10]
    asked = []
    for run in runs:
        scores = [[float(number < right) for number in range(3)] for right in run]
        questions = [
            ScoredQuestion(case, "1", 1.0, tuple(own))
            for case, own in zip(cases, scores, strict=True)
        ]
        asked.append({str(number): question for number, question in enumerate(questions)})

    own = difference(asked[0], asked[1])
    assert own is not None and (own.p, own.low, own.high) == (1.0, 0.0, 0.0)


def test_witness_is_small_and_imports_nothing_else_of_memeval() -> None:
    folder = Path(__file__).parents[2] / "memeval" / "witness"
    assert sum(len(path.read_text().splitlines()) for path in folder.glob("*.py")) <= 500
    code = (
        "import sys, memeval.witness.figures; "
        "print(*[m for m in sys.modules if m.startswith('memeval.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name.startswith("memeval.witness") for name in done.stdout.split())
