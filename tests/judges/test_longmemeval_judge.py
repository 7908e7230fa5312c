from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memeval.datasets.longmemeval.judge import KIND_OF, KINDS
from memeval.errors import UserError
from memeval.judges.contract import JudgeContext
from memeval.judges.registry import build_judge, judge_type
from memeval.llm.contract import Completion, JudgePrompt, Prompt
from memeval.llm.model import LanguageModel
from memeval.records import EvalQuestion, Label, Role, Usage, Verdict

SECTIONS = {
    kind: f"=== {kind} ===\nJudge by {kind}.\n---\n{{question}} / {{gold}} / {{answer}}\n"
    for kind in KINDS
}


class Says(LanguageModel):
    """Gives one reply, and keeps the prompts."""

    name = "scripted"

    def __init__(self, reply: str) -> None:
        self.reply, self.prompts = reply, list[JudgePrompt]()

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        assert isinstance(prompt, JudgePrompt) and role is Role.JUDGE
        self.prompts.append(prompt)
        return Completion(
            self.reply,
            Usage(
                role=role, model=self.name, provider="offline", prompt_tokens=1, completion_tokens=1
            ),
            0.0,
        )


def question(kind: str = "multi-session", *, answerable: bool = True) -> EvalQuestion:
    return EvalQuestion(
        question_id="q1", text="How many?", category=kind, gold=("five",), answerable=answerable
    )


def judged(
    model: Says, asked: EvalQuestion, answer: str = "Five of them.", file: str | None = None
) -> Verdict:
    template = judge_type("longmemeval").template(file)
    judge = build_judge("longmemeval", JudgeContext(lambda: model, template))
    assert judge.judges_refusals
    return asyncio.run(judge.judge(asked, answer, {}))


@pytest.mark.parametrize(
    ("reply", "label", "score"),
    [
        *(("yes", "correct", 1.0), ("Yes.", "correct", 1.0)),
        *(
            ("no", "wrong", 0.0),
            ("**No**", "wrong", 0.0),
            ("No. The response says: yesterday", "wrong", 0.0),
        ),
        *(("Nope", "unscored", None), ("well, yes", "unscored", None)),
        *(("", "unscored", None), (" \n", "unscored", None)),
    ],
)
def test_the_label_is_the_first_word_of_the_reply(
    reply: str, label: str, score: float | None
) -> None:
    verdict = judged(Says(reply), question())
    assert (verdict.label, verdict.score, verdict.judge) == (Label(label), score, "longmemeval")


def test_refusal_is_abstained_if_answerable_else_judged_by_the_model() -> None:
    assert judged(Says("no"), question(), "I don't know.").label is Label.ABSTAINED
    assert judged(Says("no"), question(answerable=False), "I don't know.").label is Label.WRONG
    assert judged(Says("yes"), question(answerable=False), "I don't know.").label is Label.CORRECT


@pytest.mark.parametrize(("kind", "prompt"), KIND_OF.items())
def test_each_kind_of_question_has_its_prompt(tmp_path: Path, kind: str, prompt: str) -> None:
    file = tmp_path / "own.txt"
    file.write_text("".join(SECTIONS.values()), encoding="utf-8")
    model = Says("yes")
    judged(model, question(kind), file=str(file))
    judged(model, question(kind, answerable=False), file=str(file))
    assert [asked.system_text for asked in model.prompts] == [
        f"Judge by {prompt}.",
        "Judge by abstention.",
    ]
    assert model.prompts[0].messages()[-1]["content"] == "How many? / five / Five of them."
    assert model.prompts[0].limits().max_tokens == 10


def test_template_without_a_system_message_sends_none(tmp_path: Path) -> None:
    file = tmp_path / "own.txt"
    file.write_text("".join(SECTIONS.values()).replace("\n---\n", "\n"), encoding="utf-8")
    model = Says("yes")
    judged(model, question(), file=str(file))
    assert [message["role"] for message in model.prompts[0].messages()] == ["user"]


def test_built_in_prompts_differ_and_only_temporal_forgives_off_by_one() -> None:
    template = judge_type("longmemeval").template(None)
    assert template is not None
    assert len({part.sha256 for part in template.parts.values()}) == len(KINDS) == 5
    assert (
        "off by one" in template.parts["temporal"].system
        and "off by one" not in template.parts["fact"].system
    )
    assert all(
        "{" + field + "}" in part.user
        for part in template.parts.values()
        for field in ("question", "gold", "answer")
    )


def test_sha256_covers_all_sections(tmp_path: Path) -> None:
    digests = set()
    for changed in (None, *KINDS):
        file = tmp_path / "own.txt"
        file.write_text(
            "".join(text + ("!\n" if kind == changed else "") for kind, text in SECTIONS.items()),
            encoding="utf-8",
        )
        template = judge_type("longmemeval").template(str(file))
        assert template is not None
        digests.add(template.sha256)
    assert len(digests) == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "".join(text for kind, text in SECTIONS.items() if kind != "update"),
            "lacks the section 'update'",
        ),
        ("Judge. {question} {gold} {answer}", "lacks the section 'fact'"),
        (
            "".join(SECTIONS.values()).replace("=== update ===\n", "=== updates ===\n"),
            "lacks the section 'update'",
        ),
        (
            "".join(SECTIONS.values()) + "=== extra ===\n",
            "has an unknown section 'extra'",
        ),
        (
            "".join(SECTIONS.values()) + SECTIONS["fact"],
            "has an unknown section 'fact'",
        ),
        ("".join(SECTIONS.values()).replace("{gold}", "", 1), "section 'fact' lacks {gold}"),
    ],
)
def test_template_with_missing_or_unknown_parts_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "own.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        judge_type("longmemeval").template(str(file))
    assert message in str(caught.value) and str(file) in str(caught.value)


def test_unknown_question_type_is_refused() -> None:
    with pytest.raises(
        UserError, match="judge=longmemeval has no prompt for question type 'trivia'"
    ):
        judged(Says("yes"), question("trivia"))
