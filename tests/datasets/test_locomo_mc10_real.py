"""The published rows, and rows derived from the published LoCoMo."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memeval.datasets.locate import build
from memeval.datasets.locomo.adapter import Locomo
from memeval.datasets.registry import DATASETS
from memeval.records import EvalCase

LOCOMO_MC10 = DATASETS["locomo_mc10"]

pytestmark = pytest.mark.real_data

TOTALS = {1: 282, 2: 321, 3: 96, 4: 841, 5: 446}


def mc10(data_dir: Path, **settings: Any) -> list[EvalCase]:
    return list(
        build(
            "locomo_mc10", data_dir, path=str(data_dir / LOCOMO_MC10.excerpts[0].file), **settings
        ).cases()
    )


def test_excerpt_is_pinned_and_read(data_dir: Path) -> None:
    adapter = build("locomo_mc10", data_dir, path=str(data_dir / LOCOMO_MC10.excerpts[0].file))
    opened = adapter.open()
    assert opened.pinned and opened.notes[0].startswith(
        "an excerpt: the first 3 of the 1,986 questions"
    )
    (case,) = adapter.cases()
    assert (case.case_id, case.speakers, len(case.sessions)) == (
        "conv-26",
        ("Caroline", "Melanie"),
        19,
    )
    assert [(q.question_id, q.category, q.right_choices, q.evidence) for q in case.questions] == [
        ("conv-26_q0", 2, (5,), ("D1:3",)),
        ("conv-26_q1", 2, (8,), ("D1:12",)),
        ("conv-26_q2", 3, (8,), ("D1:9", "D1:11")),
    ]
    assert case.questions[1].gold == ("2022",)
    assert adapter.notes() == (
        "evidence: 3 of 3 questions have theirs from locomo10.json, by position",
    )


@pytest.mark.slow
def test_turns_of_the_excerpt_equal_those_of_locomo(data_dir: Path) -> None:
    (case,) = mc10(data_dir)
    origin = next(Locomo(data_dir / "locomo/locomo10.json", info=DATASETS["locomo"]).read())
    said = [
        (turn.turn_id, turn.speaker, turn.text, turn.time)
        for session in case.sessions
        for turn in session.turns
    ]
    assert said == [
        (turn.turn_id, turn.speaker, turn.text, turn.time)
        for session in origin.sessions
        for turn in session.turns
    ]
    assert len(said) == 419


@pytest.mark.slow
def test_every_question_of_locomo_is_derived(data_dir: Path) -> None:
    adapter = build("locomo_mc10", data_dir, derive=True)
    assert adapter.open().derived and adapter.open().pinned
    cases = list(adapter.cases())
    asked = [question for case in cases for question in case.questions]
    assert (len(cases), len(asked), Counter(len(question.choices) for question in asked)) == (
        10,
        1_986,
        {10: 1_986},
    )
    assert Counter(question.category for question in asked) == TOTALS
    assert sum(bool(question.evidence) for question in asked) == 1_982
    assert [
        (asked[place].question_id, asked[place].choices[asked[place].right_choices[0]])
        for place in (0, 9, -1)
    ] == [
        ("conv-26_q0", "7 May 2023"),
        ("conv-26_q9", "The week before 9 June 2023"),
        ("conv-50_q203", "Not answerable"),
    ]
    assert not any(
        "not mentioned" in choice.lower() for question in asked for choice in question.choices
    )
    shares = Counter(question.right_choices[0] for question in asked)
    assert min(shares.values()) > 160 and max(shares.values()) < 240
