"""A template's messages: names are filled in in both parts, and an empty part is not sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memeval.llm.contract import AnswerPrompt, JudgePrompt, Message, Prompt, ToolPrompt
from memeval.llm.prompts import from_file, sections_from_file


def answer(system: str, user: str) -> Prompt:
    return AnswerPrompt("Who?", ("Ana {x}",), system_text=system, user_template=user)


def judgement(system: str, user: str) -> Prompt:
    return JudgePrompt("Who?", ("Ana {x}",), "Ana", system_text=system, user_template=user)


@pytest.mark.parametrize(("name", "make"), [("context", answer), ("gold", judgement)])
def test_names_are_filled_in_in_the_system_message_too(
    tmp_path: Path, name: str, make: Callable[[str, str], Prompt]
) -> None:
    file = tmp_path / "template.txt"
    file.write_text(f"Use {{{name}}}.\n---\n{{question}}", encoding="utf-8")
    template = from_file(str(file), ("question", name))

    assert make(template.system, template.user).messages() == [
        {"role": "system", "content": "Use Ana {x}."},
        {"role": "user", "content": "Who?"},
    ]


def test_mark_of_the_encoding_is_not_part_of_a_template(tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain.txt", tmp_path / "marked.txt"
    plain.write_text("=== fact ===\n{question}", encoding="utf-8")
    marked.write_text("=== fact ===\n{question}", encoding="utf-8-sig")
    parts = sections_from_file(str(marked), ("fact",), ("question",)).parts

    assert parts == sections_from_file(str(plain), ("fact",), ("question",)).parts
    assert from_file(str(marked), ()).sha256 == from_file(str(plain), ()).sha256


@pytest.mark.parametrize("make", [answer, judgement])
def test_template_of_one_part_sends_no_system_message(make: Callable[[str, str], Prompt]) -> None:
    asked: list[Message] = [{"role": "user", "content": "Who?"}]
    assert make("", "{question}").messages() == asked


def test_tools_without_instructions_send_no_system_message() -> None:
    asked = AnswerPrompt("Who?", (), user_template="{question}")
    prompt = ToolPrompt(asked, instructions="", tools=())
    assert prompt.messages() == [{"role": "user", "content": "Who?"}]
