"""`prompt=con`: notes on each chunk, and an answer based on the notes."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest

from memeval.errors import UserError
from memeval.llm.contract import AnswerPrompt, Completion, NotePrompt, Prompt
from memeval.llm.prompts import load_builtin
from memeval.pipeline.execute.reader import CellReader
from memeval.pipeline.open.cell_prompts import Templates
from memeval.pipeline.open.opening import open_cell
from memeval.records import Query, Role, Usage
from memeval.runs.compose.config import compose_config


class Noting:
    """A model that notes chunks that contain a word, and answers with the number of chunks
    shown.
    """

    sends_messages = True

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt, *, role: Role, seed: int) -> Completion:
        self.prompts.append(prompt)
        if isinstance(prompt, NotePrompt):
            text = f"note: {prompt.text}" if "tea" in prompt.text else "(nothing)"
        else:
            assert isinstance(prompt, AnswerPrompt)
            text = f"thinking\nAnswer: {len(prompt.context)}"

        usage = Usage(
            role=role, model="m", provider="offline", prompt_tokens=1, completion_tokens=1
        )
        return Completion(text, usage, 0.0)


def reader(model: Noting, *, noting: bool) -> CellReader:
    note = load_builtin("con_note") if noting else None
    templates = Templates(load_builtin("answer_con"), note=note)
    return CellReader(model, templates, "con", 0)  # type: ignore[arg-type]


def test_answer_is_based_on_notes_on_each_chunk() -> None:
    model = Noting()
    query = Query("What does Ann drink?", asked_at=datetime(2024, 5, 8, 13, 56))
    reply = asyncio.run(reader(model, noting=True).answer(query, ["a: tea", "b: rain", "c: tea"]))

    *notes, answer = model.prompts
    assert [prompt.text for prompt in notes if isinstance(prompt, NotePrompt)] == [
        "a: tea",
        "b: rain",
        "c: tea",
    ]
    assert isinstance(answer, AnswerPrompt)
    assert answer.context == ("note: a: tea", "note: c: tea")
    assert (reply.text, reply.context_tokens) == ("2", 9)

    sent = notes[0].messages()[1]["content"]
    assert "What does Ann drink?" in sent and "1:56 pm on 8 May 2024" in sent


def test_chunks_are_shown_if_notes_are_off() -> None:
    model = Noting()
    asyncio.run(reader(model, noting=False).answer(Query("?"), ["a", "b"]))
    (answer,) = model.prompts
    assert isinstance(answer, AnswerPrompt) and answer.context == ("a", "b")


def test_choices_are_answered_from_chunks_without_notes() -> None:
    model = Noting()
    with pytest.raises(AssertionError):  # the double answers no such prompt
        asyncio.run(reader(model, noting=True).answer(Query("?", choices=("x", "y")), ["tea"]))

    assert len(model.prompts) == 1


def test_notes_are_part_of_the_identity_and_need_a_model() -> None:
    cot = open_cell(compose_config(["tracking=none", *["prompt=cot", "llm=mock"]]), "")
    con = open_cell(compose_config(["tracking=none", *["prompt=con", "llm=mock"]]), "")
    assert cot.templates.note is None
    assert con.templates.note is not None
    assert con.templates.note.sha256 in str(con.identity.digests)
    assert con.templates.answer.name == "answer_con"

    with pytest.raises(UserError, match="prompt=con needs a language model"):
        open_cell(compose_config(["tracking=none", *["prompt=con"]]), "")
