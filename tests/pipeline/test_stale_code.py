"""An edit of the code in a checkout makes exactly the stages again that run through it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forking import NO_PLOTS

import memeval
from memeval.config.sources import is_checkout

pytestmark = pytest.mark.slow

ROOT = Path(memeval.__file__).parents[1]
RUN = ("system=bm25", "tracking=none", "dataset.limit_cases=1", "dataset.limit_questions=3")
STAGES = re.compile(r"(prepare|answer|judge) (\d+)/\2(?: \((\d+) reused\))?")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what a checkout needs for a run."""
    if not is_checkout():
        pytest.skip("memeval runs from an installed package here")
    folder = tmp_path / "checkout"
    # Bytecode comes along: compiling all modules takes longer than the runs.
    for name in ("memeval", "conf", "sweeps"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copytree(ROOT / "data" / "demo", folder / "data" / "demo")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def made_again(checkout: Path, *words: str) -> set[str]:
    """The stages of which the command did anything; `figures` where it summed up the rows again."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    environment = {name: value for name, value in environment.items() if "MEMEVAL" not in name}
    environment |= NO_PLOTS

    # Half of a run's time is the compiling of modules that were not edited.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "memeval", *RUN, *words]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=True
    )
    if "already done: reused" in done.stderr:
        return set()
    counts = {
        stage: int(total) - int(reused or 0) for stage, total, reused in STAGES.findall(done.stderr)
    }
    assert set(counts) == {"prepare", "answer", "judge"}, done.stderr
    return {"figures", *(stage for stage, count in counts.items() if count)}


def edit(checkout: Path, module: str) -> None:
    """Adds a constant to a module."""
    path = checkout / "memeval" / module
    path.write_text(path.read_text(encoding="utf-8") + "\nEDITED = True\n", encoding="utf-8")


EVERYTHING = {"prepare", "answer", "judge", "figures"}


def test_an_edit_makes_the_stages_behind_it_again(checkout: Path) -> None:
    assert made_again(checkout) == EVERYTHING

    edit(checkout, "retrieval/bm25.py")
    assert made_again(checkout) == EVERYTHING

    edit(checkout, "pipeline/execute/reader.py")
    assert made_again(checkout) == {"answer", "judge", "figures"}

    edit(checkout, "judges/lexical.py")
    assert made_again(checkout) == {"judge", "figures"}

    edit(checkout, "report/markdown.py")
    edit(checkout, "systems/retrieval/rag.py")
    assert made_again(checkout) == set(), "this cell runs through neither"


def test_an_edit_of_what_stages_share_makes_them_again(checkout: Path) -> None:
    assert made_again(checkout) == EVERYTHING
    assert made_again(checkout) == set(), "nothing was edited"

    edit(checkout, "datasets/granularity.py")
    assert made_again(checkout) == EVERYTHING

    edit(checkout, "datasets/locomo/metrics.py")
    assert made_again(checkout) == {"judge", "figures"}, "a metric makes no answer again"

    edit(checkout, "metrics/retrieval.py")
    assert made_again(checkout) == {"figures"}, "what no judge reads makes only the figures again"

    edit(checkout, "pipeline/measure/figures.py")
    assert made_again(checkout) == {"figures"}


def test_a_constant_that_shapes_the_memory_is_part_of_its_key(checkout: Path) -> None:
    """`rolling` compresses after every 40 chunks: not a setting, but in the digest of the code."""
    rolling = "compression_turn=rolling"
    assert made_again(checkout, rolling) == EVERYTHING
    assert made_again(checkout, rolling) == set(), "nothing was edited"

    path = checkout / "memeval" / "pipeline" / "execute" / "compression.py"
    source = path.read_text(encoding="utf-8")
    assert "\nROLLING_TURNS = 40\n" in source

    # Of another length: bytecode of the same second and size would be taken for the edited file's.
    path.write_text(source.replace("\nROLLING_TURNS = 40\n", "\nROLLING_TURNS = 120\n"), "utf-8")
    assert made_again(checkout, rolling) == EVERYTHING


def test_memories_that_the_mock_model_extracted_are_made_again(checkout: Path) -> None:
    words = ("system=graphrag_lite", "llm=mock")
    assert made_again(checkout, *words) == EVERYTHING
    edit(checkout, "llm/mock.py")
    assert made_again(checkout, *words) == EVERYTHING
