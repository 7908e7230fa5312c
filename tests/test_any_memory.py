"""docs/any_memory.md is true: it prints the files that are tested, and its commands run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from forking import run_command_line
from served_examples import EXAMPLES, example_server

PAGE = (EXAMPLES.parent / "any_memory.md").read_text(encoding="utf-8")
ADDRESS = "http://localhost:8077"
MEMEVAL = "python -m memeval "
QUICK = f"{MEMEVAL}system=http system.base_url={ADDRESS}"
"""The command that `make test` runs; the others take as long, and are run with the slow tests."""


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return "".join(blocks).splitlines()


def test_the_files_are_printed_as_they_are_tested() -> None:
    for fence, name in (
        ("python", "memory_server.py"),
        ("typescript", "memory_server.ts"),
        ("python", "memory_program.py"),
        ("python", "mcp_server.py"),
        ("yaml", "my_conf/system/my_mcp.yaml"),
        ("yaml", "my_conf/system/my_http.yaml"),
    ):
        assert f"```{fence}\n{(EXAMPLES / name).read_text(encoding='utf-8')}```" in PAGE


def test_only_other_command_starts_the_example_server() -> None:
    assert [line for line in commands() if not line.startswith(MEMEVAL)] == [
        "python memory_server.py 8077"
    ]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with example_server() as serving:
        yield serving


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(line, marks=() if line == QUICK else pytest.mark.slow)
        for line in commands()
        if line.startswith(MEMEVAL)
    ],
)
def test_command_of_the_page_runs(command: str, address: str, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES, tmp_path / "work")
    option = folder / "my_conf" / "system" / "my_http.yaml"
    option.write_text(option.read_text(encoding="utf-8").replace(ADDRESS, address), "utf-8")
    words = shlex.split(command.replace(ADDRESS, address))[3:]
    few = ["dataset.limit_cases=1", "dataset.limit_questions=3", "tracking=none"]
    done = run_command_line(
        words if words[0] == "check" else [*words, *few],
        env={**os.environ, "MEMEVAL_HOME": str(tmp_path)},
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout + done.stderr
