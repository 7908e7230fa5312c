from __future__ import annotations

import json
from datetime import datetime
from itertools import islice
from pathlib import Path

import pytest
from longmemeval_samples import SEA, TEA, item, opened, write

from memeval.config.schema import GranularityConfig
from memeval.datasets.contract import Dataset
from memeval.datasets.granularity import chunks
from memeval.datasets.locate import build
from memeval.datasets.longmemeval.schema import ABILITIES, parse_date
from memeval.records import EvalCase


def only(folder: Path, **changed: object) -> EvalCase:
    (case,) = opened(write(folder, item(**changed))).cases()
    return case


def test_an_item_becomes_a_case_with_one_question(tmp_path: Path) -> None:
    case = only(tmp_path)
    (question,) = case.questions
    assert (question.question_id, question.text, question.gold) == (
        "q1",
        "What did I sell?",
        ("the teapot",),
    )
    assert (question.category, question.facets, question.answerable) == (
        "multi-session",
        {"ability": "MR"},
        True,
    )
    assert question.asked_at == datetime(2023, 5, 30, 23, 40)
    assert question.evidence == ("s2:1",)
    assert [session.started_at for session in case.sessions] == [
        datetime(2023, 5, 30, 9),
        datetime(2023, 5, 30, 18, 5),
    ]
    assert [
        (turn.turn_id, turn.speaker, turn.text, turn.time) for turn in case.sessions[1].turns
    ] == [
        ("s2:1", "user", "I sold the teapot.", datetime(2023, 5, 30, 18, 5)),
        ("s2:2", "assistant", "For how much?", datetime(2023, 5, 30, 18, 5)),
        ("s2:3", "user", "For nine pounds.", datetime(2023, 5, 30, 18, 5)),
    ]


def test_simultaneous_sessions_keep_the_order_of_the_file(tmp_path: Path) -> None:
    case = only(tmp_path, haystack_dates=["2023/05/30 (Tue) 09:00"] * 2)
    assert [len(session.turns) for session in case.sessions] == [3, 2]


def test_ids_seen_by_systems_reveal_nothing(tmp_path: Path) -> None:
    path = write(
        tmp_path, item(), item(question_id="gpt4_2_abs", question_type="temporal-reasoning")
    )
    first, second = opened(path).cases()
    seen = [case.case_id for case in (first, second)] + [
        session.session_id for session in second.sessions
    ]
    seen += [turn.turn_id for session in second.sessions for turn in session.turns]
    assert seen == ["h0", "h1", "s1", "s2", "s1:1", "s1:2", "s2:1", "s2:2", "s2:3"]
    assert second.questions[0].question_id == "gpt4_2_abs"


@pytest.mark.parametrize(("kind", "ability"), ABILITIES.items())
def test_question_type_and_id_give_the_ability(tmp_path: Path, kind: str, ability: str) -> None:
    assert only(tmp_path, question_type=kind).questions[0].facets == {"ability": ability}
    abstaining = only(tmp_path, question_type=kind, question_id="q1_abs").questions[0]
    assert (abstaining.facets, abstaining.category, abstaining.answerable) == (
        {"ability": "ABS"},
        kind,
        False,
    )


def test_a_question_without_an_answer_keeps_its_explanation(tmp_path: Path) -> None:
    sessions = [
        [{key: value for key, value in turn.items() if key != "has_answer"} for turn in TEA],
        SEA,
    ]
    path = write(
        tmp_path, item(question_id="q1_abs", answer="You sold no car.", haystack_sessions=sessions)
    )
    dataset = opened(path)
    (case,) = dataset.cases()
    assert (case.questions[0].gold, case.questions[0].evidence) == (("You sold no car.",), ())
    assert dataset.notes() == (
        "evidence: 1 of 1 questions flag no remembered turn, and do not count in retrieval metrics",
    )


def test_a_flag_that_an_export_wrote_as_null_is_not_set(tmp_path: Path) -> None:
    sessions = [[{**turn, "has_answer": turn.get("has_answer")} for turn in TEA], SEA]
    with_null = only(tmp_path, haystack_sessions=sessions)
    assert with_null.questions[0].evidence == only(tmp_path).questions[0].evidence


def test_integer_answer_becomes_a_string(tmp_path: Path) -> None:
    assert only(tmp_path, answer=5).questions[0].gold == ("5",)


