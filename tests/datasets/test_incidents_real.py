"""The adapter on the published tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec import structs
from test_incidents import prove

from memeval.datasets.incidents.schema import read_source
from memeval.datasets.incidents.table import Incident
from memeval.datasets.locate import build
from memeval.datasets.registry import DATASETS

INCIDENTS = DATASETS["incidents"]

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def table(data_dir: Path) -> tuple[Incident, ...]:
    return read_source(INCIDENTS, data_dir / INCIDENTS.file).incidents


def test_counts_by_system(table: tuple[Incident, ...]) -> None:
    assert Counter(row.system for row in table) == {
        "gaia-micross": 1591,
        "openrca-Bank": 136,
        "openrca-Market-cloudbed-1": 70,
        "openrca-Market-cloudbed-2": 78,
        "openrca-Telecom": 51,
        "nezha-2022-08-22": 24,
        "nezha-2022-08-23": 32,
        "nezha-2023-01-29": 28,
        "nezha-2023-01-30": 17,
    }
    assert sum(row.duration_s is None for row in table if row.system == "gaia-micross") == 64


def test_first_tenth_and_last_row(table: tuple[Incident, ...]) -> None:
    found = [
        (row.system, str(row.time), row.components, row.level, row.fault, row.duration_s)
        for row in (table[0], table[9], table[-1])
    ]
    assert found[0] == (
        "openrca-Bank",
        "2021-03-04 14:57:00",
        ("Mysql02",),
        "pod",
        "high_memory_usage",
        None,
    )
    assert found[2] == (
        "gaia-micross",
        "2021-08-31 22:36:15",
        ("logservice2",),
        "service",
        "memory_anomalies",
        600,
    )
    assert found[1][0] == "openrca-Bank"


def test_the_published_lists_give_the_same_incidents(
    data_dir: Path, table: tuple[Incident, ...]
) -> None:
    for prefix, folder in (("nezha", "nezha_fault_lists"), ("openrca", "openrca_archive")):
        listed = read_source(INCIDENTS, data_dir / "aiops" / folder).incidents
        assert set(listed) == {
            structs.replace(row, duration_s=None) for row in table if row.system.startswith(prefix)
        }


def test_registered_file_is_pinned_and_its_oddities_noted(data_dir: Path) -> None:
    opened = build("incidents", data_dir).open()
    assert (opened.pinned, opened.sha256) == (True, INCIDENTS.sha256)
    assert opened.notes == (
        "clock: the time stamps of 18 rows contradict their local times; the local times are used",
        "root causes: 37 of 613 later incidents hit a component without an earlier incident; no "
        "question asks for their root cause",
    )


@pytest.mark.slow
def test_every_gold_of_the_published_table_is_proved(data_dir: Path) -> None:
    found = list(build("incidents", data_dir).cases())
    assert {
        case.case_id: (len(case.sessions), sum(len(session.turns) for session in case.sessions))
        for case in found
    }["gaia-micross"] == (
        1113,
        2181,
    )
    assert len(found) == 9
    assert sum(len(case.questions) for case in found) == 637
    assert (
        Counter(question.facets["task"] for case in found for question in case.questions)[
            "root_cause"
        ]
        == 97
    )
    prove(data_dir / INCIDENTS.file, found)
