"""Packaging: metadata and name for a package index, and the files that a container copies."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import metadata, version
from pathlib import Path
from urllib.parse import urlsplit

import memeval
from memeval.pipeline.open.versions import versions

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_distribution_is_memeval_bench_and_the_command_is_memeval() -> None:
    assert version("memeval-bench") == memeval.__version__ == versions()["memeval"]
    assert PROJECT["scripts"] == {"memeval": "memeval.__main__:main"}


def test_project_urls_are_valid() -> None:
    addresses = [urlsplit(address) for address in PROJECT["urls"].values()]
    assert {"Repository", "Changelog"} <= set(PROJECT["urls"])
    assert all(found.scheme == "https" and found.netloc for found in addresses)
    assert metadata("memeval-bench")["Description-Content-Type"] == "text/markdown"


def test_no_page_tells_to_install_the_unrelated_package() -> None:
    """`memeval` on the package index is an unrelated project."""
    wrong = re.compile(r"pip install '?memeval\b(?!-bench)|pypi\.org/project/memeval\b(?!-bench)")
    folders = ("memeval", "docs", "conf", "recipes", "sweeps", ".github")
    files = [path for name in folders for path in (ROOT / name).rglob("*") if path.is_file()]
    pages = [path for path in files if path.suffix != ".pyc"]
    pages += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "action.yml", "Dockerfile")]
    texts = {path: path.read_bytes().decode("utf-8", "replace") for path in pages}
    assert [path for path, text in texts.items() if wrong.search(text)] == []

    extras = set(PROJECT["optional-dependencies"])
    named = {
        extra for text in texts.values() for extra in re.findall(r"memeval-bench\[(\w+)", text)
    }
    assert {"mem0", "ray"} <= named <= extras


def test_container_runs_the_first_command_with_locked_packages() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    first = re.search(r"^FIRST_RUN := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    command = re.search(r"^CMD \[(.*)\]$", text, re.MULTILINE)
    assert first is not None and command is not None
    assert re.findall(r'"([^"]+)"', command[1]) == first[1].split()

    copied = re.findall(r"^COPY (requirements/\S+) (requirements/\S+) ", text, re.MULTILINE)
    assert copied == [("requirements/run.txt", "requirements/build.txt")]
    assert all((ROOT / path).is_file() for path in copied[0])
    assert text.count("--require-hashes") == 2 and "--no-build-isolation" in text
    # The sources of the wheel are not excluded from the build context.
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert "!data/demo" in left_out and not {"conf", "sweeps", "memeval"} & set(left_out)
