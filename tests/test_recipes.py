"""recipes/: each has locked versions, a sound server and a system, and docs/recipes.md names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memeval.runs.compose.config import compose_config

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
RECIPES = sorted(path for path in (ROOT / "recipes").iterdir() if (path / "server.py").is_file())


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_is_locked_and_documented(recipe: Path) -> None:
    source = (recipe / "server.py").read_text(encoding="utf-8")
    compile(source, str(recipe), "exec")
    assert f"recipes/{recipe.name}/server.py" in PAGE

    locked = (recipe / "requirements.txt").read_text(encoding="utf-8")
    pinned = re.findall(r"^([a-z0-9-]+)==(\S+)", locked, re.MULTILINE)
    assert len(pinned) > 3 and locked.count("--hash=sha256:") >= len(pinned)
    for wanted in (recipe / "requirements.in").read_text(encoding="utf-8").split():
        if "==" in wanted:
            assert tuple(wanted.split("==")) in pinned


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_is_a_system(recipe: Path) -> None:
    folder = ROOT / "recipes" / "conf"
    config = compose_config(["--config-dir", str(folder), f"system={recipe.name}"])
    assert config.system["name"] == recipe.name
    assert config.system["base_url"] == "http://localhost:8077"


@pytest.mark.parametrize("module", ["serving", "scripted_tools"])
def test_what_recipes_share_compiles(module: str) -> None:
    path = ROOT / "recipes" / f"{module}.py"
    compile(path.read_text(encoding="utf-8"), str(path), "exec")
