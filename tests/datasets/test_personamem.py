"""PersonaMem's schema, on invented rows. Its real files have never been read."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from sample_records import record, verdict

from memeval.datasets.fetch import fetch
from memeval.datasets.locate import build
from memeval.datasets.personamem.adapter import PersonaMem, official_accuracy
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.judges.accuracy import AccuracyJudge
from memeval.records import ChoiceLabels, Label, Status

PERSONAMEM = DATASETS["personamem"]

OPTIONS = ["(a) Tea, as ever.", "(b) Coffee: you gave up tea.", "(c) Water.", "(d) I can't tell."]
TALK = [
    ("system", "Current user persona: Ola, 30."),
    ("user", "User: I drink tea all day."),
    ("assistant", "Assistant: A fine habit."),
    ("system", "Current user persona: Ola, 31."),
    ("user", "User: I gave up tea for coffee."),
]


def row(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A valid row except for the changes; a change to `None` leaves the column out."""
    fields = {
        "persona_id": 0,
        "question_id": f"q-{number}",
        "question_type": "track_full_preference_evolution",
        "topic": "food",
        "user_question_or_message": "What shall I drink?",
        "correct_answer": "(b)",
        "all_options": repr(OPTIONS),
        "shared_context_id": "talk",
        "end_index_in_shared_context": 5,
    } | changes
    return {name: value for name, value in fields.items() if value is not None}


def messages(talk: Sequence[tuple[Any, Any]] = TALK) -> list[dict[str, Any]]:
    return [{"role": role, "content": text} for role, text in talk]


def personamem(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    contexts: Sequence[Any] | None = None,
    **settings: Any,
) -> PersonaMem:
    """Writes these rows and conversations to a folder; returns the data set."""
    table = io.StringIO()
    writer = csv.DictWriter(table, dict.fromkeys(name for one in rows for name in one))
    writer.writeheader()
    writer.writerows(rows)
    (folder / "questions_32k.csv").write_text(table.getvalue(), encoding="utf-8", newline="")
    lines = [{"talk": messages()}] if contexts is None else contexts
    (folder / "shared_contexts_32k.jsonl").write_text(
        "".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8"
    )
    dataset = build("personamem", folder, path=str(folder), **settings)
    assert isinstance(dataset, PersonaMem)
    return dataset


def test_row_becomes_a_question_with_lettered_choices(tmp_path: Path) -> None:
    dataset = personamem(tmp_path, [row()])
    assert not dataset.open().pinned
    (case,) = dataset.read()
    (question,) = case.questions
    assert question.question_id == "q-1"
    assert question.text == "What shall I drink?"
    assert question.choices == (
        "Tea, as ever.",
        "Coffee: you gave up tea.",
        "Water.",
        "I can't tell.",
    )
    assert question.right_choices == (1,)
    assert question.gold == ("Coffee: you gave up tea.",)
    assert question.choice_labels is ChoiceLabels.LETTERS
    assert question.category == "track_full_preference_evolution"
    assert question.facets == {"topic": "food"}
    assert question.evidence == ()


def test_a_system_message_begins_a_session(tmp_path: Path) -> None:
    (case,) = personamem(tmp_path, [row()]).read()
    assert [[turn.speaker for turn in session.turns] for session in case.sessions] == [
        ["system", "user", "assistant"],
        ["system", "user"],
    ]
    assert case.sessions[1].turns[1].text == "User: I gave up tea for coffee."
    assert case.sessions[1].turns[1].turn_id == "s2:2"


def test_persona_false_leaves_out_system_messages(tmp_path: Path) -> None:
    (case,) = personamem(tmp_path, [row()], persona=False).read()
    speakers = [turn.speaker for session in case.sessions for turn in session.turns]
    assert speakers == ["user", "assistant", "user"]


def test_question_sees_the_conversation_up_to_its_end_index(tmp_path: Path) -> None:
    rows = [row(1, end_index_in_shared_context=3), row(2), row(3, end_index_in_shared_context=3)]
    cases = list(personamem(tmp_path, rows).read())
    shown = [
        (
            case.case_id,
            [question.question_id for question in case.questions],
            sum(len(session.turns) for session in case.sessions),
        )
        for case in cases
    ]
    assert shown == [("c1", ["q-1", "q-3"], 3), ("c2", ["q-2"], 5)]


def test_end_index_beyond_the_conversation_is_counted(tmp_path: Path) -> None:
    dataset = personamem(tmp_path, [row(1), row(2, end_index_in_shared_context=99)])
    assert len(list(dataset.read())) == 2
    (note,) = dataset.notes()
    assert note.startswith("context: 1 of 2 questions are asked after the end")


def test_duplicate_choices_count_as_one(tmp_path: Path) -> None:
    options = "['(a) tea', '(b) milk', '(c) tea', '(d) rum']"
    rows = [row(1), row(2, all_options=options, correct_answer="(c)")]
    dataset = personamem(tmp_path, rows)
    questions = [question for case in dataset.read() for question in case.questions]
    assert questions[1].right_choices == (2,)
    (note,) = dataset.notes()
    assert note.startswith("choices: 1 of 2 questions list a choice twice")

    for reply, right in (("(a)", True), ("(c)", True), ("(b)", False)):
        verdict = asyncio.run(AccuracyJudge().judge(questions[1], reply, {}))
        assert (verdict.label is Label.CORRECT) is right, reply


