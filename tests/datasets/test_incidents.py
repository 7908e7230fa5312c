from __future__ import annotations

import json
import os
import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from forking import run_command_line
from hypothesis import given, settings
from hypothesis import strategies as st
from incident_oracle import read, solve
from incident_tables_sample import ROWS, write_table
from sample_records import record

from memeval.datasets.incidents.adapter import Incidents
from memeval.datasets.incidents.metrics import a_at_k, mar, ranking
from memeval.datasets.incidents.schema import read_source
from memeval.datasets.locate import build
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.metrics.keywords import keyword_pass
from memeval.records import EvalCase

DEMO_INCIDENTS = DATASETS["demo_incidents"]


def cases(path: Path, **given: object) -> list[EvalCase]:
    return list(build("demo_incidents", Path(), path=str(path), **given).cases())


def prove(path: Path, found: list[EvalCase]) -> set[str]:
    """Checks every gold and its evidence by brute force; returns the templates that were proved."""
    tasks = set()
    for case in found:
        rows = [
            row for row in read_source(DEMO_INCIDENTS, path).incidents if row.system == case.case_id
        ]
        after = [row for row in rows if row.time > (case.sessions[-1].started_at or row.time)]
        later: dict[tuple[str, str, str], set[tuple[str, ...]]] = {}
        for row in after:
            later.setdefault((f"{row.time:%Y-%m-%d %H:%M}", row.fault, row.level), set()).add(
                row.components
            )
        for question in case.questions:
            answer, evidence = solve(case, question, later)
            assert set(question.evidence) == evidence, question
            assert question.answerable == (answer is not None), question
            assert (
                answer is None
                or answer in question.gold
                or all(gold.split()[0] == answer for gold in question.gold)
            ), question
            assert (
                question.asked_at is not None
                and case.sessions[-1].started_at is not None
                and question.asked_at > case.sessions[-1].started_at
            )
            tasks.add(question.facets["task"])
    return tasks


def test_history_becomes_sessions_in_order_of_time(tmp_path: Path) -> None:
    north, south = cases(write_table(tmp_path), history_share=0.7)
    assert [case.case_id for case in (north, south)] == ["north", "south"]
    assert [len(case.sessions) for case in (north, south)] == [7, 2]
    rows = read(north)
    assert [(row.turn, row.who, row.fault, row.at, row.level, row.lasted) for row in rows[:3]] == [
        ("s1t1", ["gate_1"], "disk_full", "2024-03-01 08:00", "node", "600 seconds"),
        ("s2t1", ["gate_2"], "disk_full", "2024-03-01 09:30", "node", ""),
        ("s3t1", ["store"], "slow_queries", "2024-03-02 10:00", "pod", "three seconds"),
    ]
    assert [turn.turn_id for turn in north.sessions[0].turns] == ["s1t1", "s1t2"]


def test_rows_of_one_time_stay_on_one_side_of_the_history(tmp_path: Path) -> None:
    (north, _) = cases(write_table(tmp_path), history_share=0.5)
    assert len(north.sessions) == 6


def test_every_gold_of_the_sample_is_proved(tmp_path: Path) -> None:
    path = write_table(tmp_path)
    tasks = prove(path, cases(path, questions_per_case=1000))
    assert {
        "contradiction",
        "root_cause",
        "similar_incident",
        "count",
        "list",
        "since",
        "distance",
        "unknown_pair",
    } <= tasks


