"""What is imported when: nobody waits seconds for `--help`, or needs every provider's SDK to read a
page of it.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import memeval

HEAVY = ("mlflow", "chromadb", "openai", "mem0", "pandas", "hydra", "numpy", "rich")
LOADED = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"


def loaded_by(code: str) -> str:
    """The heavy packages that a fresh interpreter has loaded once it ran `code`: the last line that
    it prints.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code}\n{LOADED}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "code",
    [
        "import memeval",
        "import memeval.cli.run, memeval.runs.cell, memeval.cli.comparison",
        "from memeval.cli.main import run_command; assert run_command(['--help']) == 0",
        "from memeval.cli.main import run_command; assert run_command(['--version']) == 0",
        "from memeval.cli.main import run_command; assert run_command(['data', 'list']) == 0",
        "from memeval.cli.main import run_command; assert run_command(['runn']) == 2",
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    assert loaded_by(code) == "[]"


def test_the_measure_sees_an_import() -> None:
    assert loaded_by("import rich") == "['rich']"


@pytest.mark.parametrize("arguments", [["-c", "import memeval"], ["-m", "memeval", "--help"]])
def test_it_takes_less_than_a_second(arguments: list[str]) -> None:
    """The best of three: other work on the machine is no fault of ours."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, timeout=60, check=True)
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 1.0


ROOT = Path(memeval.__file__).parents[1]
NAMES = {"hydra": "hydra-core", "yaml": "pyyaml", "mem0": "mem0ai"}
"""Packages that are imported by another name than they are installed by."""
PRIVATE = {"hydra._internal"}
"""What is still used of other packages' private modules; nothing may be added."""


def imported() -> Iterator[tuple[str, Path]]:
    """The modules of other packages that memeval imports, and where."""
    for path in sorted((ROOT / "memeval").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]

            for module in modules:
                package = module.partition(".")[0]
                if package not in {*sys.stdlib_module_names, "memeval"}:
                    yield module, path


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [words for name, words in project["optional-dependencies"].items() if name != "dev"]
    declared = {
        re.split(r"[<>=!\[]", requirement)[0].lower()
        for requirements in (project["dependencies"], *extras)
        for requirement in requirements
    }
    undeclared = {
        str(path.relative_to(ROOT)): module
        for module, path in imported()
        if NAMES.get(package := module.partition(".")[0], package.replace("_", "-")) not in declared
    }
    assert undeclared == {}


def test_no_private_module_of_another_package_is_imported() -> None:
    private = {
        re.match(r".*?\._[a-z]\w*", module)[0]  # type: ignore[index]
        for module, _ in imported()
        if re.search(r"\._[a-z]", module)
    }
    assert private <= PRIVATE
