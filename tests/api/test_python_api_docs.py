"""The guide to the Python API runs as written, and the reference matches the code."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import memeval

DOCS = Path(memeval.__file__).parents[1] / "docs"
# In its own process: a kernel is an asynchronous server that emits its own warnings.
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[1])
"""
CHECK = """
assert best.key in {run.key for run in [*runs, *swept.runs, run]}
assert len(wrong) > 0
assert retrieved["evidence"].mean() > 0
assert len(extracted) > 0
"""


@pytest.mark.slow
def test_the_guide_is_a_notebook_that_runs(
    tmp_path: Path, give_store: Callable[[Path], None]
) -> None:
    give_store(tmp_path)
    notebook = json.loads((DOCS / "python_api.ipynb").read_text(encoding="utf-8"))
    assert not any(cell.get("outputs") for cell in notebook["cells"])
    check = {**notebook["cells"][-1], "id": "check", "cell_type": "code", "source": CHECK}
    notebook["cells"].append({**check, "outputs": [], "execution_count": None})
    path = tmp_path / "guide.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")

    inherited = {name: value for name, value in os.environ.items() if name != "MEMEVAL_DATA_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(path)],
        cwd=tmp_path,
        env={
            **inherited,
            "HOME": str(tmp_path),
            "MEMEVAL_HOME": str(tmp_path),
            "MEMEVAL_PLOTS": "false",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    outputs = [
        output
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", ())
    ]
    shown = [output["data"] for output in outputs if "data" in output]
    assert sum("image/png" in data for data in shown) == 1
    pages = ["".join(data["text/html"]) for data in shown if "text/html" in data]
    assert len(pages) >= 8 and all(len(page) <= 20_000 for page in pages)
    assert [output for output in outputs if output.get("name") == "stderr"] == []


def test_guide_calls_match_the_signatures_of_the_api() -> None:
    notebook = json.loads((DOCS / "python_api.ipynb").read_text(encoding="utf-8"))
    called = set()
    for cell in notebook["cells"]:
        source = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
        for call in ast.walk(ast.parse(source)):
            if not isinstance(call, ast.Call):
                continue

            if found := re.fullmatch(r"memeval\.(\w+)", ast.unparse(call.func)):
                called.add(found[1])
                names = [word.arg for word in call.keywords if word.arg is not None]
                signature = inspect.signature(getattr(memeval, found[1]))
                # Raises `TypeError` if the function has no such argument.
                signature.bind(*call.args, **dict.fromkeys(names))

    assert {"run", "arun", "sweep", "plan", "compare", "gate", "load_runs"} <= set(called)


def test_guide_page_matches_the_notebook() -> None:
    made = runpy.run_path(str(DOCS / "notebook_reference.py"))["reference"]()
    page = (DOCS / "python_api.md").read_text(encoding="utf-8")
    assert page == made, "run:  python docs/notebook_reference.py"


def test_reference_page_matches_the_docstrings() -> None:
    page = (DOCS / "api_reference.md").read_text(encoding="utf-8")
    made = runpy.run_path(str(DOCS / "api_reference.py"))["reference"]()
    assert page == made, "run:  python docs/api_reference.py"


def test_every_public_name_has_a_docstring() -> None:
    page = (DOCS / "api_reference.md").read_text(encoding="utf-8")
    assert re.findall(r"^###? `(.+)`\n\n\n", page, re.MULTILINE) == []
