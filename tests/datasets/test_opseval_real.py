"""The adapter on the published files: the protocol's counts, and every repair."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from memeval.datasets.fetch import verify
from memeval.datasets.locate import build
from memeval.datasets.opseval.adapter import OpsEval
from memeval.datasets.registry import DATASETS
from memeval.records import EvalQuestion

OPSEVAL = DATASETS["opseval"]

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def dataset(data_dir: Path) -> OpsEval:
    found = build("opseval", data_dir)
    assert isinstance(found, OpsEval) and found.open().pinned
    return found


@pytest.fixture(scope="module")
def questions(dataset: OpsEval) -> dict[str, EvalQuestion]:
    return {
        question.question_id: question for case in dataset.cases() for question in case.questions
    }


@pytest.mark.slow
def test_published_files_verify_as_registered(data_dir: Path) -> None:
    found = verify(OPSEVAL, data_dir)
    assert found.right and found.problems == () and len(found.repairs) == 60


@pytest.mark.slow
def test_counts_match_the_protocol(questions: dict[str, EvalQuestion]) -> None:
    kinds = Counter((question.category, question.facets["kind"]) for question in questions.values())
    assert len(questions) == 2_596
    assert (kinds["wired_network", "single"], kinds["wired_network", "multiple"]) == (1_262, 296)
    assert kinds["5g_communication", "single"] == 343
    assert kinds["oracle_database", "single"] + kinds["oracle_database", "multiple"] == 390


def test_two_log_rows_without_capital_letters_are_read_as_choices(
    data_dir: Path, questions: dict[str, EvalQuestion]
) -> None:
    rows = json.loads((data_dir / "opseval/test/Log Analysis.json").read_text(encoding="utf-8"))
    capitals = {row["id"] for row in rows if re.fullmatch("[A-Z]+", row["answer"])}
    choosing = {
        name
        for name, question in questions.items()
        if question.category == "log_analysis" and question.choices
    }
    assert (len(capitals), len(rows) - len(capitals)) == (142, 163)
    assert choosing - capitals == {"Log Analysis-212", "Log Analysis-289"} and capitals < choosing
    assert questions["Log Analysis-289"].right_choices == (0, 2)


def test_counts_by_language(questions: dict[str, EvalQuestion]) -> None:
    spoken = Counter(
        (question.category, question.facets["language"]) for question in questions.values()
    )
    assert (spoken["wired_network", "en"], spoken["wired_network", "zh"]) == (779, 779)
    assert (spoken["oracle_database", "en"], spoken["oracle_database", "zh"]) == (192, 198)
    assert spoken["5g_communication", "zh"] + spoken["log_analysis", "zh"] == 343 + 305


def test_first_tenth_and_last_row_of_wired_network(questions: dict[str, EvalQuestion]) -> None:
    wired = [question for question in questions.values() if question.category == "wired_network"]
    ids = sorted(
        (question.question_id for question in wired), key=lambda name: int(name.rpartition("-")[2])
    )
    first, tenth, last = (questions[ids[place]] for place in (0, 9, -1))
    assert (first.question_id, first.right_choices, first.multi_select) == (
        "Wired Network-5",
        (2, 3, 5),
        True,
    )
    assert (tenth.question_id, last.question_id) == ("Wired Network-14", "Wired Network-1562")


def test_every_choice_has_a_text_and_no_question_shows_its_choices_twice(
    questions: dict[str, EvalQuestion],
) -> None:
    choosing = [question for question in questions.values() if question.choices]
    assert len(choosing) == 1_558 + 343 + 390 + 144
    assert all(question.text and all(question.choices) for question in choosing)
    assert all(f"\nA: {question.choices[0]}" not in question.text for question in choosing)
    assert not [
        question.question_id
        for question in choosing
        if re.search(r"\n[\"(]*B\s*[.:)]", question.text)
    ]


def test_every_repair_is_listed(dataset: OpsEval, questions: dict[str, EvalQuestion]) -> None:
    repairs = list(dataset.repairs())
    signs = ("labels of choices", "cut off", "given A 正确", "read as")
    assert [sum(sign in repair for repair in repairs) for sign in signs] == [23, 15, 14, 8] and len(
        repairs
    ) == 60
    assert "Oracle Database-193: the answer 'D,E,F' of 5 choices read as D, E" in repairs
    assert [note.split(":")[1].split()[0] for note in dataset.notes()] == [
        "7",
        "1",
        "14",
        "23",
        "15",
    ]
    assert questions["Oracle Database-193"].right_choices == (3, 4)
    assert questions["5G Communication-138"].right_choices == (3,)
    assert questions["Oracle Database-259"].choices == (
        "UNION ALL",
        "MINUS",
        "INTERSECT",
        "SUBTRACT",
        "UNION",
    )
    assert (
        questions["Oracle Database-247"].choices[4]
        == "SELECT TO_CHAR(1890.55,'$99G999D99') FROM DUAL;"
    )
    assert not any("答案：" in question.text for question in questions.values())


@pytest.mark.slow
def test_no_item_has_its_own_solution_in_memory(data_dir: Path) -> None:
    found = build("opseval", data_dir, framing="knowledge")
    found.open()
    cases = list(found.read())
    rows = {
        row["id"]: row
        for row in json.loads(
            (data_dir / "opseval/test/Wired Network.json").read_text(encoding="utf-8")
        )
    }
    assert sorted(question.question_id for case in cases for question in case.questions) == sorted(
        rows
    )
    assert len(cases) == 10
    for case in cases:
        remembered = {turn.text for session in case.sessions for turn in session.turns}
        assert len({question.facets["language"] for question in case.questions}) == 1
        assert not remembered & {
            rows[question.question_id]["solution"].strip() for question in case.questions
        }
        assert len(remembered) > 500


@pytest.mark.slow
def test_the_runbook_of_each_item_is_in_memory(data_dir: Path) -> None:
    found = build("opseval", data_dir, framing="runbook")
    found.open()
    cases = list(found.read())
    others = list(build("opseval", data_dir, framing="knowledge").read())
    assert [[q.question_id for q in case.questions] for case in cases] == [
        [q.question_id for q in case.questions] for case in others
    ]
    assert all(question.evidence for case in cases for question in case.questions)
    assert sum(len(session.turns) for session in cases[0].sessions) == 779
    assert found.notes()[-1].endswith("choice letters are masked in 30 of 1558 solutions")


def test_counts_of_the_development_split(data_dir: Path) -> None:
    found = build("opseval", data_dir, split="dev")
    assert found.open().pinned
    kinds = Counter(
        (q.category, q.facets["kind"]) for case in found.cases() for q in case.questions
    )
    assert (
        kinds.total() == 20
        and kinds["wired_network", "multiple"] == 5
        and kinds["log_analysis", "free_text"] == 5
    )
