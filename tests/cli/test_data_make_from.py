"""`data make NAME FILE FROM…`: builds the file of a data set from its published sources."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow
import pytest
from command_line import ROOT, memeval
from pyarrow import parquet

DEJAVU = "timestamp,root_cause_node,fault_type\n1600000000,os_017,cpu\n1600090000,a;b,net\n"
OPENRCA = "component: Redis02\nlevel: node\nreason: high CPU usage\ndatetime: 2021-03-04 14:57:00"


def test_the_incidents_are_made_from_published_sources(tmp_path: Path) -> None:
    faults = tmp_path / "shop" / "faults.csv"
    faults.parent.mkdir()
    faults.write_text(DEJAVU, encoding="utf-8")
    rca = tmp_path / "rca"
    rca.mkdir()
    later = OPENRCA.replace("03-04", "05-06")
    with (rca / "agent-bank.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["groundtruth"], [OPENRCA], [later]])

    made = tmp_path / "incidents.csv"
    done = memeval(tmp_path, "data", "make", "incidents", str(made), str(faults), str(rca))

    assert done.status == 0, done.message
    assert "3 incidents of 2 sources" in done.out
    assert "1 of 4 have several root causes" in done.out
    rows = list(csv.DictReader(made.read_text(encoding="utf-8").splitlines()))
    assert [row["dataset"] for row in rows] == ["shop", "openrca-bank", "openrca-bank"]
    assert rows[1]["component"] == "Redis02"
    assert rows[1]["datetime_local"] == "2021-03-04 14:57:00"
    run = memeval(
        tmp_path,
        "dataset=incidents",
        f"dataset.path={made}",
        "dataset.allow_unpinned=true",
        "tracking=none",
    )
    assert run.status == 0, run.message


def test_a_split_of_memory_agent_bench_is_made_from_parquet(tmp_path: Path) -> None:
    rows = json.loads((ROOT / "data" / "demo" / "memae.json").read_text(encoding="utf-8"))
    kept = [{"context": row["context"], "questions": row["questions"]} for row in rows]
    source = tmp_path / "split.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(kept), source)

    made = tmp_path / "Conflict_Resolution.json"
    done = memeval(tmp_path, "data", "make", "memory_agent_bench", str(made), str(source))

    assert done.status == 0, done.message
    assert json.loads(made.read_text(encoding="utf-8")) == kept


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("incidents", "x.csv"), "name at least one"),
        (("incidents", "x.csv", "nowhere"), "nowhere"),
        (("synthetic", "x.json", "other.json"), "can't be made from other files"),
        (("memory_agent_bench", "x.json", __file__), "can't be read as Parquet"),
    ],
)
def test_make_refuses_invalid_sources_on_one_line(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = memeval(tmp_path, "data", "make", *words)
    assert done.status == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / words[1]).exists()


def test_fetch_names_data_make_for_sets_it_cannot_fetch(tmp_path: Path) -> None:
    for name in ("incidents", "memory_agent_bench"):
        done = memeval(tmp_path, "data", "fetch", name)
        assert done.status == 2
        assert f"data make {name}" in done.err


@pytest.mark.slow
@pytest.mark.real_data
def test_file_made_from_parquet_equals_the_registered_file(tmp_path: Path, data_dir: Path) -> None:
    registered = data_dir / "memoryagentbench" / "Conflict_Resolution.json"
    if not registered.is_file():
        pytest.skip("memory_agent_bench is not on this machine")

    source, made = tmp_path / "split.parquet", tmp_path / "made.json"
    rows = json.loads(registered.read_text(encoding="utf-8"))
    parquet.write_table(pyarrow.Table.from_pylist(rows), source)
    done = memeval(tmp_path, "data", "make", "memory_agent_bench", str(made), str(source))
    assert done.status == 0, done.message
    assert made.read_bytes() == registered.read_bytes()
