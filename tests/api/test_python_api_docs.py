"""The guide to the Python API runs as it is written, and the reference is that of the code."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memeval

DOCS = Path(memeval.__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_guide_runs_from_the_first_block_to_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, give_store: Callable[[Path], None]
) -> None:
    give_store(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    monkeypatch.setenv("MEMEVAL_PLOTS", "false")
    monkeypatch.delenv("MEMEVAL_DATA_DIR", raising=False)
    names: dict[str, Any] = {}

    for block in BLOCK.findall((DOCS / "python_api.md").read_text(encoding="utf-8")):
        exec(compile(block, "python_api.md", "exec"), names)

    assert names["best"].key in {run.key for run in names["runs"]} | {names["run"].key}
    assert len(names["wrong"]) > 0
    assert names["retrieved"]["evidence"].mean() > 0


def test_the_reference_is_made_from_the_docstrings() -> None:
    page = (DOCS / "api_reference.md").read_text(encoding="utf-8")
    made = runpy.run_path(str(DOCS / "api_reference.py"))["reference"]()
    assert page == made, "run:  python docs/api_reference.py"


def test_every_public_name_has_a_docstring() -> None:
    page = (DOCS / "api_reference.md").read_text(encoding="utf-8")
    assert re.findall(r"^###? `(.+)`\n\n\n", page, re.MULTILINE) == []
