"""Records `{content, timestamp, metadata, source}`, read as written."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.records import EvalCase

ALERT = {
    "content": "Switch sw2 lost its uplink.",
    "timestamp": "2024-02-03T22:41",
    "source": "monitor",
    "metadata": {"id": "al1", "device": "sw2", "tags": ["core", 7], "empty": None},
}
RUNBOOK = {
    "content": "Lost uplink: use the radio link.",
    "timestamp": "2024-02-05 09:00:00",
    "source": "runbook",
    "metadata": {"id": 12},
}
QUESTION = {"question": "What to do for a lost uplink?", "answer": "radio link", "evidence": ["12"]}


def cases(folder: Path, content: str) -> list[EvalCase]:
    path = folder / "records.json"
    path.write_text(content, "utf-8")
    dataset = build("netops", Path("/nowhere"), path=str(path))
    dataset.open()
    return list(dataset.cases())


def as_lines(*values: Any) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


@pytest.mark.parametrize("form", [lambda *values: json.dumps(values), as_lines])
def test_list_and_lines_of_records_are_read(tmp_path: Path, form: Any) -> None:
    (case,) = cases(tmp_path, form(ALERT, RUNBOOK, QUESTION))
    (session,) = case.sessions
    assert [(turn.speaker, turn.text, turn.time) for turn in session.turns] == [
        (
            "monitor",
            "Switch sw2 lost its uplink. [device: sw2; tags: core, 7]",
            datetime(2024, 2, 3, 22, 41),
        ),
        ("runbook", "Lost uplink: use the radio link.", datetime(2024, 2, 5, 9)),
    ]
    (question,) = case.questions
    assert (question.gold, question.evidence) == (("radio link",), ("t1",))


@pytest.mark.parametrize("stamp", [1707123600, 1707123600.0, 1707123600000])
def test_unix_times_are_utc(tmp_path: Path, stamp: float) -> None:
    (case,) = cases(tmp_path, as_lines({**ALERT, "timestamp": stamp}, {**QUESTION, "evidence": []}))
    assert case.sessions[0].turns[0].time == datetime(2024, 2, 5, 9)


def test_metadata_names_cases_and_sessions(tmp_path: Path) -> None:
    content = as_lines(
        {"content": "a", "metadata": {"case_id": "north", "session": "s"}},
        {"content": "b", "metadata": {"case_id": "south"}},
        {"content": "c", "metadata": {"case_id": "north", "session": "t"}},
        {"question": "x?", "answer": "a", "case_id": "north", "evidence": [1]},
        {"question": "y?", "answer": "b", "case_id": "south"},
    )
    north, south = cases(tmp_path, content)
    assert [[turn.text for turn in session.turns] for session in north.sessions] == [["a"], ["c"]]
    assert (south.case_id, north.questions[0].evidence) == ("south", ("t1",))


def test_chunks_of_a_case_may_be_records(tmp_path: Path) -> None:
    question = {**QUESTION, "evidence": ["al1"]}
    written = {"case_id": "n", "chunks": [ALERT, "plain"], "questions": [question]}
    (case,) = cases(tmp_path, json.dumps([written]))
    assert [turn.speaker for turn in case.sessions[0].turns] == ["monitor", "Record"]
    assert case.questions[0].evidence == ("t0",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([ALERT], "contains 1 record but no questions about them"),
        ([ALERT, RUNBOOK], "contains 2 records but no questions about them"),
        ([ALERT, {"content": " "}, QUESTION], "chunk 1: field 'text' is empty"),
        ([{**ALERT, "timestamp": "yesterday"}, QUESTION], "field 'time' is 'yesterday'"),
        ([{**ALERT, "timestamp": 1e300}, QUESTION], "field 'time' is '1e+300'"),
        ([{**ALERT, "timestamp": 10**400}, QUESTION], "field 'time' is '1000"),
        (
            [RUNBOOK, ALERT, QUESTION],
            "chunk 1: field 'time' is before that of its session or of an earlier chunk",
        ),
        ([ALERT, QUESTION], "evidence '12' is not a chunk"),
        ([ALERT, 5, {**QUESTION, "evidence": []}], "chunk 1: is an integer, not an object"),
    ],
)
def test_invalid_records_are_refused(tmp_path: Path, values: list[Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        cases(tmp_path, json.dumps(values))

    assert message in str(caught.value)
