"""An objective that no cell will have is refused before the run starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from command_line import memeval

from memeval.config.options import built_in_classes
from memeval.datasets.contract import Dataset
from memeval.datasets.locate import build
from memeval.datasets.netops.adapter import GenericNetOps
from memeval.datasets.opseval.adapter import OpsEval
from memeval.datasets.registry import DATASETS
from memeval.pipeline.measure.objective import names_of_measures
from memeval.results import Record

NOWHERE = Path("/nowhere")
READ_FIRST = {"beam", "demo_beam", "locomo", "demo"}
"""Data sets whose metrics can't be computed without their file."""
QUIET = ("tracking=none", "dataset.limit_cases=1", "dataset.limit_questions=1")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "demo_beam", "demo_opseval"])
def test_a_misspelt_objective_is_refused_before_the_run(name: str, tmp_path: Path) -> None:
    ended = memeval(tmp_path, f"dataset={name}", "objective=acuracy", *QUIET)
    assert ended.status == 2
    assert "unknown metric as objective 'acuracy'. Did you mean: accuracy" in ended.err
    assert not list(tmp_path.glob("outputs/runs/*/records.jsonl"))


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("demo_personamem", "accuracy_at_position/3"),
        ("demo_opseval", "exact_set_accuracy"),
    ],
)
def test_metric_of_the_data_sets_protocol_can_be_the_objective(
    name: str, objective: str, tmp_path: Path
) -> None:
    ended = memeval(tmp_path, f"dataset={name}", f"objective={objective}", *QUIET)
    assert ended.status == 0, ended.err


def test_recall_of_a_category_can_be_the_objective_of_a_retrieval(tmp_path: Path) -> None:
    words = ("dataset=demo", "objective=recall_at_5/multi_hop", *QUIET)
    assert memeval(tmp_path, *words, "stages=retrieve").status == 0
    ended = memeval(tmp_path, *words)
    assert ended.status == 2 and "Did you mean: recall_at_" in ended.err


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_each_built_in_data_set_names_its_metrics(name: str) -> None:
    if name not in built_in_classes("dataset"):
        return

    dataset = build(name, NOWHERE, **({"path": "x"} if name == "json" else {}))
    names = dataset.measure_names
    assert names is not None
    assert bool(names) <= (type(dataset).measures is not Dataset.measures)
    if name not in READ_FIRST:
        assert set(dataset.measures([])) <= set(names)


class Silent(GenericNetOps):
    """Has its own metrics, but does not name them."""

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        return {"mine": 1.0}


class More(OpsEval):
    """Has other metrics than the class from which it inherits the names."""

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        return {"mine": 1.0}


@pytest.mark.parametrize("adapter", [Silent, More])
def test_custom_data_set_need_not_name_its_metrics(adapter: type[Dataset]) -> None:
    assert names_of_measures(adapter(NOWHERE, DATASETS["demo_netops"])) is None


def test_builtin_data_set_names_its_own_metrics() -> None:
    names = names_of_measures(OpsEval(NOWHERE, DATASETS["demo_opseval"]))
    assert names is not None and "jaccard" in names
