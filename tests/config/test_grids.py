"""Sweeps that are unions of grids: the lines of a file give its cells, and each cell composes to
its line.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from memeval.config import plugins
from memeval.config.grids import cell_config, cells, replace_grids
from memeval.errors import UserError
from memeval.runs.compose.config import compose_config


@pytest.fixture
def sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sweeps, one of which has two grids."""
    monkeypatch.setattr(plugins, "sweeps_dir", lambda: tmp_path)
    text = (
        "sweep_name: mine\ngrids:\n  - system=bm25,rag top_k=3,wide dataset.limit_cases=1\n  - "
        "judge=token_f1 judge.threshold=0.7 seed=4\n"
    )
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "plain.yaml").write_text("sweep_name: plain\n", encoding="utf-8")
    return tmp_path


def test_a_grid_is_the_product_of_its_lists_and_grids_follow_one_another() -> None:
    assert cells(("a=1,2 b=x,y", "c=3")) == (
        ("a=1", "b=x"),
        ("a=1", "b=y"),
        ("a=2", "b=x"),
        ("a=2", "b=y"),
        ("c=3",),
    )
    assert cells(("dataset.categories=[1,2] n=range(0,2)",)) == (
        ("dataset.categories=[1,2]", "n=0"),
        ("dataset.categories=[1,2]", "n=1"),
    )


def test_sweep_with_grids_lists_its_cells(sweeps: Path) -> None:
    served = replace_grids(
        "mine", OmegaConf.create((sweeps / "mine.yaml").read_text(encoding="utf-8"))
    )
    assert "grids" not in served
    assert served.hydra.sweeper.params["+cell"] == "mine-1,mine-2,mine-3,mine-4,mine-5"
    assert replace_grids("plain", OmegaConf.create({"sweep_name": "plain"})) == {
        "sweep_name": "plain"
    }


@pytest.mark.slow
def test_a_cell_composes_to_what_its_line_says(sweeps: Path) -> None:
    last, wide = compose_config(["+cell=mine-5"]), compose_config(["+cell=mine-2"])
    assert (last.judge.name, last.judge.threshold, last.seed, last.system["name"]) == (
        "token_f1",
        0.7,
        4,
        "bm25",
    )
    assert (wide.top_k, wide.system["name"], wide.dataset["limit_cases"]) == (20, "bm25", 1)
    assert compose_config(["+cell=mine-3"]).top_k == 3
    assert compose_config(["+cell=mine-3", "system=no_memory"]).system["name"] == "no_memory"


def test_cell_past_the_last_is_refused(sweeps: Path) -> None:
    assert cell_config("mine-5") is not None
    assert cell_config("mine-6") is None and cell_config("mine-0") is None
    with pytest.raises(UserError, match="unknown cell 'mine-6'") as caught:
        compose_config(["+cell=mine-6"])
    assert caught.value.hints == ("cells of the sweeps with grids:  +cell=mine-1 to mine-5",)
    assert cell_config("plain-1") is None and cell_config("none-1") is None
