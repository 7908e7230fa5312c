"""The mock model: it replies to every kind of prompt in the expected form, and a run with it says
so.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from memeval.datasets.memory_agent_bench.judge import read_counts
from memeval.datasets.opseval.judge import CRITERIA, read_points
from memeval.llm.contract import AnswerPrompt, ChatPrompt, JudgePrompt, NotePrompt, Prompt
from memeval.llm.memory_prompts import EntitiesPrompt
from memeval.llm.mock import MockModel
from memeval.llm.prompts import load_builtin
from memeval.records import Role


def reply(prompt: Prompt) -> str:
    return asyncio.run(MockModel().complete(prompt, role=Role.JUDGE)).text


def test_judgement_has_the_form_that_the_judge_reads() -> None:
    def judged(answer: str, max_tokens: int | None = None) -> str:
        return reply(
            JudgePrompt(
                "Which pet?", ("a cat", "Tofu"), answer, max_tokens, user_template="{answer}"
            )
        )

    assert '"label": "CORRECT"' in judged("It is called TOFU.")
    assert '"label": "WRONG"' in judged("a dog")
    assert (judged("tofu", 10), judged("a dog", 10)) == ("yes", "no")


def test_judges_of_benchmarks_read_the_reply() -> None:
    def judged(answer: str, template: str) -> str:
        return reply(
            JudgePrompt(
                "Which pet?", ("a cat",), answer, system_text=template, user_template="{answer}"
            )
        )

    templates = [
        load_builtin("judge_opseval", "memeval.datasets.opseval").system,
        load_builtin(
            "judge_memory_agent_bench_summary", "memeval.datasets.memory_agent_bench"
        ).system,
    ]
    assert read_points(judged("a cat", templates[0])) == dict.fromkeys(CRITERIA, 3)
    assert read_points(judged("a dog", templates[0])) == dict.fromkeys(CRITERIA, 0)
    assert read_counts(judged("a cat", templates[1])) == (1, 1, 1, 1, 1)
    assert read_counts(judged("a dog", templates[1])) == (1, 0, 1, 0, 1)


def test_judgement_uses_the_words_that_are_asked_for() -> None:
    asked = JudgePrompt(
        "Yes?", ("a cat",), "yes, a cat", 10, user_template="{answer}", words=("right", "wrong")
    )
    assert reply(asked) == "right"


def test_other_prompts_are_answered_as_by_the_offline_model() -> None:
    assert "Tofu" in reply(
        AnswerPrompt("What is the cat called?", ("Ann: My cat is called Tofu.",))
    )
    assert reply(ChatPrompt(({"role": "user", "content": "Extract facts."},))) == "{}"


def test_each_new_message_of_mem0_is_a_memory() -> None:
    text = "## Last\n[]\n\n## New Messages\nuser: Ann: Tofu: a cat.\n\n## Observation Date"
    asked = ChatPrompt(
        (
            {"role": "system", "content": "## New Messages\nare new\n\n## "},
            {"role": "user", "content": text},
        )
    )
    assert json.loads(reply(asked)) == {"memory": [{"text": "Ann: Tofu: a cat."}]}


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": [{"text": "Hello"}]}])
def test_the_content_of_a_message_need_not_be_a_string(content: dict[str, Any]) -> None:
    """A message with tool calls may have none, and one with a picture has a list."""
    assert reply(ChatPrompt(({"role": "assistant", "tool_calls": [], **content},))) == "{}"


def test_the_entities_of_a_turn_are_its_capitalised_words() -> None:
    asked = EntitiesPrompt(text="Ann: Tofu is in Brno.", system_text="", user_template="{text}")
    assert json.loads(reply(asked)) == ["Ann", "Tofu", "Brno"]


def test_the_notes_on_a_chunk_are_the_chunk() -> None:
    asked = NotePrompt("Which pet?", "Ann: My cat is called Tofu.", None, user_template="{text}")
    assert reply(asked) == "Ann: My cat is called Tofu."
