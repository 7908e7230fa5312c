"""The code that a result depends on: which modules count, and that an edit is noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import memeval
from memeval.config import sources
from memeval.config.sources import code_identity, reachable

PACKAGES = ("memeval.systems", "memeval.retrieval", "memeval.retrieval.embedding")
PRINT = """
from memeval.config.sources import code_identity, is_checkout
print(is_checkout(), code_identity(["memeval.retrieval.fusion"], within=["memeval.retrieval"]))
"""


def test_direct_and_indirect_imports_count() -> None:
    modules = reachable(["memeval.systems.retrieval.rag"], PACKAGES)
    assert {"memeval.systems.retrieval.rag", "memeval.retrieval.vectors"} <= modules
    assert "memeval.retrieval.embedding.contract" in modules, "rag -> dense -> contract"
    assert not any(module.startswith("memeval.judges") for module in modules)


def test_modules_outside_are_left_out() -> None:
    outside = ("memeval.retrieval.vectors",)
    modules = reachable(["memeval.systems.retrieval.rag"], PACKAGES, outside)
    assert "memeval.retrieval.vectors" not in modules


def test_identity_of_code_does_not_depend_on_order() -> None:
    one = code_identity(
        ["memeval.datasets.granularity", "memeval.systems.retrieval.bm25"], within=PACKAGES
    )
    other = code_identity(
        ["memeval.systems.retrieval.bm25", "memeval.datasets.granularity"], within=PACKAGES[::-1]
    )
    assert one == other != code_identity(["memeval.datasets.granularity"], within=PACKAGES)


def test_custom_code_is_left_to_the_caller() -> None:
    assert code_identity(["my_memory"]) == code_identity([])


def test_identity_of_a_release_is_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "is_checkout", lambda: False)
    assert code_identity(["memeval.datasets.granularity"]) == memeval.__version__


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the package as in a checkout."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(memeval.__file__).parent, tmp_path / "memeval", ignore=ignored)
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def printed(folder: Path, code: str = PRINT) -> list[str]:
    command = [sys.executable, "-c", code]
    environment = {"PYTHONPATH": str(folder), "PATH": "/usr/bin"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_edit_changes_only_the_identity_of_code_that_uses_it(checkout: Path) -> None:
    before = printed(checkout)
    unrelated = checkout / "memeval" / "judges" / "lexical.py"
    unrelated.write_text(unrelated.read_text() + "\n# another comment\n")
    assert printed(checkout) == before

    edited = checkout / "memeval" / "retrieval" / "fusion.py"
    edited.write_text(edited.read_text() + "\nEDITED = 1\n")
    after = printed(checkout)
    assert before[0] == after[0] == "True"
    assert before[1] != after[1]


def test_edit_of_a_table_next_to_a_module_changes_its_identity(checkout: Path) -> None:
    command = (
        "from memeval.config.sources import code_identity\n"
        "print(code_identity(['memeval.llm.extractive'], within=['memeval.llm.extractive']))"
    )
    before = printed(checkout, command)
    for name in ("words", "scoring", "artifacts"):
        table = checkout / "memeval" / "llm" / "extractive" / f"{name}.toml"
        table.write_text(table.read_text() + "# a comment\n")
        after = printed(checkout, command)
        assert after != before
        before = after


def test_installed_package_is_not_a_checkout(checkout: Path) -> None:
    (checkout / "pyproject.toml").unlink()
    assert printed(checkout) == ["False", memeval.__version__]


def test_data_file_counts_with_the_module_that_names_it(checkout: Path) -> None:
    named = checkout / "memeval" / "retrieval" / "fusion.py"
    named.write_text(named.read_text() + '\nWORDS = "words.yaml"\n')
    without = printed(checkout)

    words = named.with_name("words.yaml")
    words.write_text("first: [one]\n")
    before = printed(checkout)
    words.write_text("first: [two]\n")
    assert len({without[1], before[1], printed(checkout)[1]}) == 3
