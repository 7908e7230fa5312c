"""What must hold between systems, or the measurement is broken: more evidence in the context never
looks worse than less.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import Command

from memeval.systems.registry import SYSTEMS as REGISTRY
from memeval.systems.registry import built_in

SYSTEMS = sorted(set(built_in()) - {"letta", "http", "mcp", "command"})
CLASSES = sorted({REGISTRY.path_of(name): name for name in reversed(SYSTEMS)}.values())
"""One name per class; the other names are the same code with other settings."""
CONTROLS = {"no_memory", "oracle", "long_context", "bm25", "dense"}


def runs(home: Path) -> dict[str, dict[str, Any]]:
    """Summaries by system."""
    read = (
        json.loads(path.read_text(encoding="utf-8"))
        for path in (home / "outputs" / "runs").glob("*/run.json")
    )
    return {run["params"]["system"]: run for run in read}


def check_order(found: dict[str, dict[str, Any]]) -> None:
    oracle = found["oracle"]["metrics"]
    assert oracle["ranking_session_recall_at_20"] == pytest.approx(1.0, abs=0.01)
    for name, run in found.items():
        for metric in ("recall_at_10", "ranking_session_recall_at_20", "ranking_hit_at_20"):
            value = run["metrics"].get(metric)
            assert value is None or value <= oracle[metric] + 1e-9, (
                f"{name} beats the oracle in {metric}"
            )
    accuracy = {name: run["metrics"]["accuracy"] for name, run in found.items()}
    assert accuracy["long_context"] >= accuracy["no_memory"]
    assert all(
        accuracy["oracle"] >= accuracy[name]
        for name in ("no_memory", "bm25", "dense", "long_context")
    )


@pytest.mark.parametrize(
    "systems",
    [
        pytest.param(CLASSES, id="one of each class"),
        pytest.param(
            sorted(CONTROLS | (set(SYSTEMS) - set(CLASSES))),
            id="the others",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_all_systems_on_the_demo_set_are_ordered_plausibly(
    memeval: Command, tmp_path: Path, systems: list[str]
) -> None:
    memeval(
        "-m",
        f"system={','.join(systems)}",
        "dataset=demo",
        "dataset.limit_cases=3",
        "dataset.limit_questions=12",
        "tracking=none",
    )
    found = runs(tmp_path)
    assert sorted(found) == systems
    assert all(run["metrics"]["coverage"] == 1.0 and run["valid"] for run in found.values())
    check_order(found)


@pytest.mark.slow
@pytest.mark.real_data
def test_systems_on_locomo_are_ordered_plausibly(
    memeval: Command, tmp_path: Path, data_dir: Path
) -> None:
    ladder = "no_memory,oracle,long_context,bm25,dense,native,cogcanvas"
    limits = ("dataset.limit_cases=1", "dataset.limit_questions=60")
    memeval(
        "-m",
        f"system={ladder}",
        "dataset=locomo",
        *limits,
        "tracking=none",
        MEMEVAL_DATA_DIR=str(data_dir),
    )
    check_order(runs(tmp_path))


@pytest.mark.slow
def test_native_under_middle_forgets_the_first_half(memeval: Command, tmp_path: Path) -> None:
    """Judged by the answers: few are right if their evidence is in the first half, more if it is in
    the second.
    """
    cell = ("dataset=demo", "tracking=none", "dataset.categories=[4]", "dataset.images=none")
    memeval(*cell, "system=native", "compression_turn=middle")
    (records_file,) = (tmp_path / "outputs" / "runs").glob("*/records.jsonl")
    rows = [json.loads(line) for line in records_file.read_text(encoding="utf-8").splitlines()]
    demo = {
        sample["sample_id"]: sample
        for sample in json.loads((Path("data") / "demo" / "demo.json").read_text(encoding="utf-8"))
    }
    early, late = [], []
    for row in rows:
        talk = demo[row["case_id"]]["conversation"]
        names = sorted(
            (name for name in talk if isinstance(talk[name], list)),
            key=lambda name: int(name.split("_")[1]),
        )
        turns = [turn["dia_id"] for name in names for turn in talk[name]]
        kept = set(turns[len(turns) // 2 - 5 :])
        right = row["verdict"]["label"] == "correct"
        (late if set(row["evidence"]) <= kept else early).append(right)
    assert early and late
    # Some early facts, such as a name or a place, are repeated later.
    assert sum(early) / len(early) < 0.2 < sum(late) / len(late)
