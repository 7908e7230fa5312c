"""Rank groups computed with matrices equal those of a comparison of all pairs."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from memeval.comparison.build import compare_runs
from memeval.comparison.scores import AskedQuestion, RunScores
from memeval.metrics.registry import metrics
from memeval.packages.board.ranking import MAX_WORK, rank_runs
from memeval.results import JudgeIdentity, RunSummary
from memeval.results.run import Run
from memeval.results.summary import FOUND_NOTHING

JUDGE = JudgeIdentity(name="keyword")


def summary_of(number: int) -> RunSummary:
    return RunSummary(
        name=f"system {number}",
        run_key=f"{number:016x}",
        dataset="demo",
        metrics={"coverage": 1.0},
        judge=JUDGE,
        sweep=None,
        command="",
        params={},
        tags={},
        categories=(),
        repeats=(),
        notes=(),
        valid=True,
        started_at="",
        finished_at="",
    )


def scores_of(number: int, chance: random.Random, cases: int) -> RunScores:
    asked, values = {}, {}
    for place in range(12 * cases):
        name = f"q{place}"
        weight = 1.0 + place % 3
        asked[name] = AskedQuestion(f"case {place % cases}", "1", "1", ("x",), "", weight)
        # A few answers have no score.
        if chance.random() < 0.995:
            values[name] = float(chance.random() < 0.2 + 0.05 * number)

    return RunScores(asked, values, None, 1)


@pytest.mark.parametrize("cases", [3, 6, 10, 20])
def test_letters_equal_those_of_a_comparison_of_all_pairs(cases: int) -> None:
    chance = random.Random(cases)
    summaries = [summary_of(number) for number in range(12)]
    scores = [scores_of(number, chance, cases) for number in range(12)]
    # Three runs cannot be compared, two only with each other, and three have other labels, data or
    # questions.
    for number in (0, 5):
        summaries[number] = replace(summaries[number], tags={FOUND_NOTHING: "true"})

    summaries[3] = replace(summaries[3], metrics={"coverage": 0.5})
    for number in (7, 8):
        summaries[number] = replace(summaries[number], judge=JudgeIdentity(name="exact_match"))

    asked, values = dict(scores[9].questions), dict(scores[9].values)
    left_out, _ = asked.popitem()
    values.pop(left_out, None)
    scores[9] = RunScores(asked, values, None, 1)
    summaries[10] = replace(summaries[10], params={"dataset.labels": "corrected"})
    summaries[11] = replace(summaries[11], tags={"data_sha256": "0123"})
    runs = [Run(Path(), one) for one in summaries]
    compared = compare_runs(runs, metrics()["accuracy"], all_pairs=True, scores=scores)
    found = rank_runs(summaries, scores, [one.name for one in summaries])
    assert list(found.letters) == [run.letters for run in compared.runs]
    assert any(
        f"coverage of system 3 ({summaries[3].run_key[:8]}) is 50.0 %" in line
        for line in found.remarks
    )
    assert sum("got any context from its memory" in line for line in found.remarks) == 2
    assert any("system 7, system 8: different judges" in line for line in found.remarks)


def test_many_runs_are_ranked_unless_their_pairs_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(1)
    summaries = [summary_of(number) for number in range(60)]
    scores = [scores_of(number // 6, chance, 10) for number in range(60)]
    names = [one.name for one in summaries]
    letters = rank_runs(summaries, scores, names).letters
    assert all(letters) and letters[59].startswith("a") and not set(letters[0]) & set(letters[59])

    monkeypatch.setattr("memeval.packages.board.ranking.MAX_WORK", MAX_WORK / 10**9)
    found = rank_runs(summaries, scores, names)
    assert set(found.letters) == {""} and "60 runs have too many" in found.remarks[-1]


def test_thirds_that_cancel_set_no_runs_apart() -> None:
    # Means over three repeats: the same sum in each conversation, but not to the last digit.
    thirds = [1.0, 2 / 3, 1.0, 1 / 3, 1 / 3]
    scores = []
    for values in (thirds, sorted(thirds)):
        own, asked = {}, {}
        for place in range(50):
            asked[f"q{place}"] = AskedQuestion(f"case {place % 10}", "1", "1", ("x",), "", 1.0)
            own[f"q{place}"] = values[place // 10]

        scores.append(RunScores(asked, own, None, 3))

    found = rank_runs([summary_of(0), summary_of(1)], scores, ["a", "b"])
    assert found.letters == ("a", "a")
