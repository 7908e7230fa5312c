"""An edit of the code in a checkout repeats exactly the stages that use it."""

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
    """A copy of the parts of a checkout that a run needs."""
    if not is_checkout():
        pytest.skip("memeval runs from an installed package here")
    folder = tmp_path / "checkout"
    # Bytecode is copied, too: compiling all modules takes longer than the runs.
    for name in ("memeval", "conf", "sweeps"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copytree(ROOT / "data" / "demo", folder / "data" / "demo")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def made_again(checkout: Path, *words: str) -> set[str]:
    """The stages in which the command did anything; `figures` if it summarised the rows again."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    environment = {name: value for name, value in environment.items() if "MEMEVAL" not in name}
    environment |= NO_PLOTS

    # Half of a run's time would be spent compiling modules that were not edited.
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


def test_edit_repeats_the_stages_that_use_the_module(checkout: Path) -> None:
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


def test_edit_of_shared_code_repeats_all_stages_that_use_it(checkout: Path) -> None:
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


def test_constant_of_the_compression_is_part_of_the_memory_key(checkout: Path) -> None:
    """`rolling` compresses after every 40 chunks: that is not a setting, but it is in the digest of
    the code.
    """
    rolling = "compression_turn=rolling"
    assert made_again(checkout, rolling) == EVERYTHING
    assert made_again(checkout, rolling) == set(), "nothing was edited"

    path = checkout / "memeval" / "pipeline" / "execute" / "compression.py"
    source = path.read_text(encoding="utf-8")
    assert "\nROLLING_TURNS = 40\n" in source

    # With another length: bytecode of the same second and size would be used for the edited file.
    path.write_text(source.replace("\nROLLING_TURNS = 40\n", "\nROLLING_TURNS = 120\n"), "utf-8")
    assert made_again(checkout, rolling) == EVERYTHING


def test_edit_of_the_mock_model_repeats_its_extractions(checkout: Path) -> None:
    words = ("system=graphrag_lite", "llm=mock")
    assert made_again(checkout, *words) == EVERYTHING
    edit(checkout, "llm/mock.py")
    assert made_again(checkout, *words) == EVERYTHING


def test_edit_of_a_check_of_tool_calls_repeats_the_answers(checkout: Path) -> None:
    words = ("reader=tools", "llm=mock")
    made_again(checkout, *words)
    edit(checkout, "pipeline/execute/tool_arguments.py")
    assert made_again(checkout, *words) == {"answer", "judge", "figures"}

    edit(checkout, "pipeline/execute/timeline.py")
    assert made_again(checkout, *words) == EVERYTHING