def test_repeated_sessions_and_early_questions_are_noted(tmp_path: Path) -> None:
    path = write(
        tmp_path, item(haystack_session_ids=["sea", "sea"], question_date="2023/05/30 (Tue) 12:00")
    )
    dataset = opened(path)
    (case,) = dataset.cases()
    assert [session.session_id for session in case.sessions] == ["s1", "s2"]
    assert dataset.notes() == (
        "time: 1 of 1 questions are asked before a session of their history; it is remembered "
        "anyway",
        "sessions: 1 histories repeat a session; each is a session of its own",
    )


def test_roles_user_drops_the_assistant_and_keeps_turn_numbers(tmp_path: Path) -> None:
    said = [{"role": "assistant", "content": "Welcome back.", "has_answer": True}]
    path = write(tmp_path, item(haystack_sessions=[TEA, said]))
    dataset = opened(path, roles="user")
    (case,) = dataset.cases()
    assert [[turn.turn_id for turn in session.turns] for session in case.sessions] == [
        [],
        ["s2:1", "s2:3"],
    ]
    assert case.questions[0].evidence == ("s2:1",)
    assert dataset.notes() == ("sessions: 1 hold no turn of dataset.roles=user",)
    named, plain = (
        chunks(case, GranularityConfig("session", speakers=speakers)) for speakers in (True, False)
    )
    assert [unit.content for unit in named] == ["user: I sold the teapot.\nuser: For nine pounds."]
    assert [unit.content for unit in plain] == ["", "I sold the teapot. For nine pounds."]
    assert "round" not in dataset.granularities and "round" in opened(path).granularities


def test_a_round_ends_with_the_reply(tmp_path: Path) -> None:
    units = chunks(only(tmp_path), GranularityConfig("round"))
    assert [unit.turn_ids for unit in units] == [("s1:1", "s1:2"), ("s2:1", "s2:2"), ("s2:3",)]


def test_empty_history_is_accepted_for_an_abstention_item(tmp_path: Path) -> None:
    empty = {"haystack_sessions": [], "haystack_dates": [], "haystack_session_ids": []}
    assert only(tmp_path, question_id="q1_abs", **empty).sessions == ()


def test_items_are_read_one_at_a_time(tmp_path: Path) -> None:
    """What follows an item is not read before it is needed."""
    path = tmp_path / "longmemeval.json"
    filler = [item(question_id=f"q{number}", question="x" * 10_000) for number in range(100)]
    path.write_text(json.dumps(filler)[:-1] + ", never closed", encoding="utf-8")
    dataset = opened(path)
    assert [case.questions[0].question_id for case in islice(dataset.cases(), 3)] == [
        "q0",
        "q1",
        "q2",
    ]
    dataset = opened(path, limit_cases=5)
    assert len(list(dataset.cases())) == 5


def test_categories_select_cases_without_renumbering_them(tmp_path: Path) -> None:
    path = write(tmp_path, item(), item(question_id="q2", question_type="knowledge-update"))
    assert [case.case_id for case in opened(path, categories=("knowledge-update",)).cases()] == [
        "h1"
    ]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2023/05/30 (Tue) 23:40", datetime(2023, 5, 30, 23, 40)),
        (" 2022/01/02 (Sun) 00:05 ", datetime(2022, 1, 2, 0, 5)),
        ("2023/02/30 (Thu) 10:00", None),
        ("2023-05-30 23:40", None),
        ("30/05/2023 (Tue) 23:40", None),
        ("", None),
    ],
)
def test_parse_date_reads_only_the_official_format(text: str, time: datetime | None) -> None:
    assert parse_date(text) == time


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = write(tmp_path, item())
    path.write_bytes(b"\xef\xbb\xbf\n " + path.read_bytes())
    assert len(list(opened(path).cases())) == 1


def test_the_demo_set_has_every_type(tmp_path: Path) -> None:
    dataset: Dataset = build("demo_longmemeval", tmp_path)
    assert dataset.open().pinned
    questions = [case.questions[0] for case in dataset.cases()]
    assert {question.category for question in questions} == set(ABILITIES)
    assert [question.question_id for question in questions if not question.answerable] == [
        "demo_ssu_2_abs",
        "demo_tr_2_abs",
    ]
    assert all(bool(question.evidence) == question.answerable for question in questions)
    assert [len(case.sessions) for case in dataset.cases()] == [3, 3, 3, 4, 4, 4, 3, 3]
