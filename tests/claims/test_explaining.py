"""The gap between a run and a published figure, part by part, checked against hand-computed
figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_runs import in_conversations, made_run

from memeval.comparison.claims.effects import DifferingPart, Effect
from memeval.comparison.claims.explaining import Explanation, explain_match
from memeval.comparison.claims.matching import match_claim
from memeval.comparison.claims.records import Claim, ClaimedFigure, Protocol
from memeval.results import FEWEST_SESSIONS, HYPOTHESES_FILE, CategoryResult
from memeval.results.judge import JudgeIdentity
from memeval.results.run import Run

HALF, NONE = [2] * 8, [0] * 8
ANSWERS = {"files": {HYPOTHESES_FILE: "aa"}}


def category(name: str, n: int, accuracy: float) -> CategoryResult:
    return CategoryResult(
        category=name,
        name=name,
        n=n,
        scored=n,
        asked=n,
        headline=True,
        accuracy=accuracy,
        accuracy_std=None,
        ci95_low=None,
        ci95_high=None,
        token_f1=None,
    )


def claim(metric: str = "accuracy", **protocol: Any) -> Claim:
    return Claim(
        name="made_up",
        title="Made up",
        source="nowhere",
        dataset="locomo",
        protocol=Protocol(**protocol),
        figures=(ClaimedFigure(system="rag", metric=metric, value=80.0),),
    )


def explained(run: Run, *known: Run, of: Claim | None = None, **protocol: Any) -> Explanation:
    (match,) = match_claim(of or claim(**protocol), run.summary)
    return explain_match(match, run, [run, *known])


def effects(explanation: Explanation, part: DifferingPart) -> dict[str, Effect]:
    return {effect.text: effect for effect in explanation.effects if effect.part is part}


def test_gap_is_explained_by_averages_and_left_out_categories(tmp_path: Path) -> None:
    # Four questions per conversation: q1 and q3 in category 2, the other two in category 1. q0 and
    # q1 are right.
    run = made_run(tmp_path, "rag", in_conversations([2, 2, 2, 4]))
    explanation = explained(run)
    assert (explanation.own, explanation.gap) == (62.5, -17.5)
    average = effects(explanation, DifferingPart.AVERAGE)
    assert average["mean of the categories' means"].change == pytest.approx(0.0)
    assert average["mean of the conversations' means"].value == pytest.approx(62.5)
    assert set(effects(explanation, DifferingPart.CATEGORIES)) == {
        "without category 1",
        "without category 2",
    }


def test_effect_of_adding_a_category(tmp_path: Path) -> None:
    scores = {"c0/q0": [1.0], "c0/q1": [0.0], "c1/q0": [1.0], "c1/q1": [0.0], "c1/q3": [1.0]}
    run = made_run(tmp_path, "rag", scores)
    explanation = explained(run, categories=(1,))
    assert explanation.own == 100.0
    moved = effects(explanation, DifferingPart.CATEGORIES)
    assert (moved["with category 2"].value, moved["with category 2"].change) == (60.0, -40.0)
    # Three right answers divided by two questions.
    assert moved["with category 2 in the numerator only"].value == pytest.approx(150.0)


def test_effect_of_another_judge_on_the_same_answers(tmp_path: Path) -> None:
    run = made_run(tmp_path, "strict", in_conversations(HALF), **ANSWERS)
    lenient = JudgeIdentity("mem0", model="small")
    other = made_run(tmp_path, "kind", in_conversations([3] * 8), judge=lenient, **ANSWERS)
    elsewhere = made_run(tmp_path, "other", in_conversations(NONE), judge=lenient)
    judged = effects(explained(run, other, elsewhere), DifferingPart.JUDGE)
    ((text, effect),) = judged.items()
    assert text == f"the same answers by mem0 (small) (run {other.key})"
    assert (effect.value, effect.change) == (75.0, 25.0)
    # One of four questions flips in each of eight conversations: all flips agree.
    assert (effect.low, effect.high) == (25.0, 25.0)


def test_offline_judges_are_applied_to_the_answers_without_a_run(tmp_path: Path) -> None:
    metrics = {"keyword_pass": 1.0, "contains": 1.0, "exact_match": 0.0}
    run = made_run(tmp_path, "rag", in_conversations(HALF), of_records={"metrics": metrics})
    judged = effects(explained(run), DifferingPart.JUDGE)
    # The run was judged by keyword, so keyword is not listed.
    assert {text: effect.value for text, effect in judged.items()} == {
        "the same answers by judge=contains": 100.0,
        "the same answers by judge=exact_match": 0.0,
    }


def test_run_that_differs_in_one_part_measures_its_effect(tmp_path: Path) -> None:
    run = made_run(tmp_path, "rag", in_conversations(HALF), params={"top_k": 10})
    # A setting that changes no result does not count.
    settings = {"top_k": 50, "llm.timeout_s": 30.0}
    deep = made_run(tmp_path, "rag", in_conversations([3] * 8), params=settings, run_key="deep")
    settings = {"top_k": 1}
    bad = made_run(
        tmp_path, "rag", in_conversations(NONE), params=settings, run_key="bad", valid=False
    )
    both = made_run(
        tmp_path,
        "rag",
        in_conversations(NONE),
        params={"top_k": 20, "prompt": "con"},
        run_key="both",
    )
    explanation = explained(run, deep, bad, both, k=50)
    ((text, effect),) = effects(explanation, DifferingPart.K).items()
    assert (text, effect.change) == ("top_k=50 (run deep)", 25.0)
    assert DifferingPart.K not in explanation.missing
    assert explanation.aspects(DifferingPart.K)[0].text == "k: 10 here, 50 there"


def test_unmeasured_part_names_the_command_that_measures_it(tmp_path: Path) -> None:
    run = made_run(tmp_path, "rag", in_conversations(HALF))
    explanation = explained(run, judge="lenient", judge_like="mem0", judge_model="large")
    assert (
        f"{run.folder}/hypotheses.jsonl dataset=locomo judge=mem0"
        in explanation.missing[DifferingPart.JUDGE]
    )
    assert "llm.model=" in explanation.missing[DifferingPart.MODEL]
    assert explanation.missing[DifferingPart.QUESTIONS] == ""


def test_effect_of_counting_unscored_questions_as_wrong(tmp_path: Path) -> None:
    run = made_run(tmp_path, "rag", {"c0/q0": [1.0], "c0/q1": [None], "c1/q0": [1.0]})
    ((text, effect),) = effects(explained(run), DifferingPart.COVERAGE).items()
    assert text.startswith("1 question without a score")
    assert effect.value == pytest.approx(200 / 3)


def test_recall_is_shown_at_other_depths_and_next_to_accuracy(tmp_path: Path) -> None:
    metrics = {
        "accuracy": 0.4,
        "coverage": 1.0,
        "session_hit_at_5": 0.9,
        "session_hit_at_1": 0.5,
        "hit_at_5": 0.7,
    }
    rows = (category("1", 4, 0.4),)
    run = made_run(
        tmp_path,
        "rag",
        in_conversations(HALF),
        metrics=metrics,
        categories=rows,
        tags={FEWEST_SESSIONS: "5"},
    )
    explanation = explained(run, of=claim("session_hit_at_5"))
    assert explanation.own == 90.0
    shown = {text: effect.value for text, effect in effects(explanation, DifferingPart.K).items()}
    assert shown == {"session hit@1": 50.0, "turn hit@5": 70.0}
    (accuracy,) = effects(explanation, DifferingPart.JUDGE).values()
    assert (accuracy.value, accuracy.change) == (40.0, -50.0)


def test_token_f1_depends_on_the_reader_and_on_no_judge(tmp_path: Path) -> None:
    run = made_run(tmp_path, "rag", in_conversations(HALF), judge=JudgeIdentity("mem0"))
    explanation = explained(run, of=claim("token_f1"))
    assert explanation.own == 50.0 and DifferingPart.AVERAGE in {
        effect.part for effect in explanation.effects
    }
    parts = {aspect.name for aspect in explanation.match.aspects}
    assert "reader" in parts and "judge" not in parts
    assert not effects(explanation, DifferingPart.JUDGE)
