"""How incidents were handled, and runbooks that change. Every gold is read from the narratives."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest
from incident_tables_sample import ROWS, write_table
from test_incidents import cases

from memeval.datasets.incidents.runbooks import MAX_REVISIONS, STEPS, handle
from memeval.datasets.incidents.table import Incident
from memeval.datasets.locate import build
from memeval.metrics.keywords import keyword_pass, keywords
from memeval.records import EvalCase, EvalQuestion

DEMO = Path(__file__).parents[2] / "data/demo/incidents.csv"
HANDLED = re.compile(
    r"Fault (\S+) of components? (.+) at (\S+ \S+) was handled by these steps: (.+)\."
)
RUNBOOK = re.compile(r"Runbook for fault (\S+), revision (\d+) of (.+): (.+)\.")


def incidents(count: int, fault: str = "leak") -> list[Incident]:
    start = datetime(2024, 1, 1)
    return [
        Incident(system="north", time=start + timedelta(hours=n), components=("pump",), fault=fault)
        for n in range(count)
    ]


def test_runbook_is_revised_after_incidents_1_2_4_8_and_then_followed() -> None:
    found = [one for one in handle(0, "north", incidents(9)) if one]
    assert [one.revision for one in found] == [1, 2, None, 3, None, None, None, 4, None]
    revised = {one.revision: one.revised for one in found if one.revision}
    assert [one.steps for one in found] == [
        revised[number] for number in (1, 1, 2, 2, 3, 3, 3, 3, 4)
    ]
    assert len(set(revised.values())) == 4


def test_revisions_stop_at_the_maximum() -> None:
    found = [one for one in handle(0, "north", incidents(2**MAX_REVISIONS + 1)) if one]
    assert max(one.revision or 0 for one in found) == MAX_REVISIONS
    assert found[-1].revision is None and found[-1].steps
    assert handle(0, "north", incidents(2, fault="")) == [None, None]


def test_keyword_judge_confuses_no_steps_or_revisions() -> None:
    assert len(STEPS) == len(set(STEPS))
    words = [word for step in STEPS for word in keywords(step)]
    assert len(words) == len(set(words))
    # Procedures of several faults may share one of their two steps, which is not enough.
    found = set[str]()
    for fault in ("leak", "noise", "spin", "stall", "surge", "trip", "wear", "jam"):
        found |= {one.steps for one in handle(3, "north", incidents(64, fault)) if one}
    procedures = {frozenset(one.split(" and ")): one for one in found}
    assert any(len(one & other) == 1 for one, other in permutations(procedures, 2))
    assert not any(keyword_pass(one, other) for one, other in permutations(procedures.values(), 2))


def expected(case: EvalCase, question: EvalQuestion) -> tuple[str, str]:
    """Gold and evidence of a question, derived from the narratives."""
    turns = [turn for session in case.sessions for turn in session.turns]
    handled = [(HANDLED.fullmatch(turn.text), turn.turn_id) for turn in turns]
    runbooks = [(RUNBOOK.fullmatch(turn.text), turn.turn_id) for turn in turns]

    task, words = question.facets["task"], question.text
    if task == "handled":
        ((match, turn_id),) = (
            (match, turn_id)
            for match, turn_id in handled
            if match and f"that began at {match[3]}?" in words and match[2] in words
        )
        return match[4], turn_id

    (fault,) = (
        name
        for name in {match[1] for match, _ in runbooks if match}
        if re.search(rf"fault {name}\b", words)
    )
    if task == "handled_last":
        of_fault = [(match, turn_id) for match, turn_id in handled if match and match[1] == fault]
        match, turn_id = of_fault[-1]
        assert match and match[3] == max(other[3] for other, _ in of_fault if other)
        return match[4], turn_id

    of_fault = [(match, turn_id) for match, turn_id in runbooks if match and match[1] == fault]
    match, turn_id = max(of_fault, key=lambda one: int(one[0][2]) if one[0] else 0)
    assert match and len(of_fault) > 1
    assert match[3] == max(other[3] for other, _ in of_fault if other)
    return match[4], turn_id


@pytest.mark.parametrize("path", [None, DEMO], ids=["sample", "demo"])
def test_every_gold_is_read_from_the_narratives(tmp_path: Path, path: Path | None) -> None:
    found = cases(path or write_table(tmp_path), runbooks=True, handling_per_case=500)
    asked = [
        (case, question)
        for case in found
        for question in case.questions
        if question.category in ("HA", "RU")
    ]
    for case, question in asked:
        gold, turn_id = expected(case, question)
        assert (question.gold, question.evidence) == ((gold,), (turn_id,)), question
        assert question.asked_at is not None
        assert question.asked_at > (case.sessions[-1].started_at or question.asked_at)

    assert {question.facets["task"] for _, question in asked} == {
        "handled",
        "handled_last",
        "procedure",
        "new_incident",
    }


def test_runbooks_only_add_questions_and_turns(tmp_path: Path) -> None:
    path = write_table(tmp_path)
    for plain, more in zip(cases(path), cases(path, runbooks=True), strict=True):
        assert more.questions[: len(plain.questions)] == plain.questions
        assert len(more.questions) > len(plain.questions)
        for before, after in zip(plain.sessions, more.sessions, strict=True):
            assert after.turns[: len(before.turns)] == before.turns


def test_runbooks_add_a_limit_a_note_and_categories(tmp_path: Path) -> None:
    path = str(write_table(tmp_path, [*ROWS]))
    dataset = build("demo_incidents", Path(), path=path, runbooks=True, handling_per_case=2)
    assert "runbooks: their steps are invented" in "; ".join(dataset.open().notes)
    counts = [
        sum(question.category in ("HA", "RU") for question in case.questions)
        for case in dataset.cases()
    ]
    assert max(counts) == 2
    assert {"HA", "RU"} <= set(dataset.category_names)
    assert {"HA", "RU"} <= (dataset.headline or set())
    plain = build("demo_incidents", Path(), path=path)
    assert not {"HA", "RU"} & set(plain.category_names)
    assert not any("runbooks" in note for note in plain.open().notes)
