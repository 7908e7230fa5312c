"""The adapter and the official retrieval metrics on published items: counts, oddities, and each
item's recorded figures.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memeval.config.schema import GranularityConfig
from memeval.datasets.contract import Dataset
from memeval.datasets.granularity import chunks
from memeval.datasets.locate import build
from memeval.datasets.registry import DATASETS
from memeval.records import EvalCase, EvalQuestion
from memeval.retrieval.bm25 import Bm25Index, Ties, Tokens

pytestmark = pytest.mark.real_data

TYPES = {
    "single-session-user": 70,
    "single-session-assistant": 56,
    "single-session-preference": 30,
    "multi-session": 133,
    "temporal-reasoning": 133,
    "knowledge-update": 78,
}


@pytest.fixture(scope="module")
def dev31(data_dir: Path) -> Dataset:
    return build("longmemeval_s", data_dir, roles="user")


@pytest.fixture(scope="module")
def cases(data_dir: Path) -> list[EvalCase]:
    return list(build("longmemeval_s", data_dir).cases())


@pytest.fixture(scope="module")
def evidence(data_dir: Path) -> list[EvalCase]:
    path = data_dir / "longmemeval/longmemeval_oracle_evidence_turns_500.json"
    return list(build("longmemeval_oracle", data_dir, path=str(path)).cases())


def test_the_excerpts_stand_in_for_the_whole_and_say_so(data_dir: Path) -> None:
    for name, what in (
        ("longmemeval_s", "31 of the 500 questions"),
        ("longmemeval_oracle", "31 of the 500 questions"),
    ):
        loaded = build(name, data_dir).open()
        assert loaded.pinned and loaded.sha256 == DATASETS[name].excerpts[0].sha256
        assert loaded.notes[0].startswith(f"an excerpt: {what}, ") and loaded.notes[0].endswith(
            f"not those of the whole {name}"
        )


def test_counts_of_the_dev_items(cases: list[EvalCase]) -> None:
    assert len(cases) == 31
    assert sum(len(session.turns) for case in cases for session in case.sessions) == 15_457
    assert {len(case.questions) for case in cases} == {1}
    assert sum(len(case.sessions) for case in cases) == 1_473
    assert {len(case.sessions) for case in cases} <= set(range(39, 55))


def test_first_tenth_and_last_question(cases: list[EvalCase]) -> None:
    first, tenth, last = (cases[place].questions[0] for place in (0, 9, -1))
    assert (first.question_id, first.answerable, first.facets) == (
        "031748ae_abs",
        False,
        {"ability": "ABS"},
    )
    assert first.asked_at == datetime(2023, 6, 6, 8, 19)
    assert first.text == (
        "How many engineers do I lead when I just started my new role as Software Engineer Manager?"
    )
    assert [one.question_id for one in (tenth, last)] == [TENTH, LAST]


TENTH, LAST = "4d6b87c8", "7161e7e2"


def test_sessions_are_in_order_of_time_and_ids_reveal_nothing(cases: list[EvalCase]) -> None:
    for case in cases:
        starts = [session.started_at for session in case.sessions]
        assert all(start is not None for start in starts) and starts == sorted(starts, key=str)
        ids = [case.case_id, *(session.session_id for session in case.sessions)]
        ids += [turn.turn_id for session in case.sessions for turn in session.turns]
        assert not any("answer" in one or "abs" in one for one in ids)
        assert len(set(ids)) == len(ids)


def test_oracle_items_have_only_the_evidence_sessions(
    data_dir: Path, cases: list[EvalCase]
) -> None:
    twins = {
        case.questions[0].question_id: case
        for case in build("longmemeval_oracle", data_dir).cases()
    }
    assert set(twins) == {case.questions[0].question_id for case in cases}
    assert sum(len(twin.sessions) for twin in twins.values()) == 74
    assert all(
        len(twins[c.questions[0].question_id].questions[0].evidence) == len(c.questions[0].evidence)
        for c in cases
    )


def test_oracle_file_has_other_dates_for_the_same_items(
    cases: list[EvalCase], evidence: list[EvalCase]
) -> None:
    others = {case.questions[0].question_id: case.questions[0] for case in evidence}
    pairs = [(case.questions[0], others[case.questions[0].question_id]) for case in cases]
    assert all(one.text == other.text and one.gold == other.gold for one, other in pairs)
    assert sum(one.asked_at != other.asked_at for one, other in pairs) == 31


def test_counts_of_the_500_questions(evidence: list[EvalCase]) -> None:
    questions: list[EvalQuestion] = [case.questions[0] for case in evidence]
    assert Counter(question.category for question in questions) == TYPES
    abilities = Counter(question.facets["ability"] for question in questions)
    assert abilities == {"IE": 150, "MR": 121, "TR": 127, "KU": 72, "ABS": 30}
    abstaining = [case for case in evidence if not case.questions[0].answerable]
    assert len(abstaining) == 30 and sum(not case.sessions for case in abstaining) == 21
    assert all(question.evidence for question in questions if question.answerable)
    assert sum(len(question.evidence) for question in questions) == 896
    assert all(len(question.gold) == 1 for question in questions)


REFERENCES = [
    (granularity, tokens, ties)
    for granularity in ("session", "turn")
    for tokens in ("official_split_space", "lower_alnum")
    for ties in ("official_argsort_reversed", "stable_desc")
]


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize(("granularity", "tokens", "ties"), REFERENCES)
def test_official_metrics_of_every_item_match_the_reference(
    data_dir: Path, dev31: Dataset, granularity: str, tokens: str, ties: str
) -> None:
    path = data_dir.parent / "reference/longmemeval_bm25_dev31.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["per_question"][
        f"{granularity}|{tokens}|{ties}"
    ]
    reference: dict[str, Any] = {row["question_id"]: row for row in rows}
    counted = 0
    for case in dev31.cases():
        row = reference[case.questions[0].question_id]
        ours = official(
            dev31,
            case,
            granularity,
            "space" if "space" in tokens else "alnum",
            "reversed" if "reversed" in ties else "position",
        )
        assert bool(ours) == (row["skipped"] is None)
        if ours:
            assert ours == pytest.approx(recorded(row), rel=0, abs=1e-12)
            counted += 1
    assert counted == 26


def official(
    dataset: Dataset, case: EvalCase, granularity: str, tokens: Tokens, ties: Ties
) -> dict[str, float | None]:
    units = chunks(case, GranularityConfig(granularity, speakers=False))
    order, _ = Bm25Index([unit.content for unit in units], tokens).ranking(
        case.questions[0].text, ties
    )
    session_of = {
        turn.turn_id: session.session_id for session in case.sessions for turn in session.turns
    }
    return dict(
        dataset.ranking_metrics(
            case.questions[0], [units[place].turn_ids for place in order], session_of
        )
    )


def recorded(row: dict[str, Any]) -> dict[str, float]:
    """A reference row's metrics under our names."""
    return {
        f"official/{of}/{name.replace('@', '_at_')}": value
        for of, found in row["metrics"].items()
        for name, value in found.items()
    }
