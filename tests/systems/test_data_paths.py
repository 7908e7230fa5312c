"""Finds where a program stores its data, from the environment variables in its script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memeval.systems.external.data_paths import data_paths_of


@pytest.mark.parametrize(
    ("script", "places"),
    [
        ("const file = process.env.MEMORY_FILE_PATH;", {"MEMORY_FILE_PATH": "{case_dir}/memory"}),
        ("path.resolve(process.env.DATA_DIR)", {"DATA_DIR": "{case_dir}"}),
        ("os.environ['NOTES_FOLDER']", {"NOTES_FOLDER": "{case_dir}"}),
        (
            'url: process.env.LIBSQL_URL || "file:./tool.db"',
            {"LIBSQL_URL": "file:{case_dir}/memory.db"},
        ),
        (
            'os.environ.get("STORE_URL", "sqlite:///a.db")',
            {"STORE_URL": "sqlite:///{case_dir}/memory.db"},
        ),
        (
            "process.env.GRAPH_PATH, process.env.STORE_PATH, process.env.GRAPH_PATH",
            {"GRAPH_PATH": "{case_dir}/memory", "STORE_PATH": "{case_dir}/store_path"},
        ),
        ('process.env.API_URL || "https://a.example"', {}),
        ("process.env.HOME", {}),
    ],
)
def test_variables_for_data_are_found_in_a_script(
    tmp_path: Path, script: str, places: dict[str, str]
) -> None:
    (tmp_path / "server.js").write_text(script, encoding="utf-8")
    assert data_paths_of(["node", str(tmp_path / "server.js")]) == places


@pytest.mark.parametrize("program", [[], ["node"], ["node", "--no-warnings"]])
def test_script_behind_a_link_of_npm_is_found(tmp_path: Path, program: list[str]) -> None:
    script, link = tmp_path / "index.js", tmp_path / "memory"
    script.write_text("process.env.MEMORY_FILE_PATH", encoding="utf-8")
    script.chmod(0o755)
    link.symlink_to(script)
    places = {"MEMORY_FILE_PATH": "{case_dir}/memory"}
    assert data_paths_of([*program, str(link), "--quiet"]) == places


def test_modules_of_a_python_package_are_found_by_its_command(tmp_path: Path) -> None:
    command, package = tmp_path / "bin/memory-mcp", tmp_path / "lib/python3.12/site-packages/notes"
    (package / "mcp").mkdir(parents=True)
    (package / "mcp/server.py").write_text('os.getenv("NOTES_PATH", "a.json")', encoding="utf-8")
    command.parent.mkdir()
    command.write_text("#!/v/bin/python3\nimport sys\nfrom notes.mcp.server import run\nrun()\n")
    command.chmod(0o755)
    assert data_paths_of([str(command), "serve"]) == {
        "NOTES_PATH": "{case_dir}/memory",
        "HOME": "{case_dir}",
    }
    command.write_text("#!/bin/sh\nfrom notes.mcp.server import run\n", encoding="utf-8")
    assert data_paths_of([str(command)]) == {}


@pytest.mark.parametrize("named", [{"bin": {"serve": "dist/a.js"}}, {"bin": "dist/a.js"}])
@pytest.mark.parametrize("where", ["node_modules", ".npm/_npx/0a/node_modules"])
def test_script_of_an_npx_package_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: object, where: str
) -> None:
    package = tmp_path / where / "@org/memory"
    (package / "dist").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps(named), encoding="utf-8")
    (package / "dist" / "a.js").write_text("process.env.GRAPH_FILE", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    places = {"GRAPH_FILE": "{case_dir}/memory"}
    assert data_paths_of(["npx", "-y", "@org/memory@1.2.0", "--quiet"]) == places
    (package / "package.json").write_text("[", encoding="utf-8")
    assert data_paths_of(["npx", "@org/memory"]) == {}
