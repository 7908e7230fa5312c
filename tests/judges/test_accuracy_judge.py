from __future__ import annotations

import asyncio

import pytest

from memeval.judges.contract import JudgeContext
from memeval.judges.registry import build_judge
from memeval.llm.model import LanguageModel
from memeval.records import ChoiceLabels, EvalQuestion, Label, Verdict

NUMBERED = EvalQuestion(
    question_id="c_q0",
    text="When?",
    category=2,
    gold=("7 May 2023",),
    choices=("6 May 2023", "7 May 2023", "2020", "2020"),
    right_choices=(1,),
)
LETTERED = EvalQuestion(
    question_id="i0",
    text="Which?",
    category="ops",
    gold=(),
    choices=("red", "blue", "green"),
    right_choices=(0, 2),
    choice_labels=ChoiceLabels.LETTERS,
    multi_select=True,
)


def no_model() -> LanguageModel:
    raise AssertionError("accuracy asks no model")


def verdict(question: EvalQuestion, reply: str) -> Verdict:
    judge = build_judge("accuracy", JudgeContext(no_model))
    assert judge.judges_refusals
    return asyncio.run(judge.judge(question, reply, {}))


@pytest.mark.parametrize(
    ("reply", "label", "score", "chosen"),
    [
        ("1", Label.CORRECT, 1.0, (1,)),
        ("1. 7 May 2023", Label.CORRECT, 1.0, (1,)),
        ("0", Label.WRONG, 0.0, (0,)),
        ("2", Label.WRONG, 0.0, (2,)),
    ],
)
def test_number_in_a_reply_is_read_as_a_choice(
    reply: str, label: Label, score: float, chosen: tuple[int, ...]
) -> None:
    found = verdict(NUMBERED, reply)
    assert (found.judge, found.label, found.score, found.chosen) == (
        "accuracy",
        label,
        score,
        chosen,
    )
    assert found.reason == f"read as {chosen[0]}"


@pytest.mark.parametrize(
    "reply", ["It was on 7 May 2023.", "No information available", "The notes do not say", "7"]
)
def test_reply_that_names_no_choice_is_unscored(reply: str) -> None:
    found = verdict(NUMBERED, reply)
    assert (found.label, found.score, found.chosen) == (Label.UNSCORED, None, None)
    assert found.reason == f"names no choice: '{reply}'"


def test_reason_quotes_only_part_of_a_long_reply() -> None:
    assert len(verdict(NUMBERED, "hm " * 200).reason) < 110


def test_duplicate_of_the_right_choice_is_right_too() -> None:
    twice = EvalQuestion(
        question_id="c_q1",
        text="When?",
        category=2,
        gold=("2020",),
        choices=NUMBERED.choices,
        right_choices=(3,),
    )
    assert [verdict(twice, reply).label for reply in ("2", "3", "2020")] == [Label.CORRECT] * 3


@pytest.mark.parametrize(
    ("reply", "label", "score"),
    [
        ("A, C", Label.CORRECT, 1.0),
        ("A", Label.WRONG, 0.5),
        ("A,B,C", Label.WRONG, 2 / 3),
        ("B", Label.WRONG, 0.0),
    ],
)
def test_several_letters_are_right_only_as_a_set_and_score_the_overlap(
    reply: str, label: Label, score: float
) -> None:
    found = verdict(LETTERED, reply)
    assert (found.label, found.score) == (label, pytest.approx(score))
