"""Judges: which replies contain a label, and which do not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from memeval.datasets.locomo.metrics import locomo_metrics
from memeval.errors import UserError
from memeval.judges.contract import JudgeContext, refusal_verdict
from memeval.judges.lexical import THRESHOLD, TokenF1Judge
from memeval.judges.reading import read_label
from memeval.judges.registry import build_judge, judge_type
from memeval.llm.contract import Completion, Prompt
from memeval.llm.model import LanguageModel
from memeval.records import EvalQuestion, Label, Role, Usage, Verdict

QUESTION = EvalQuestion(
    question_id="c/q0", text="When did she go?", category=2, gold=("7 May 2023",)
)


class Says(LanguageModel):
    """Gives the same reply to everything, and keeps the last prompt."""

    name = "says"

    def __init__(self, reply: str) -> None:
        self.reply, self.asked = reply, ""

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        self.asked = "\n".join(message["content"] for message in prompt.messages())
        return Completion(
            self.reply,
            Usage(
                role=role, model="says", provider="offline", prompt_tokens=1, completion_tokens=1
            ),
            0.0,
        )


def verdict(name: str, answer: str, reply: str = "", **settings: Any) -> Verdict:
    template, threshold = judge_type(name).template(None), settings.get("threshold")
    judge = build_judge(name, JudgeContext(lambda: Says(reply), template, threshold))
    return asyncio.run(judge.judge(QUESTION, answer, locomo_metrics(answer, QUESTION)))


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ('{"reason": "same day", "label": "CORRECT"}', Label.CORRECT),
        ('{"label":"wrong"}', Label.WRONG),
        ('first {"label": "CORRECT"} but then {"label": "WRONG"}', None),
        ('```json\n{"reason": "x", "label" : "CORRECT"}\n```', Label.CORRECT),
        ("CORRECT", None),
        ("The label is not WRONG", None),
        ('{"label": "PARTLY"}', None),
        ('{"verdict": "CORRECT"}', None),
        ("", None),
    ],
)
def test_label_is_read_only_from_a_single_object(reply: str, label: Label | None) -> None:
    assert read_label(reply) is label


def test_reply_without_a_label_is_unscored() -> None:
    found = verdict("llm", "7 May 2023", "looks CORRECT to me")
    assert found.label is Label.UNSCORED
    assert found.score is None


@pytest.mark.parametrize("name", ["llm", "mem0"])
def test_model_judges_see_question_gold_and_answer(name: str) -> None:
    model = Says('{"reason": "equal \\"dates\\"", "label": "CORRECT"}')
    judge = build_judge(name, JudgeContext(lambda: model, judge_type(name).template(None)))
    found = asyncio.run(judge.judge(QUESTION, "the 7th of May {gold}", {}))
    assert (found.label, found.score, found.reason) == (Label.CORRECT, 1.0, 'equal "dates"')
    assert all(
        part in model.asked for part in ("When did she go?", "7 May 2023", "the 7th of May {gold}")
    )


@pytest.mark.parametrize("name", ["keyword", "exact_match", "contains", "token_f1"])
def test_rule_judges_label_right_wrong_and_refused_answers(name: str) -> None:
    assert verdict(name, "7 May 2023").label is Label.CORRECT
    assert verdict(name, "June 1999").label is Label.WRONG
    assert verdict(name, "No information available").label is Label.ABSTAINED


def test_contains_accepts_a_gold_in_a_sentence_but_exact_match_does_not() -> None:
    sentence = "She went there on the 7 May 2023, by train."
    assert verdict("contains", sentence).label is Label.CORRECT
    assert verdict("exact_match", sentence).label is Label.WRONG
    assert verdict("contains", "She went on 27 May 2023").label is Label.WRONG


def test_token_f1_is_right_from_its_threshold_and_scores_the_f1() -> None:
    half = verdict("token_f1", "May 2022")
    assert half.score == pytest.approx(0.4)
    assert half.label is Label.WRONG
    assert verdict("token_f1", "May 2022", threshold=0.4).label is Label.CORRECT


def test_answer_without_a_token_f1_is_unscored() -> None:
    found = asyncio.run(TokenF1Judge().judge(QUESTION, "7 May", {"token_f1": None}))
    assert found.label is Label.UNSCORED
    assert found.reason.startswith("token_f1 is not defined for this answer")


@pytest.mark.parametrize("name", ["keyword", "contains", "exact_match"])
def test_answer_to_a_question_without_a_gold_is_unscored(name: str) -> None:
    judge = build_judge(name, JudgeContext(lambda: Says("")))
    question = replace(QUESTION, gold=())
    metrics = locomo_metrics("7 May", question)
    found = asyncio.run(judge.judge(question, "7 May", metrics))
    assert (found.label, found.reason) == (Label.UNSCORED, "the question has no gold")


def test_a_subclass_of_token_f1_has_the_threshold_that_its_run_records() -> None:
    class Strict(TokenF1Judge):
        def __init__(self, threshold: float = 0.9) -> None:
            super().__init__(threshold)

    assert Strict.build(JudgeContext(lambda: Says(""))).threshold == THRESHOLD


@pytest.mark.parametrize(
    ("answer", "right"),
    [("Not mentioned in the conversation", True), ("No information / I don't know", False)],
)
def test_unanswerable_questions_follow_the_official_refusal_rule(answer: str, right: bool) -> None:
    question = EvalQuestion(
        question_id="c/q1", text="What did he paint?", category=5, gold=(), answerable=False
    )
    found = refusal_verdict(answer, locomo_metrics(answer, question))
    assert (found.label is Label.CORRECT) is right
    assert found.judge == "official_refusal"

    by_list = refusal_verdict("I do not know.", {"token_f1": None})
    assert (by_list.judge, by_list.label) == ("refusal", Label.CORRECT)


def test_unknown_judge_suggests_the_nearest_name() -> None:
    with pytest.raises(UserError, match=r"Did you mean: keyword\b"):
        judge_type("keywords")
