"""What builds and installs the project has one version each."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_build_backend_is_pinned() -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"][
        "requires"
    ]
    assert all(re.fullmatch(r"[a-z]+==[0-9.]+", requirement) for requirement in required)


def test_the_fallback_uv_is_pinned() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^UV_VERSION := [0-9]+\.[0-9]+\.[0-9]+$", makefile, re.MULTILINE)
    installs = re.findall(r"pip install --quiet (\S+);", makefile)
    assert installs and all(install == "uv==$(UV_VERSION)" for install in installs)
