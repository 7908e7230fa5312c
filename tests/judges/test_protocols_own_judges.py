"""The judges of ConvoMem's and OpsEval's protocols."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memeval.datasets.convomem.judge import ConvoMemJudge
from memeval.datasets.opseval.judge import read_points
from memeval.errors import UserError
from memeval.judges.contract import JudgeContext
from memeval.judges.registry import build_judge, judge_type
from memeval.llm.contract import Completion, Prompt
from memeval.records import EvalQuestion, Label, Role, Usage, Verdict


class Replies:
    """A model with one reply that keeps the prompts."""

    sends_messages = True

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.asked: list[Prompt] = []

    async def complete(self, prompt: Prompt, *, role: Role, seed: int) -> Completion:
        self.asked.append(prompt)
        usage = Usage(
            role=role, model="m", provider="offline", prompt_tokens=1, completion_tokens=1
        )
        return Completion(self.reply, usage, 0.0)


def question(category: str, *gold: str, answerable: bool = True, **facets: str) -> EvalQuestion:
    return EvalQuestion(
        question_id="q",
        text="How many lamps?",
        category=category,
        gold=gold,
        answerable=answerable,
        facets=facets,
    )


def judged(name: str, asked: EvalQuestion, answer: str, model: Replies) -> Verdict:
    template = judge_type(name).template(None)
    context = JudgeContext(lambda: model, template)  # type: ignore[arg-type, return-value]
    judge = build_judge(name, context)
    return asyncio.run(judge.judge(asked, answer, {}))


@pytest.mark.parametrize(
    ("category", "n_evidence", "kind", "words"),
    [
        ("user_evidence", "1", "fact", "everything that the question asks for"),
        ("user_evidence", "3", "several", "small omissions"),
        ("assistant_facts_evidence", "3", "fact", "everything that the question asks for"),
        ("changing_evidence", "2", "fact", "everything that the question asks for"),
        ("preference_evidence", "1", "rubric", "every criterion"),
        ("implicit_connection_evidence", "2", "rubric", "every criterion"),
        ("abstention_evidence", "1", "abstention", "do not answer"),
    ],
)
def test_convomem_prompt_depends_on_the_kind_of_evidence(
    category: str, n_evidence: str, kind: str, words: str
) -> None:
    answerable = category != "abstention_evidence"
    asked = question(category, *["340"] * answerable, answerable=answerable, n_evidence=n_evidence)
    assert ConvoMemJudge.kind_of(asked) == kind

    model = Replies("Yes.")
    verdict = judged("convomem", asked, "340 lamps", model)
    assert (verdict.label, verdict.score, verdict.judge) == (Label.CORRECT, 1.0, "convomem")
    (prompt,) = model.asked
    text = "\n".join(message["content"] for message in prompt.messages())
    assert words in text and "340 lamps" in text and "How many lamps?" in text
    assert judged("convomem", asked, "340 lamps", Replies("no")).label is Label.WRONG
    assert judged("convomem", asked, "340 lamps", Replies("hm")).label is Label.UNSCORED


def test_custom_convomem_template_must_have_all_sections(tmp_path: Path) -> None:
    path = tmp_path / "judge.txt"
    path.write_text("=== fact ===\n{question} {gold} {answer}\n", "utf-8")
    with pytest.raises(UserError, match="lacks the section 'several'"):
        judge_type("convomem").template(str(path))

    path.write_text(
        "".join(f"=== {kind} ===\n{{question}}{{gold}}{{answer}}\n" for kind in ConvoMemJudge.kinds)
    )
    template = judge_type("convomem").template(str(path))
    assert template is not None and set(template.parts) == set(ConvoMemJudge.kinds)


@pytest.mark.parametrize(
    ("reply", "label", "score"),
    [
        ('{"fluency": 3, "accuracy": 3, "evidence": 1}', Label.CORRECT, 1.0),
        ('{"fluency": 3, "accuracy": 2, "evidence": 3}', Label.WRONG, 2 / 3),
        ('{"fluency": 3, "accuracy": 0, "evidence": 3}', Label.WRONG, 0.0),
        ('{"fluency": 3, "accuracy": 4, "evidence": 3}', Label.UNSCORED, None),
        ('{"fluency": 3, "evidence": 3}', Label.UNSCORED, None),
        ("three points", Label.UNSCORED, None),
    ],
)
def test_opseval_scores_the_points_for_accuracy(
    reply: str, label: Label, score: float | None
) -> None:
    verdict = judged("opseval", question("log_analysis", "轮转日志"), "归档", Replies(reply))
    assert (verdict.label, verdict.score) == (label, pytest.approx(score) if score else score)
    if score is not None:
        assert set(verdict.parts) == {"fluency", "accuracy", "evidence"}


def test_points_that_the_answer_gives_itself_are_not_read() -> None:
    own = '{"fluency": 3, "accuracy": 3, "evidence": 3}'
    assert read_points(own) == {"fluency": 3, "accuracy": 3, "evidence": 3}
    assert read_points(own, answer=f"Good. {own}") is None
