"""recipes/: each has locked versions, a server that compiles and valid options, and docs/recipes.md
names it.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
import requests

from memeval.config.settings import read_settings
from memeval.runs.compose.config import compose_config
from memeval.systems.external.mcp_settings import McpSettings

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
RECIPES = sorted(path.parent for path in ROOT.glob("recipes/*/requirements.in"))
MEMORIES = [path for path in RECIPES if (path / "server.py").is_file()]
CONF = ROOT / "recipes" / "conf"
KNOWN = {entry.name for entry in fields(McpSettings)}
LOCAL = ROOT / "recipes" / "local_model" / "serve.py"
LOCAL_PYTHON = ROOT / ".venv-local" / "bin" / "python"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_is_locked_and_documented(recipe: Path) -> None:
    assert f"recipes/{recipe.name}/" in PAGE
    for server in recipe.glob("*.py"):
        compile(server.read_text(encoding="utf-8"), str(recipe), "exec")
        assert f"recipes/{recipe.name}/{server.name}" in PAGE

    locked = (recipe / "requirements.txt").read_text(encoding="utf-8")
    pinned = re.findall(r"^([a-z0-9-]+)==(\S+)", locked, re.MULTILINE)
    assert len(pinned) > 3 and locked.count("--hash=sha256:") >= len(pinned)
    for wanted in (recipe / "requirements.in").read_text(encoding="utf-8").split():
        if "==" in wanted:
            assert tuple(wanted.split("==")) in pinned


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("recipe", MEMORIES, ids=lambda path: path.name)
def test_memory_of_a_recipe_is_a_system(recipe: Path) -> None:
    config = compose_config(["--config-dir", str(CONF), f"system={recipe.name}"])
    assert config.system["name"] == recipe.name
    assert config.system["base_url"] == "http://localhost:8077"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["server_memory", "am_memory"])
def test_mcp_server_of_a_recipe_is_a_system_with_a_folder_per_case(name: str) -> None:
    config = compose_config(["--config-dir", str(CONF), f"system={name}"])
    assert config.system["name"] == name
    settings = read_settings(McpSettings, {k: v for k, v in config.system.items() if k in KNOWN})
    assert settings.names_case
    assert settings.server().words
    assert f"system={name}" in PAGE


def test_npm_packages_are_locked_by_hash_and_name_no_host() -> None:
    (path,) = ROOT.glob("recipes/*/package-lock.json")
    packages = json.loads(path.read_text(encoding="utf-8"))["packages"]
    wanted = packages.pop("")["dependencies"]
    assert wanted == json.loads((path.parent / "package.json").read_text())["dependencies"]
    assert len(packages) > 50
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not any("resolved" in package for package in packages.values())
    for name, version in wanted.items():
        assert packages[f"node_modules/{name}"]["version"] == version


@pytest.mark.parametrize("module", ["serving", "scripted_tools"])
def test_shared_modules_of_recipes_compile(module: str) -> None:
    path = ROOT / "recipes" / f"{module}.py"
    compile(path.read_text(encoding="utf-8"), str(path), "exec")


def test_local_model_options_use_the_urls_of_its_server() -> None:
    config = compose_config(
        ["--config-dir", str(CONF), "llm=local_model", "embedder=local_model", "judge=llm"]
    )
    source = LOCAL.read_text(encoding="utf-8")
    model, embedder = config.llm, config.embedder
    assert (model.base_url, embedder.base_url) == tuple(
        f"http://localhost:{port}/v1" for port in (8078, 8079)
    )
    assert f'MODEL, EMBEDDER = "{model.model}", "{embedder.model}"' in source
    assert "8078" in source and "8079" in source


@pytest.mark.slow
@pytest.mark.skipif(not LOCAL_PYTHON.exists(), reason="make local-model was not run here")
def test_the_local_model_answers_and_embeds() -> None:
    words = [str(LOCAL_PYTHON), str(LOCAL), "0", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as serving:
        assert serving.stdout is not None
        try:
            printed = [serving.stdout.readline().decode() for _ in range(2)]
            model, embedder = (line.split(": ")[1].strip() for line in printed)
            asked = {"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 4}
            reply = requests.post(f"{model}/chat/completions", json=asked, timeout=120).json()
            assert reply["choices"][0]["message"]["content"]
            assert reply["usage"]["completion_tokens"] <= 4

            texts = ["The cat sleeps.", "A cat is asleep.", "The bank raised its rates."]
            rows = requests.post(f"{embedder}/embeddings", json={"input": texts}, timeout=120)
            cat, asleep, bank = (row["embedding"] for row in rows.json()["data"])
            assert len(cat) == 384 and sum(x * x for x in cat) == pytest.approx(1)
            near = sum(x * y for x, y in zip(cat, asleep, strict=True))
            far = sum(x * y for x, y in zip(cat, bank, strict=True))
            assert near > 0.7 and far < 0.3

            wrong = requests.post(f"{embedder}/embeddings", json={"texts": []}, timeout=120)
            assert wrong.status_code == 400
        finally:
            serving.terminate()

    assert serving.returncode == 0
