"""`make clean` deletes nothing that was measured or paid for; another Python is refused first."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
KEPT = ("outputs/runs/a/run.json", "mlruns/mlflow.db", "data/prepared/x", "data/cache/y.sqlite")


def make(folder: Path, *words: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")

    shutil.copy(MAKEFILE, folder / "Makefile")
    return subprocess.run(
        ["make", *words], cwd=folder, input=answer, capture_output=True, text=True, check=False
    )


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

    done = make(tmp_path, target, answer=answer)
    assert (done.returncode == 0) == (answer != "no\n")
    assert [(tmp_path / name).exists() for name in KEPT] == [stay] * len(KEPT)


@pytest.mark.parametrize("python", ["false", "python-that-does-not-exist"])
def test_another_python_is_refused_before_anything_is_made(tmp_path: Path, python: str) -> None:
    done = make(tmp_path, ".venv/bin/python", f"PYTHON={python}")
    assert done.returncode == 2 and "make PYTHON=python3.13" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]
