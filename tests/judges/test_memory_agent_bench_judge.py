"""MemoryAgentBench's judge: one metric per sub-data set, and a model for two of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memeval.datasets.memory_agent_bench.judge import read_counts, summary_score
from memeval.errors import UserError
from memeval.judges.contract import JudgeContext
from memeval.judges.registry import build_judge, judge_type
from memeval.llm.contract import Completion, FixedSampling, Prompt
from memeval.llm.model import LanguageModel
from memeval.records import EvalQuestion, Label, Role, Usage, Verdict


class Replies(LanguageModel):
    """Gives the same reply to everything, and keeps the prompts and their limits."""

    name = "replies"

    def __init__(self, reply: str) -> None:
        self.reply, self.asked = reply, list[str]()
        self.given = list[FixedSampling]()

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        self.asked.append("\n".join(message["content"] for message in prompt.messages()))
        self.given.append(prompt.limits())
        return Completion(
            self.reply,
            Usage(
                role=role, model="replies", provider="offline", prompt_tokens=1, completion_tokens=1
            ),
            0.0,
        )


def judged(
    question: EvalQuestion, answer: str, model: Replies, prompt_file: str | None = None
) -> Verdict:
    template = judge_type("memory_agent_bench").template(prompt_file)
    judge = build_judge("memory_agent_bench", JudgeContext(lambda: model, template))
    return asyncio.run(judge.judge(question, answer, {}))


def question(source: str, *gold: str, answerable: bool = True, **facets: str) -> EvalQuestion:
    return EvalQuestion(
        question_id="q",
        text="What?",
        category=source,
        gold=gold,
        answerable=answerable,
        facets=facets,
    )


@pytest.mark.parametrize(
    ("source", "gold", "answer", "label", "score"),
    [
        ("factconsolidation_sh_6k", ("Milo",), "It is Milo.", Label.CORRECT, 1),
        ("factconsolidation_sh_6k", ("Milo",), "Greta", Label.WRONG, 0),
        ("ruler_qa2", ("x", "1871"), "in 1871", Label.CORRECT, 1),
        ("eventqa_full", ("She left.",), "I don't know.", Label.ABSTAINED, 0),
        ("icl_trec", ("3",), "Answer: 3", Label.CORRECT, 1),
        ("icl_trec", ("3",), "it may be 3", Label.WRONG, 0),
        ("detective_qa", ("B. The cook",), "b. the cook\nas shown", Label.CORRECT, 1),
        ("recsys_redial", ("Heat", "Jaws"), "1. Heat\n2. Jaws", Label.CORRECT, 1),
        ("recsys_redial", ("Heat", "Jaws"), "1. Heat\n2. Up", Label.WRONG, 0.5),
    ],
)
def test_sub_data_sets_judged_by_rule_call_no_model(
    source: str, gold: tuple[str, ...], answer: str, label: Label, score: float
) -> None:
    model = Replies("yes")
    found = judged(question(source, *gold), answer, model)
    assert (found.judge, found.label, found.score, model.asked) == (
        "memory_agent_bench",
        label,
        score,
        [],
    )


@pytest.mark.parametrize(
    ("kind", "answerable", "words"),
    [
        ("multi-session", True, "every intermediate step"),
        ("knowledge-update", True, "changed in the course"),
        ("unheard-of", True, "every intermediate step"),
        ("multi-session", False, "can't be answered"),
    ],
)
def test_chats_are_judged_by_the_prompt_of_their_question_type(
    kind: str, answerable: bool, words: str
) -> None:
    model = Replies("Yes.")
    found = judged(
        question("longmemeval_s*", "Juno", answerable=answerable, question_type=kind), "Juno", model
    )
    assert (found.label, found.score) == (Label.CORRECT, 1.0)
    assert words in model.asked[0] and "Juno" in model.asked[0]
    assert model.given[0].max_tokens == 10
    assert judged(question("longmemeval_s*", "Juno"), "Max", Replies("no")).label is Label.WRONG
    assert judged(question("longmemeval_s*", "Juno"), "Max", Replies(" ")).label is Label.UNSCORED


def reply(fluent: int, conveyed: int, points: int, supported: int, sentences: int) -> str:
    return (
        f'{{"fluent": {fluent}, "conveyed": {conveyed}, "points": {points}, "supported": '
        f'{supported}, "sentences": {sentences}}}'
    )


@pytest.mark.parametrize(
    ("counts", "label", "score"),
    [
        ((1, 4, 4, 3, 3), Label.CORRECT, 1.0),
        ((1, 2, 4, 1, 1), Label.CORRECT, 2 / 3),
        ((1, 1, 4, 1, 1), Label.WRONG, 0.4),
        ((0, 4, 4, 3, 3), Label.WRONG, 0.0),
        ((1, 0, 4, 0, 3), Label.WRONG, 0.0),
    ],
)
def test_a_summary_is_scored_by_counts(
    counts: tuple[int, int, int, int, int], label: Label, score: float
) -> None:
    model = Replies(f"```json\n{reply(*counts)}\n```")
    found = judged(question("infbench_sum", "All is well.", "Key points: a; b"), "Well.", model)
    assert found.label is label and found.score == pytest.approx(score)
    assert "All is well. / Key points: a; b" in model.asked[0]
    assert summary_score(*counts) == pytest.approx(score)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "good",
        reply(2, 1, 1, 1, 1),
        reply(1, 3, 2, 1, 1),
        reply(1, 0, 0, 0, 0),
        reply(1, 1, 2, 4, 3),
        '{"fluent": 1}',
    ],
)
def test_counts_that_are_missing_or_impossible_leave_a_summary_unscored(text: str) -> None:
    assert read_counts(text) is None
    found = judged(question("infbench_sum", "x"), "y", Replies(text))
    assert (found.label, found.score) == (Label.UNSCORED, None)


def test_an_unknown_sub_data_set_is_refused() -> None:
    with pytest.raises(UserError, match="no metric for the sub-data set 'locomo'"):
        judged(question("locomo", "x"), "y", Replies(""))


def test_custom_prompt_template_must_have_all_sections(tmp_path: Path) -> None:
    kinds = ("fact", "temporal", "update", "preference", "abstention", "summary")
    path = tmp_path / "own.txt"
    path.write_text(
        "".join(f"=== {kind} ===\n{kind}: {{question}} {{gold}} {{answer}}\n" for kind in kinds),
        encoding="utf-8",
    )
    model = Replies(reply(1, 1, 1, 1, 1))
    judged(question("infbench_sum", "x"), "y", model, str(path))
    assert "summary: What? x y" in model.asked[0]
    path.write_text("=== fact ===\n{question} {gold} {answer}\n", encoding="utf-8")
    with pytest.raises(UserError, match="lacks the section 'temporal'"):
        judge_type("memory_agent_bench").template(str(path))