def test_options_as_json_a_backslash_and_an_apostrophe_are_read(tmp_path: Path) -> None:
    # The file has \d here, an invalid escape that Python warns about.
    options = '["(a) It\'s 3.", "(b) C:\\data", "(c) x", "(d) y"]'
    (case,) = personamem(tmp_path, [row(all_options=options)]).read()
    assert case.questions[0].choices == ("It's 3.", "C:\\data", "x", "y")


def test_instruction_can_be_left_out(tmp_path: Path) -> None:
    (case,) = personamem(tmp_path, [row()], instruction=False).read()
    assert case.questions[0].instruction == ""


def test_each_size_has_its_own_files(tmp_path: Path) -> None:
    dataset = personamem(tmp_path, [row()], size="1m")
    assert dataset.expected_counts() == {"questions": 2_674}
    demo = build("demo_personamem", tmp_path)
    assert demo.expected_counts() == demo.info.counts
    with pytest.raises(UserError, match=r"questions_1M\.csv is missing"):
        dataset.open()


def test_a_reply_without_a_choice_is_wrong_in_the_official_figure() -> None:
    right = verdict(Label.CORRECT, chosen=(1,))
    rows = [
        record(choices=("a", "b"), right_choices=(1,), verdict=right),
        record(choices=("a", "b"), right_choices=(1,), status=Status.UNPARSED),
        record(choices=("a", "b"), right_choices=(1,), status=Status.ANSWER_FAILED),
    ]
    assert official_accuracy(rows) == 0.5
    assert official_accuracy([]) is None


def test_fetch_names_the_manual_download(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        fetch(PERSONAMEM, tmp_path)

    assert "bowen-upenn/PersonaMem-v1" in caught.value.hints[0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(shared_context_id=None)], "line 1: column 'shared_context_id' is missing"),
        ([row(), row()], "line 3: field 'question_id' is 'q-1', which occurs twice"),
        ([row(question_id=" ")], "line 2: field 'question_id' is empty"),
        ([row(user_question_or_message="")], "field 'user_question_or_message' is empty"),
        ([row(question_type="")], "field 'question_type' is empty"),
        ([row(topic="")], "field 'topic' is empty"),
        ([row(correct_answer="(e)")], "field 'correct_answer' is '(e)', not the letter of an"),
        ([row(correct_answer="b or c")], "field 'correct_answer' is 'b or c', not the letter"),
        ([row(all_options="(a) x")], "field 'all_options' is '(a) x', not a list"),
        ([row(all_options="[" * 300)], "field 'all_options' is"),
        ([row(all_options="__import__('os')")], "field 'all_options' is"),
        ([row(all_options="['(a) x']")], "field 'all_options' has 1 options, not 2 to 26"),
        ([row(all_options="['(a) x', 'y']")], "contains 'y' instead of '(b) …'"),
        ([row(all_options="['(a) x', '(c) y']")], "contains '(c) y' instead of '(b) …'"),
        ([row(all_options="['(a) x', '(b) ']")], "contains '(b)' instead of '(b) …'"),
        ([row(all_options="['(a) x', 3]")], "contains '3' instead of '(b) …'"),
        ([row(end_index_in_shared_context=0)], "is '0', not a number of messages, 1 or more"),
        ([row(end_index_in_shared_context=-1)], "is '-1', not a number of messages, 1 or more"),
        ([row(end_index_in_shared_context="1.5")], "is '1.5', not a number of messages, 1 or more"),
        (
            [row(shared_context_id="other")],
            "is 'other', which shared_contexts_32k.jsonl does not have",
        ),
    ],
)
def test_a_wrong_row_is_named_with_its_place(
    rows: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        list(personamem(tmp_path, rows).read())

    assert "questions_32k.csv" in caught.value.message and message in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        ([], "contains no conversations"),
        ([[]], "line 1 is a list, not an object"),
        (
            [{"talk": messages(), "other": []}],
            "line 1 must map one id to its conversation, but has 2",
        ),
        ([{"talk": messages()}, {"talk": []}], "line 2: conversation 'talk' occurs twice"),
        ([{"talk": "hello"}], "line 1: field 'talk' is a string, not a list"),
        ([{"talk": ["hello"]}], "line 1[0] is a string, not an object"),
        ([{"talk": messages([("tool", "x")])}], "line 1[0]: field 'role' is 'tool', not one of"),
        ([{"talk": messages([("user", 3)])}], "line 1[0]: field 'content' is an integer"),
        ([{"talk": [{"role": "user"}]}], "line 1[0]: field 'content' is missing"),
        ([{"talk": messages([("user", "\ud800")])}], "a lone surrogate"),
    ],
)
def test_a_wrong_conversation_is_named_with_its_place(
    contexts: list[Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        list(personamem(tmp_path, [row()], contexts).read())

    assert "shared_contexts_32k.jsonl" in caught.value.message and message in caught.value.message
    assert "\n" not in caught.value.message


def test_a_conversation_that_is_cut_off_is_named_by_its_line(tmp_path: Path) -> None:
    dataset = personamem(tmp_path, [row()])
    path = tmp_path / "shared_contexts_32k.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"shared_contexts_32k\.jsonl: line 1 is not JSON"):
        list(dataset.read())
