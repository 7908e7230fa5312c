"""Every adapter conforms to the data set contract, on its shipped or generated set."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memeval.config.options import built_in_classes
from memeval.datasets.contract import Dataset
from memeval.datasets.locate import build, locate
from memeval.datasets.registry import DATASETS
from memeval.testing.datasets import DatasetContract

NOWHERE = Path("/nowhere")
SMALL: dict[str, dict[str, Any]] = {
    "demo_lifecycle": {"n_cases": 2, "languages": ("en", "de"), "tokens": 60, "later_tokens": 300},
    "lifecycle": {"n_cases": 2, "later_tokens": 100},
    "synthetic": {"tokens": 2_000, "n_cases": 2},
    "demo_memory_agent_bench": {"split": "all"},
}
"""Settings that keep a generated set small, or read a whole file."""
SHOWN = sorted(
    name
    for name in built_in_classes("dataset")
    if not DATASETS[name].file or locate(DATASETS[name], NOWHERE).exists()
)
"""Data sets that ship or are generated."""
PINS: dict[str, dict[str, Any]] = {
    "alert_storm": {
        "counts": {"cases": 3, "sessions": 37, "turns": 3_123, "questions": 180},
        "first": ("storm-1/q0", "Which device had an alert at 2024-09-14 08:58:51.425?"),
        "tenth": ("storm-1/q9", "Which alert did device access_014 have most recently?"),
        "last": ("storm-3/q59", "Which alert did device access_032 have first?"),
    },
    "demo": {
        "counts": {"cases": 10, "sessions": 62, "turns": 650, "questions": 142},
        "first": ("demo-1/q0", "When did Gustav move in with Rafi?"),
        "tenth": ("demo-1/q9", "When did Hanneke sign for her new workshop?"),
        "last": ("demo-10/q12", "When did Sister Agnes fail her driving test?"),
    },
    "demo_beam": {
        "counts": {"cases": 1, "sessions": 3, "turns": 32, "questions": 10},
        "first": (
            "100K/1/abstention/0",
            "What did the chapel in Ostrava pay for its harmonium?",
        ),
        "tenth": (
            "100K/1/temporal_reasoning/0",
            "How many days before the opening did I plan to sign the lease?",
        ),
        "last": (
            "100K/1/temporal_reasoning/0",
            "How many days before the opening did I plan to sign the lease?",
        ),
    },
    "demo_convomem": {
        "records_have_ids": False,
        "counts": {"cases": 7, "sessions": 16, "turns": 48, "questions": 7},
        "first": ("c1/q0", "Until when is the lift in Bergen out of order?"),
        "last": (
            "c7/q0",
            "Where can a visitor in a wheelchair meet us in Bergen on 5 March?",
        ),
    },
    "demo_incidents": {
        "derives_questions": True,
        "records_have_ids": False,
        "shows_a_cut": False,
        "counts": {"cases": 2, "sessions": 42, "turns": 70, "questions": 138},
        "first": ("harbour/q0", "Which fault did component tide_cache have at 2024-02-09 17:08?"),
        "tenth": ("harbour/q9", "Which component had fault expired_certificate most recently?"),
        "last": (
            "orchard/q68",
            "Which components are the likeliest root causes of the incident with symptom "
            "config_rollback at level pod that began at "
            "2024-05-14 21:09?",
        ),
    },
    "demo_locomo_mc10": {
        "counts": {"cases": 2, "sessions": 4, "turns": 57, "questions": 10},
        "first": ("demo-1_q0", "When did Gustav move in with Rafi?"),
        "tenth": (
            "demo-2_q20",
            "How many gigabytes of debug logs an hour did Kwame's network team write?",
        ),
        "last": (
            "demo-2_q20",
            "How many gigabytes of debug logs an hour did Kwame's network team write?",
        ),
    },
    "demo_longmemeval": {
        "counts": {"cases": 8, "sessions": 27, "turns": 90, "questions": 8},
        "first": ("demo_ssu_1", "What is the name of the boat that I bought?"),
        "last": (
            "demo_tr_2_abs",
            "How many days after the concert did the choir record its album?",
        ),
    },
    "demo_memory_agent_bench": {
        "counts": {"cases": 9, "sessions": 9, "turns": 9, "questions": 15},
        "first": ("factconsolidation_sh_6k_no0", "Who is the mayor of Lindow?"),
        "tenth": ("icl_demo_6shot_no1", "My card is blocked."),
        "last": ("infbench_sum_demo_no0", "Summarise the story."),
    },
    "demo_lifecycle": {
        "counts": {"cases": 2, "sessions": 14, "turns": 390, "questions": 58},
        "first": ("lifecycle-1/q0", "What is Jonas Holm's email?"),
        "tenth": ("lifecycle-1/q9", "What is Mara Karst's allergy?"),
        "last": ("lifecycle-2/q28", "Welchen Arbeitgeber hat Petra Velt?"),
    },
    "lifecycle": {
        "counts": {"cases": 2, "sessions": 14, "turns": 734, "questions": 58},
        "first": ("lifecycle-1/q0", "What is Jonas Holm's email?"),
        "tenth": ("lifecycle-1/q9", "What is Greta Pavel's allergy?"),
        "last": ("lifecycle-2/q28", "Welchen Arbeitgeber hat Tobias Tessel?"),
    },
    "demo_netops": {
        "counts": {"cases": 3, "sessions": 3, "turns": 23, "questions": 22},
        "first": ("ferry-terminal/f1", "What does the current runbook say about a lost uplink?"),
        "tenth": ("mountain-railway/m2", "Who handled the tunnel heat?"),
        "last": ("seed-library/q6", "Where is the vault for old snapshots?"),
    },
    "demo_opseval": {
        "counts": {"cases": 17, "sessions": 0, "turns": 0, "questions": 20},
        "first": ("Wired Network-0", "Which device forwards frames by MAC address?"),
        "tenth": ("5G Communication-1", "5G基站称为gNB"),
        "last": ("Log Analysis-3", "syslog默认使用的传输协议是"),
    },
    "demo_personamem": {
        "shows_a_cut": False,
        "counts": {"cases": 3, "sessions": 6, "turns": 26, "questions": 6},
        "first": ("demo-persona-1", "Where did I spend my mornings this spring?"),
        "last": ("demo-persona-6", "What could my neighbour and I try next?"),
    },
    "synthetic": {
        "counts": {"cases": 2, "sessions": 12, "turns": 219, "questions": 60},
        "first": ("synthetic-1/q0", "When did Malin visit the clock museum?"),
        "tenth": ("synthetic-1/q9", "What is Quentin's band name?"),
        "last": (
            "synthetic-2/q29",
            "How many pieces has Yorick bought for the thimble collection?",
        ),
    },
}
"""What is read of each data set, and how its format differs. A new data set fails until it has an
entry.
"""


class TestShippedDatasets(DatasetContract):
    """Runs the whole suite on each data set."""

    name: str
    examples = 30

    @pytest.fixture(autouse=True, params=SHOWN)
    def choose(self, request: pytest.FixtureRequest) -> None:
        self.name = request.param
        for pin, value in PINS.get(self.name, {}).items():
            setattr(self, pin, value)

    def build(self, **given: Any) -> Dataset:
        return build(
            self.name, NOWHERE, **({} if "path" in given else SMALL.get(self.name, {})) | given
        )

    def raw(self) -> Sequence[Any] | None:
        if not DATASETS[self.name].file:
            return None
        path = self.file_of(locate(DATASETS[self.name], NOWHERE))
        if path.suffix == ".csv":
            return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
        text = path.read_text(encoding="utf-8")
        records = (
            [json.loads(line) for line in text.splitlines()]
            if path.suffix == ".jsonl"
            else json.loads(text)
        )
        return records if isinstance(records, list) else [records]

    def write(self, records: Sequence[Any], folder: Path) -> Path:
        shipped = locate(DATASETS[self.name], NOWHERE)
        whole = folder / f"damaged{shipped.suffix}"
        if shipped.is_dir():
            shutil.copytree(shipped, whole, dirs_exist_ok=True)
        path = self.file_of(whole)
        if path.suffix == ".csv":
            written = io.StringIO()
            rows = [record if isinstance(record, dict) else {"": record} for record in records]
            writer = csv.DictWriter(written, dict.fromkeys(key for row in rows for key in row))
            writer.writeheader()
            writer.writerows(rows)
            path.write_bytes(written.getvalue().encode("utf-8", "surrogatepass"))
        elif path.suffix == ".jsonl":
            path.write_text(
                "".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8"
            )
        else:
            path.write_text(json.dumps(list(records)), encoding="utf-8")
        return whole

    def file_of(self, path: Path) -> Path:
        if not path.is_dir():
            return path

        return min(file for file in path.rglob("*") if file.suffix in (".csv", ".json"))


@pytest.mark.slow
class TestShippedDatasetsDamagedOften(TestShippedDatasets):
    """Tries as many damaged files as the suite does by default."""

    examples = 150


def test_every_adapter_is_covered() -> None:
    """Each adapter has a shipped set or generates its own, except json and forgeteval: they read a
    file that the user names, and are tested in test_own_json.py and test_forgeteval.py.
    """
    shown = {built_in_classes("dataset")[name] for name in [*SHOWN, "json", "forgeteval"]}
    assert shown == set(built_in_classes("dataset").values())
