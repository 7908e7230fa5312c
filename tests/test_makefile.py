"""`make clean` deletes nothing that was measured or paid for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
KEPT = ("outputs/runs/a/run.json", "mlruns/mlflow.db", "data/prepared/x", "data/cache/y.sqlite")


def make(folder: Path, target: str, answer: str = "") -> int:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")

    shutil.copy(MAKEFILE, folder / "Makefile")
    done = subprocess.run(
        ["make", target], cwd=folder, input=answer, capture_output=True, text=True, check=False
    )
    return done.returncode


@pytest.mark.parametrize(
    ("target", "answer", "stay"),
    [("clean", "", True), ("distclean", "no\n", True), ("distclean", "yes\n", False)],
)
def test_results_are_deleted_only_after_confirmation(
    tmp_path: Path, target: str, answer: str, stay: bool
) -> None:
    for name in KEPT:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")

    status = make(tmp_path, target, answer)
    assert (status == 0) == (answer != "no\n")
    assert [(tmp_path / name).exists() for name in KEPT] == [stay] * len(KEPT)
