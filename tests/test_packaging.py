"""What a package index and a container take: metadata, the name, the files that are copied."""

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


def test_the_distribution_has_a_name_of_its_own_and_the_import_stays() -> None:
    assert version("memeval-bench") == memeval.__version__ == versions()["memeval"]
    assert PROJECT["scripts"] == {"memeval": "memeval.__main__:main"}


def test_every_address_is_one() -> None:
    addresses = [urlsplit(address) for address in PROJECT["urls"].values()]
    assert {"Repository", "Changelog"} <= set(PROJECT["urls"])
    assert all(found.scheme == "https" and found.netloc for found in addresses)
    assert metadata("memeval-bench")["Description-Content-Type"] == "text/markdown"


def test_nothing_says_to_install_the_package_of_another() -> None:
    """`memeval` on the package index is an unrelated project."""
    wrong = re.compile(r"pip install '?memeval\b(?!-bench)|pypi\.org/project/memeval\b(?!-bench)")
    folders = ("memeval", "docs", "conf", "recipes", "sweeps", ".github")
    pages = [path for name in folders for path in (ROOT / name).rglob("*") if path.is_file()]
    pages += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "action.yml", "Dockerfile")]
    texts = {path: path.read_bytes().decode("utf-8", "replace") for path in pages}
    assert [path for path, text in texts.items() if wrong.search(text)] == []

    extras = set(PROJECT["optional-dependencies"])
    named = {
        extra for text in texts.values() for extra in re.findall(r"memeval-bench\[(\w+)", text)
    }
    assert {"mem0", "ray"} <= named <= extras


def test_the_container_runs_the_first_command_from_the_locks() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    first = re.search(r"^FIRST_RUN := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    command = re.search(r"^CMD \[(.*)\]$", text, re.MULTILINE)
    assert first is not None and command is not None
    assert re.findall(r'"([^"]+)"', command[1]) == first[1].split()

    copied = re.findall(r"^COPY (requirements/\S+) (requirements/\S+) ", text, re.MULTILINE)
    assert copied == [("requirements/run.txt", "requirements/build.txt")]
    assert all((ROOT / path).is_file() for path in copied[0])
    assert text.count("--require-hashes") == 2 and "--no-build-isolation" in text
    # What the wheel is built from is not left out of what is copied.
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert "!data/demo" in left_out and not {"conf", "sweeps", "memeval"} & set(left_out)
