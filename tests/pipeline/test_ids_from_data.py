"""Ids and names from data never name a file: only the run's own files are touched."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from conftest_pipeline import Command, records

from memeval.errors import UserError
from memeval.pipeline.execute.repeat import take_ids
from memeval.pipeline.execute.turns import CaseTurns
from memeval.records import EvalCase, EvalQuestion, Session, Turn
from memeval.text.names import digest_name, file_name

HOSTILE = [
    "..",
    ".",
    "../../../escaped",
    "/etc/escaped",
    "a/b",
    "a\\b",
    "CON",
    "ü" * 500,
    "x" * 5000,
    "😀" * 100,
    "a\0b",
    "a\nb",
    "%2e%2e",
    "{}",
    "~",
    "-rf",
    "$(touch escaped)",
    "\u202e",
    "\x1b[2J",
]
CONVERSATION = {
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a kayak."}],
    },
    "qa": [
        {"question": "What did Ann buy?", "answer": "a kayak", "evidence": ["D1:1"], "category": 4}
    ],
}


def locomo_file(path: Path, ids: list[str]) -> Path:
    path.write_text(
        json.dumps([{**copy.deepcopy(CONVERSATION), "sample_id": case_id} for case_id in ids]),
        encoding="utf-8",
    )
    return path


@pytest.mark.slow
def test_hostile_case_ids_touch_only_their_own_folders(memeval: Command, tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    kept = home / "data" / "prepared" / "0123456789abcdef" / "case" / "kept.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("kept")
    file = locomo_file(tmp_path / "evil.json", HOSTILE)
    cell = (
        "dataset=locomo",
        f"dataset.path={file}",
        "dataset.allow_unpinned=true",
        "system=rag",
        "tracking=none",
    )
    before = sorted(path for path in tmp_path.rglob("*") if home not in path.parents)

    memeval(*cell, home=home)

    assert sorted(path for path in tmp_path.rglob("*") if home not in path.parents) == before
    assert kept.read_text() == "kept"
    assert [row["case_id"] for row in records(home)] == HOSTILE
    manifests = (home / "data" / "prepared").glob("*/*/*/memory.json")
    named = {path.parent.name: json.loads(path.read_bytes())["case_id"] for path in manifests}
    assert named == {digest_name(case_id): case_id for case_id in HOSTILE}
    assert f"{len(HOSTILE)} found" in memeval("prepare", *cell, home=home).stdout


@pytest.mark.slow
def test_folders_named_by_the_case_id_in_earlier_versions_are_kept(
    memeval: Command, tmp_path: Path
) -> None:
    file = locomo_file(tmp_path / "data.json", ["conv-1"])
    cell = (
        "dataset=locomo",
        f"dataset.path={file}",
        "dataset.allow_unpinned=true",
        "system=rag",
        "tracking=none",
    )
    memeval("prepare", *cell)
    (memory,) = (path.parent for path in (tmp_path / "data" / "prepared").glob("*/*/*/memory.json"))
    old = memory.rename(memory.with_name("conv-1"))

    assert "1 built" in memeval("prepare", *cell).stdout
    assert (old / "memory.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("case_id", ["\ud800", " ", ""])
def test_case_id_that_cannot_be_stored_is_reported_in_one_line(
    memeval: Command, tmp_path: Path, case_id: str
) -> None:
    file = locomo_file(tmp_path / "data.json", [case_id])
    done = memeval(
        "dataset=locomo",
        f"dataset.path={file}",
        "dataset.allow_unpinned=true",
        "tracking=none",
        check=False,
    )
    assert done.returncode == 2
    assert (
        done.stderr.count("\n") <= 2
        and "sample_id" in done.stderr
        and "Traceback" not in done.stderr
    )


def question(question_id: str) -> EvalQuestion:
    return EvalQuestion(question_id, "What?", 1, ("x",))


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([("y/q0", ["y/q0/q0"]), ("ingest y", ["ingest y/q0"])], "occurs twice"),
        ([("a", ["q"]), ("b", ["q"])], "occurs twice"),
        ([("a", ["q"]), ("a", ["r"])], "occurs twice"),
        ([("a", ["\udc80"])], "surrogate"),
        ([("a\udc80", ["q"])], "surrogate"),
    ],
)
def test_colliding_or_invalid_ids_are_refused(
    cases: list[tuple[str, list[str]]], message: str
) -> None:
    taken: set[str] = set()
    with pytest.raises(UserError, match=message):
        for case_id, questions in cases:
            take_ids(EvalCase(case_id, (), tuple(map(question, questions)), ()), taken)


def test_turns_of_one_id_count_as_the_last_of_them() -> None:
    turns = (Turn("1", "Ann", "I bought a kayak.", None), Turn("1", "Bob", "It is green.", None))
    case = EvalCase("a", (Session("s", None, turns),), (), ())
    quotations = CaseTurns.of(case).quotations
    assert quotations.found_in("It is green.") == ("1",)
    assert quotations.found_in("I bought a kayak.") == ()


def test_turns_and_sessions_of_one_id_have_one_rank() -> None:
    sessions = [
        Session.of(name, [("Ida", "hello"), ("Bo", "hi")], ids=ids)
        for name, ids in (("day", "a"), ("day", "b"), ("night", "a"))
    ]
    turns = CaseTurns.of(EvalCase("c", tuple(sessions), ()))
    assert turns.ids == ("a1", "a2", "b1", "b2")
    ranking = turns.positions([("b2",), ("a2",), ("b1",)])
    ranks = turns.evidence_ranks(ranking, ["b1", "a1"])
    assert (ranks.turns, ranks.sessions) == ((3, None), (1, 2))


@pytest.mark.parametrize(
    "name", [*HOSTILE, "", "\ud800", "con", "nul", "com1", "Locomo", "locomo.", "a b"]
)
def test_unsafe_name_is_replaced_by_its_digest_in_a_path(name: str) -> None:
    assert file_name(name) == digest_name(name)
    assert file_name("my_tickets-2") == "my_tickets-2"
