"""LoCoMo-MC10: rows become questions, and each conversation becomes a case."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from mc10_samples import CHOICES, mc10, original, row, write_original, write_rows

from memeval.datasets.io import lines
from memeval.datasets.locate import build
from memeval.datasets.locomo_mc10.evidence import Evidence
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.judges.registry import applicable_judges
from memeval.records import EvalCase, EvalQuestion


@pytest.fixture(autouse=True)
def _no_other_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps other data away: LoCoMo's file is looked up in the data folder, too."""
    monkeypatch.setenv("MEMEVAL_DATA_DIR", str(tmp_path))


def read(folder: Path, rows: list[dict[str, Any] | str], **settings: Any) -> list[EvalCase]:
    write_rows(folder, rows)
    return list(mc10(folder, **settings).cases())


def failure(folder: Path, *rows: dict[str, Any] | str) -> str:
    path = write_rows(folder, list(rows))
    with pytest.raises(UserError) as caught:
        list(mc10(folder).read())
    assert str(caught.value).startswith(f"{path}: ") or str(caught.value).startswith(f"{path} ")
    return str(caught.value).removeprefix(f"{path}: ")


def test_a_row_becomes_a_question_and_its_haystack_a_case(tmp_path: Path) -> None:
    (case,) = read(tmp_path, [row()])
    assert (case.case_id, case.speakers) == ("conv-1", ("Ann", "Bob"))
    first = case.sessions[0]
    assert next((turn.turn_id, turn.speaker, turn.text) for turn in first.turns) == (
        "D1:1",
        "Ann",
        "I went to Oslo yesterday.",
    )
    assert (first.session_id, first.started_at, first.turns[2].time) == (
        "s1",
        datetime(2023, 5, 8, 13, 56),
        datetime(2023, 5, 8, 13, 56),
    )
    assert [turn.turn_id for turn in case.sessions[1].turns] == ["D2:1", "D2:2"]
    assert case.questions == (
        EvalQuestion(
            question_id="conv-1_q0",
            text="Where did Ann go?",
            category=4,
            gold=("Oslo",),
            choices=tuple(CHOICES),
            right_choices=(0,),
        ),
    )


@pytest.mark.parametrize(
    ("kind", "category"),
    [
        ("single_hop", 1),
        ("multi_hop", 2),
        ("temporal_reasoning", 3),
        ("open_domain", 4),
        ("adversarial", 5),
    ],
)
def test_question_types_are_mapped_to_locomos_categories(
    tmp_path: Path, kind: str, category: int
) -> None:
    (case,) = read(tmp_path, [row(question_type=kind)])
    (question,) = case.questions
    assert (question.category, question.answerable, question.gold) == (
        category,
        category != 5,
        () if category == 5 else ("Oslo",),
    )
    names = [
        mc10(tmp_path, category_names=naming).category_names[category]
        for naming in ("mc10", "official")
    ]
    assert (names[0] == kind and names[1] != kind) or category == 5
    assert mc10(tmp_path).headline == {1, 2, 3, 4}


