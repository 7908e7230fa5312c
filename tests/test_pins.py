"""Everything that builds and installs the project is pinned to one version."""

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


def test_actions_are_pinned_by_commit_and_checkouts_keep_no_token() -> None:
    pages = [*ROOT.glob(".github/**/*.yml"), ROOT / "action.yml", *ROOT.glob("docs/**/*.md")]
    pages += [*ROOT.glob("recipes/**/*.*"), *ROOT.glob("memeval/**/*.yml*"), ROOT / "README.md"]
    used = []
    for page in pages:
        lines = page.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines):
            action = re.match(r"\s*(?:- )?uses: (\S+)(.*)", line)
            if action is None:
                continue

            used.append(action[1])
            assert re.search(r"@([0-9a-f]{40}|COMMIT)$", action[1]), f"{page.name}: {line}"
            assert action[2].strip().startswith("# "), f"{page.name}: {line} lacks its version"
            if "/checkout@" in action[1]:
                assert "persist-credentials: false" in "".join(lines[number : number + 5]), (
                    page.name
                )

    assert len(used) > 6
