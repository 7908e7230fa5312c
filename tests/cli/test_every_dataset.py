"""Every shipped data set runs through the whole command line: `top_k` and a compression apply, and
its answers can be judged again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import Ended, completed, runs

from memeval.config.options import built_in_classes
from memeval.datasets.registry import DATASETS

pytestmark = pytest.mark.slow

SHIPPED = sorted(
    name
    for name in built_in_classes("dataset")
    if name.startswith("demo") or not DATASETS[name].file
)
FEW = ("dataset.limit_cases=2", "tracking=none")
CHANGED = ("top_k=3", "compression_turn=middle", "granularity=turn")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one run per data set."""
    folder = tmp_path_factory.mktemp("home")
    done: Ended = completed(
        folder, "-m", f"dataset={','.join(SHIPPED)}", "system=bm25", *CHANGED, *FEW
    )
    assert all(f"\n{name}\n" in done.out for name in SHIPPED), "a table each"
    return folder


def run_of(home: Path, name: str, imported: str = "false") -> dict[str, Any]:
    (found,) = (
        run for run in runs(home) if (run["dataset"], run["tags"]["imported"]) == (name, imported)
    )
    return found


@pytest.mark.parametrize("name", SHIPPED)
def test_answers_judged_again_give_the_same_metrics(home: Path, name: str) -> None:
    run = run_of(home, name)
    assert run["statuses"].keys() == {"ok"}
    assert (run["params"]["top_k"], run["params"]["compression_turn"]) == (3, "middle")
    hypotheses = home / "outputs" / "runs" / run["run_key"] / "hypotheses.jsonl"
    completed(home, "evaluate", str(hypotheses), f"dataset={name}", *FEW)
    again = run_of(home, name, imported="true")
    names = [
        metric
        for metric in run["metrics"]
        if metric.startswith(("accuracy", "token_f1", "n_questions"))
    ]
    assert len(names) > 5
    assert {metric: again["metrics"][metric] for metric in names} == {
        metric: run["metrics"][metric] for metric in names
    }