def test_rows_of_a_conversation_are_one_case_and_read_lazily(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    def counted(path: Path) -> Iterator[Any]:
        for fields in real(path):
            taken.append(fields.values["question_id"])
            yield fields

    real = lines.read_lines
    monkeypatch.setattr("memeval.datasets.locomo_mc10.adapter.read_lines", counted)
    ids = ["a_q0", "a_q1", "b_q0", "c_q0", "c_q5", "c_q7"]
    write_rows(tmp_path, [row(one) for one in ids])
    cases = mc10(tmp_path).read()
    assert [question.question_id for question in next(cases).questions] == ids[:2]
    assert taken == ids[:3]
    assert [(case.case_id, len(case.questions)) for case in cases] == [("b", 1), ("c", 3)]


def test_blank_lines_and_a_byte_order_mark_do_no_harm(tmp_path: Path) -> None:
    (case,) = read(tmp_path, ["\ufeff" + json.dumps(row()), "", json.dumps(row("conv-1_q1"))])
    assert len(case.questions) == 2


def test_turn_without_a_name_has_its_role_as_speaker(tmp_path: Path) -> None:
    talk = [
        [
            {"role": "user", "content": "Hi [ANN]: there"},
            {"role": "assistant", "content": "[BOB LEE]: one\n[x]: two"},
        ]
    ]
    (case,) = read(
        tmp_path,
        [
            row(
                haystack_sessions=talk,
                haystack_session_ids=["session_3"],
                haystack_session_datetimes=["2023-05-08"],
                num_sessions=1,
            )
        ],
    )
    assert [(turn.turn_id, turn.speaker, turn.text) for turn in case.sessions[0].turns] == [
        ("D3:1", "user", "Hi [ANN]: there"),
        ("D3:2", "Bob Lee", "one\n[x]: two"),
    ]


def test_shuffled_choices_depend_only_on_seed_and_question(tmp_path: Path) -> None:
    rows: list[dict[str, Any] | str] = [row(f"conv-1_q{index}") for index in range(40)]
    (given,) = read(tmp_path, rows)
    (first,), (again,), (other,) = (
        read(tmp_path, rows, choice_order="shuffled", choice_seed=seed) for seed in (0, 0, 1)
    )
    (alone,) = read(tmp_path, [rows[7]], choice_order="shuffled")
    assert first == again != other
    assert alone.questions[0] == first.questions[7]
    for question, before in zip(first.questions, given.questions, strict=True):
        assert sorted(question.choices) == sorted(before.choices)
        assert [question.choices[place] for place in question.right_choices] == ["Oslo"]
    assert len({question.right_choices for question in first.questions}) > 5


def test_evidence_is_joined_by_place(tmp_path: Path) -> None:
    demo = build("demo_locomo_mc10", tmp_path)
    found = {
        question.question_id: question.evidence
        for case in demo.cases()
        for question in case.questions
    }
    assert found["demo-1_q0"] == ("D1:6",) and found["demo-2_q20"] == ("D2:10",)
    assert demo.notes() == ("evidence: 10 of 10 questions have theirs from demo.json, by position",)


def test_evidence_is_joined_only_to_the_same_question_of_the_same_turns(tmp_path: Path) -> None:
    (case,) = read(tmp_path, [row(), row("conv-1_q1"), row("conv-1_q2")])
    same, other, _ = case.questions
    same = replace(same, text="where did  ANN go?", evidence=("D1:1", "D9:1"))
    origin = replace(case, questions=(same, replace(other, text="Why?", evidence=("D1:2",))))
    cut = replace(case.sessions[0], turns=case.sessions[0].turns[1:])
    moved = replace(case, sessions=(cut, *case.sessions[1:]))

    evidence = Evidence({"conv-1": origin}, "locomo10.json")
    joined = evidence.join(case)
    assert [question.evidence for question in joined.questions] == [("D1:1",), (), ()]
    assert evidence.join(moved) is moved
    assert evidence.note() == (
        "evidence: 1 of 6 questions have theirs from locomo10.json, by position; 2 are other "
        "questions there; 3 are in conversations whose turns differ"
    )


def test_without_the_registered_locomo_there_is_no_evidence(tmp_path: Path) -> None:
    (case,) = read(tmp_path, [row()])
    assert case.questions[0].evidence == ()
    assert (
        "evidence: none, since locomo10.json is missing; retrieval is not measured"
        in mc10(tmp_path).open().notes
    )
    write_original(tmp_path, [original()])
    assert (
        "evidence: none, since locomo10.json is not the registered file; retrieval is not measured"
        in mc10(tmp_path).open().notes
    )


def test_unregistered_file_is_identified_by_its_sha256(tmp_path: Path) -> None:
    write_rows(tmp_path, [row()])
    adapter = mc10(tmp_path)
    opened = adapter.open()
    assert not opened.pinned and not opened.derived
    assert opened.file_sha256 == hashlib.sha256(adapter.path.read_bytes()).hexdigest()


def test_duplicate_choices_are_noted(tmp_path: Path) -> None:
    write_rows(tmp_path, [row(choices=[*CHOICES[:9], "Rome"]), row("conv-1_q1")])
    adapter = mc10(tmp_path)
    list(adapter.cases())
    assert adapter.notes() == (
        "choices: 1 of 2 questions list a choice twice; both positions count as the same answer",
    )


def test_missing_file_says_how_to_get_or_derive_it(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        mc10(tmp_path).open()
    assert "data set 'locomo_mc10' is not on this machine" in caught.value.message
    assert [hint.split(":")[0] for hint in caught.value.hints] == [
        "get it",
        "or derive one from LoCoMo",
        "or offline",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"choices": None}, "field 'choices' is missing."),
        ({"choices": "Oslo"}, "field 'choices' is a string, not a list."),
        ({"choices": ["Oslo"]}, "field 'choices' has 1 entries, not 2 to 10."),
        ({"choices": [*CHOICES, "Nice"]}, "field 'choices' has 11 entries, not 2 to 10."),
        ({"choices": [*CHOICES[:9], " "]}, "field 'choices' contains an empty choice."),
        ({"num_choices": 9}, "field 'num_choices' is 9, but there are 10."),
        ({"num_sessions": 3}, "field 'num_sessions' is 3, but there are 2."),
        (
            {"correct_choice_index": 10},
            "field 'correct_choice_index' is 10, but there are 10 choices.",
        ),
        (
            {"correct_choice_index": "0"},
            "field 'correct_choice_index' is a string, not an integer.",
        ),
        (
            {"correct_choice_index": 1},
            "field 'answer' is 'Oslo', but correct_choice_index=1 points at 'Rome'.",
        ),
        ({"question_type": "temporal"}, "field 'question_type' is 'temporal', not one of"),
        (
            {"haystack_session_ids": ["session_2", "session_1"]},
            "field 'haystack_session_ids' must be sorted by number",
        ),
        (
            {"haystack_session_ids": ["s1", "s2"]},
            "field 'haystack_session_ids' contains 's1', which is not an id such as session_1.",
        ),
        (
            {"haystack_session_datetimes": ["8 May", "x"]},
            "field 'haystack_session_datetimes[0]' is '8 May', not a date like",
        ),
        (
            {"haystack_sessions": [[]]},
            "field 'haystack_sessions' has 1 entries, but haystack_session_ids has 2.",
        ),
        (
            {"haystack_sessions": [[], 5]},
            "field 'haystack_sessions[1]' is an integer, not a list.",
        ),
    ],
)
def test_invalid_row_is_named_by_line_question_and_field(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    assert failure(tmp_path, row(), row("conv-2_q0", **changes)).startswith(
        f"line 2, conv-2_q0: {message}"
    )


def test_invalid_turn_is_named_by_its_position(tmp_path: Path) -> None:
    bad = [[{"role": "user", "content": "x"}], [{"role": "system", "content": "x"}]]
    assert failure(tmp_path, row(haystack_sessions=bad)) == (
        "line 1, conv-1_q0 haystack_sessions[1][0]: field 'role' is 'system', not one of "
        "user, assistant."
    )


def test_invalid_ids_are_refused(tmp_path: Path) -> None:
    assert (
        failure(tmp_path, row("conv-1"))
        == "line 1: field 'question_id' is 'conv-1', not an id such as conv-26_q0."
    )
    assert "line 2, conv-1_q0: field 'question_id' is 'conv-1_q0', which occurs twice" in failure(
        tmp_path, row(), row()
    )
    message = failure(tmp_path, row("a_q0"), row("b_q0"), row("a_q1"))
    assert message == (
        "line 3, a_q1: field 'question_id' returns to 'a': the lines of a conversation must "
        "follow one another."
    )


def test_rows_of_a_conversation_must_share_a_haystack(tmp_path: Path) -> None:
    other = row(
        "conv-1_q1", haystack_session_datetimes=["2023-05-08T13:56:00", "2023-06-25T13:14:00"]
    )
    assert failure(tmp_path, row(), other).startswith(
        "line 2, conv-1_q1: field 'haystack_session_datetimes' differs from that of conv-1_q0"
    )


def test_damaged_file_is_refused_with_the_line(tmp_path: Path) -> None:
    cut = json.dumps(row("conv-1_q1"))[:200]
    assert "line 2 is not JSON" in failure(
        tmp_path, row(), cut
    ) and "the line ends there: is it cut off?" in failure(tmp_path, row(), cut)
    assert failure(tmp_path, "[1]") == "line 1 is a list, not an object."
    assert failure(tmp_path).endswith("contains no questions.")
    path = write_rows(tmp_path, [row()])
    path.write_bytes(path.read_bytes() + b'{"question_id": "\xff"}\n')
    with pytest.raises(UserError, match="line 2 is not UTF-8 text: byte 17 can't be decoded"):
        list(mc10(tmp_path).read())


def test_free_text_judges_do_not_apply() -> None:
    for name in ("locomo_mc10", "demo_locomo_mc10"):
        dataset = build(name, Path())
        assert list(applicable_judges(dataset.answers[0], dataset.benchmark)) == ["accuracy"]
        assert dataset.chooses
        assert DATASETS[name].licence