def test_every_gold_of_the_demo_is_proved(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "data/demo/incidents.csv"
    found = cases(path, questions_per_case=1000)
    assert len(prove(path, found)) == 21
    assert {question.category for case in found for question in case.questions} == {
        "IE",
        "MR",
        "TR",
        "KU",
        "CR",
        "ABS",
    }


@st.composite
def tables(draw: st.DrawFn) -> list[str]:
    """Random tables of one or two systems, with simultaneous rows, contradictions and gaps."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    rows = []
    for system in ("north", "south")[: draw(st.integers(1, 2))]:
        time = datetime(2024, 1, 1, 5)
        for _ in range(draw(st.integers(2, 40))):
            time += rng.choice(
                [
                    timedelta(0),
                    timedelta(seconds=20),
                    timedelta(minutes=7),
                    timedelta(hours=5),
                    timedelta(days=3),
                ]
            )
            name, fault = (
                f"unit-{rng.randint(1, 6)}",
                rng.choice(["leak", "stall", "burn out", "drift", ""]),
            )
            rows.append(
                f"{system},,{time:%Y-%m-%d %H:%M:%S},{name},{rng.choice(['pod', 'node', ''])},"
                f"{fault},{rng.choice(['', '1', '600'])}"
            )
    return rows


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(rows=tables(), seed=st.integers(0, 5), share=st.sampled_from([0.3, 0.7, 0.9]))
def test_every_gold_of_any_table_is_proved(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], seed: int, share: float
) -> None:
    path = write_table(tmp_path_factory.getbasetemp(), rows)
    try:
        found = cases(
            path, questions_per_case=500, root_causes_per_case=500, seed=seed, history_share=share
        )
    except UserError as error:
        assert "no system has incidents at two different times" in str(error)
        return
    prove(path, found)


def test_question_texts_are_unique_and_ids_sequential(tmp_path: Path) -> None:
    for case in cases(write_table(tmp_path), questions_per_case=1000):
        texts = [question.text for question in case.questions]
        assert len(texts) == len(set(texts))
        assert [question.question_id for question in case.questions] == [
            f"{case.case_id}/q{number}" for number in range(len(texts))
        ]


def test_the_seed_changes_words_and_never_facts(tmp_path: Path) -> None:
    path = write_table(tmp_path)
    first, again, other = (cases(path, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first[0].sessions != other[0].sessions
    assert [(row.who, row.fault, row.at, row.level, row.lasted) for row in read(first[0])] == [
        (row.who, row.fault, row.at, row.level, row.lasted) for row in read(other[0])
    ]


def test_limits_on_questions_are_kept_and_checked(tmp_path: Path) -> None:
    path = write_table(tmp_path)
    north, _ = cases(path, questions_per_case=6, root_causes_per_case=1)
    assert [question.category for question in north.questions] == [
        "IE",
        "MR",
        "TR",
        "KU",
        "CR",
        "ABS",
        "MR",
    ]
    assert [question.facets["task"] for question in north.questions][-1] == "root_cause"
    for setting, message in (
        ({"history_share": 1.0}, "history_share"),
        ({"questions_per_case": 0}, "least 1"),
        ({"root_causes_per_case": -1}, "least 0"),
    ):
        with pytest.raises(UserError, match=message):
            cases(path, **setting)


def test_rankings_are_read_in_order_of_first_mention() -> None:
    known = {"node_1", "node_11", "cart", "cart_2"}
    assert ranking("1. node-11, then Node 1 and node_11 again; cart-2, cart", known) == [
        "node_11",
        "node_1",
        "cart_2",
        "cart",
    ]
    assert ranking("shopping carts and node_12", known) == []
    assert ranking("", known) == ranking("cart", []) == []


def test_a_at_k_and_mar_match_hand_computed_values() -> None:
    truths = [{"a"}, {"b", "c"}, {"d"}]
    rankings = [["a", "b"], ["b", "a", "c"], ["a", "b"]]
    assert [a_at_k(truths, rankings, k) for k in (1, 3, 5)] == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert mar(truths, rankings, [10, 10, 10]) == pytest.approx(
        (1 + (1 + 3) / 2 + (10 + 2) / 2) / 3
    )


def test_measures_use_only_root_cause_questions(tmp_path: Path) -> None:
    dataset = build("demo_incidents", Path(), path=str(write_table(tmp_path)))
    rows = [
        record(
            case_id="north",
            facets={"task": "root_cause"},
            gold=("gate_2",),
            hypothesis="gate-1, gate-2",
        ),
        record(
            case_id="north",
            facets={"task": "root_cause"},
            gold=("gate_1",),
            hypothesis="No information available",
        ),
        record(case_id="north", facets={"task": "root_cause"}, gold=("gate_1",), hypothesis=None),
        record(
            case_id="north", facets={"task": "fault"}, gold=("disk_full",), hypothesis="disk_full"
        ),
    ]
    assert dataset.measures(rows) == {
        "a_at_1": 0.0,
        "a_at_3": 0.5,
        "a_at_5": 0.5,
        "mar": pytest.approx((2 + 4 / 2) / 2),
    }
    assert set(dataset.measures(rows[3:]).values()) == {None}


def test_keyword_judge_confuses_no_gold_answers(tmp_path: Path) -> None:
    for case in cases(write_table(tmp_path), questions_per_case=1000):
        golds = {
            question.facets["task"]: question.gold for question in case.questions if question.gold
        }
        for question in case.questions:
            assert not any(keyword_pass("No information available", gold) for gold in question.gold)
            assert all(keyword_pass(gold, gold) for gold in question.gold)
        assert not any(keyword_pass("gate_2", gold) for gold in ("gate_1", "clock_drift"))
        assert not any(
            keyword_pass("four incidents", gold)
            for gold in golds.get("count", ())
            if not gold.startswith("four")
        )


def test_dejavu_table_has_several_root_causes_and_timestamps(tmp_path: Path) -> None:
    rows = [
        "1577836800,os_1 disk;db_2",
        "1577840400,os_3",
        "1577844000.0,db_2; os_3",
        "1577847600,os_3;db_2",
    ]
    path = write_table(tmp_path, rows, "timestamp,root_cause_node", "faults.csv")
    (case,) = cases(path)
    assert case.case_id == tmp_path.name
    assert [(row.who, row.at) for row in read(case)] == [
        (["os_1_disk", "db_2"], "2020-01-01 00:00"),
        (["os_3"], "2020-01-01 01:00"),
    ]
    (asked,) = [
        question
        for question in case.questions
        if "root causes" in question.text and "02:00" in question.text
    ]
    assert (asked.gold, asked.evidence) == (("db_2, os_3",), ("s1t1", "s2t1"))
    dataset = build("demo_incidents", Path(), path=str(path))
    answered = record(
        case_id=case.case_id,
        facets=asked.facets,
        gold=asked.gold,
        hypothesis="os_3, os_1_disk, db_2",
    )
    assert dataset.measures([answered]) == {"a_at_1": 0.0, "a_at_3": 1.0, "a_at_5": 1.0, "mar": 2.0}
    prove(path, [case])


def test_nezha_and_openrca_folders_are_recognized(tmp_path: Path) -> None:
    day = tmp_path / "nezha" / "2022-01-02"
    day.mkdir(parents=True)
    faults = [
        {
            "inject_time": f"2022-01-02 03:0{n}:00",
            "inject_pod": f"{name}-579b9bff58-t2dbm",
            "inject_type": "network_delay",
        }
        for n, name in enumerate(["cart", "ts-food-service", "cart"])
    ]
    (day / "2022-01-02-fault_list.json").write_text(json.dumps({"03": faults}), encoding="utf-8")
    (case,) = cases(tmp_path / "nezha")
    assert (case.case_id, [(row.who, row.fault) for row in read(case)]) == (
        "nezha-2022-01-02",
        [(["cart"], "network_delay"), (["ts_food_service"], "network_delay")],
    )
    folder = tmp_path / "openrca"
    folder.mkdir()
    truth = (
        '"level: pod\ncomponent: Redis{}\ntimestamp: 1.0\ndatetime: 2021-03-0{} '
        '10:00:00\nreason: CPU fault"'
    )
    write_table(folder, [truth.format(n, n) for n in (1, 2, 3)], "groundtruth", "agent-Bank.csv")
    (case,) = cases(folder)
    assert (case.case_id, [row.who for row in read(case)]) == (
        "openrca-Bank",
        [["Redis1"], ["Redis2"]],
    )


def test_repeated_rows_and_lone_systems_are_noted(tmp_path: Path) -> None:
    rows = [*ROWS, ROWS[-1], "west,,2024-01-01 00:00:00,pump,pod,leak,"]
    notes = build("demo_incidents", Path(), path=str(write_table(tmp_path, rows))).open().notes
    assert notes == (
        "incidents: 1 of 16 rows repeat another one and are left out",
        "systems: 1 without incidents of two different times are left out",
        "root causes: 2 of 5 later incidents hit a component without an earlier incident; no "
        "question asks for their root cause",
    )


def test_unregistered_file_needs_allow_unpinned(tmp_path: Path) -> None:
    path = write_table(tmp_path)
    with pytest.raises(UserError, match="is not the registered file"):
        build("incidents", Path(), path=str(path)).open()
    assert not build("incidents", Path(), path=str(path), allow_unpinned=True).open().pinned
    assert isinstance(build("incidents", Path()), Incidents)


def test_contradicted_incidents_are_not_counted(tmp_path: Path) -> None:
    (north, _) = cases(write_table(tmp_path), questions_per_case=1000)
    counting = [
        question.text
        for question in north.questions
        if question.facets["task"] in ("count", "list", "commonest")
    ]
    assert counting
    assert not any(
        "store" in text or "slow_queries" in text or "memory_leak" in text for text in counting
    )


@pytest.mark.slow
def test_run_reports_a_at_k_and_mar(tmp_path: Path) -> None:
    words = ["dataset=demo_incidents", "system=oracle", "tracking=none"]
    env = {**os.environ, "MEMEVAL_HOME": str(tmp_path)}
    done = run_command_line(words, env=env, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    (summary,) = (
        json.loads(path.read_text(encoding="utf-8"))
        for path in tmp_path.glob("outputs/runs/*/run.json")
    )
    metrics = summary["metrics"]
    assert 0 < metrics["a_at_1"] <= metrics["a_at_3"] <= metrics["a_at_5"] <= 1 <= metrics["mar"]
    assert metrics["accuracy/abstention"] == 1.0
