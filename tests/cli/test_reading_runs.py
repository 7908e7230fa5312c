"""Commands that read a finished run neither import nor open what the run's files name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from command_line import completed, memeval

DRIVER = """
import json, sys

from memeval.cli.main import run_command

seen = []

def watch(event, arguments):
    named = str(arguments[0]) if arguments else ""
    if event == "open" and named.endswith("named_by_the_run.json"):
        seen.append(named)
    if event == "import" and named == "named_by_the_run":
        seen.append(named)

sys.addaudithook(watch)
for words in json.loads(sys.argv[1]):
    seen.clear()
    print("=====", json.dumps(words))
    status = run_command(words)
    print("=====", status, json.dumps(seen))
"""
"""Runs commands; after each, prints what it opened or imported of the names in the run."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("reading") / "home"
    few = ("dataset.limit_cases=1", "dataset.limit_questions=2", "tracking=none")
    completed(home, "-m", "system=bm25", "top_k=2,5", *few)
    return home


@pytest.mark.slow
@pytest.mark.parametrize("named", ["class", "path"])
def test_reading_a_run_opens_and_imports_nothing_that_it_names(
    finished: Path, tmp_path: Path, named: str
) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    data = tmp_path / "named_by_the_run.json"
    data.write_text("{}", encoding="utf-8")
    (tmp_path / "named_by_the_run.py").write_text("raise SystemExit(9)\n", encoding="utf-8")
    folders = sorted((home / "outputs" / "runs").iterdir())
    for folder in folders:
        config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
        for group in ("dataset", "system", "judge", "embedder"):
            config[group]["class"] = "named_by_the_run:Class"

        if named == "path":
            del config["dataset"]["class"]
            config["dataset"]["path"] = str(data)

        config["prompt"]["file"] = config["judge"]["prompt_file"] = str(data)
        (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    first, second = (folder.name for folder in folders)
    commands = [
        ["show", first, "demo-1/q0"],
        ["lint", first],
        ["verify", first],
        ["compare", first, second],
        ["list"],
        ["label", first, "--n", "2"],
        ["judge", "agree", first, second],
        ["show", first],
        ["show", first, "demo-1/q0", "--data", str(data)],
    ]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(commands)],
        env={**os.environ, "MEMEVAL_HOME": str(home), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    shown, linted, *others = done.stdout.split("===== [")[1:]
    reason = "memeval imports no other class" if named == "class" else "opens no file"
    assert reason in " ".join(shown.split()) and reason in " ".join(linted.split())
    assert "evidence is not shown" in shown
    assert all(text.rstrip().endswith("[]") for text in (shown, linted, *others[:-1]))
    if named == "path":
        assert "named_by_the_run.json" in others[-1].rpartition("=====")[2], "the user names it"


def test_data_option_of_show_makes_the_evidence_visible(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    (first, *_) = sorted((home / "outputs" / "runs").iterdir())
    own = next(Path(__file__).parents[2].glob("data/demo/demo.json"))
    config = yaml.safe_load((first / "config.yaml").read_text(encoding="utf-8"))
    config["dataset"]["path"] = str(own)
    (first / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    hidden = completed(home, "show", first.name, "demo-1/q0").out
    assert "not on this machine" in hidden and ".;" not in hidden
    shown = completed(home, "show", first.name, "demo-1/q0", "--data", str(own)).out
    assert "not on this machine" not in shown and "evidence is not shown" not in shown


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("show", "KEY", "demo-1/q0", "--data", "none.json"), "show: argument --data: none.json"),
        (("show", "KEY", "--data", __file__), "show reads --data only for a QUESTION"),
        (("lint", "KEY", "--data", "none.json"), "lint: argument --data: none.json does not exist"),
        (("lint", "KEY", "--prompt", "no.txt"), "--prompt no.txt can't be read: No such file or"),
        (("data", "import", ".", "--into", "x.json", "--redact-names", "n.txt"), "n.txt can't be"),
    ],
)
def test_a_file_that_is_missing_or_not_read_is_a_mistake(
    finished: Path, tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    (first, *_) = sorted((finished / "outputs" / "runs").iterdir())
    done = memeval(finished, *(first.name if word == "KEY" else word for word in words))
    assert done.status == 2 and reason in done.message and "Errno" not in done.err


@pytest.mark.parametrize("word", ["16e712a2", "@last"])
def test_an_empty_home_says_how_to_make_a_run(tmp_path: Path, word: str) -> None:
    done = memeval(tmp_path, "show", word)
    assert (done.status, done.message) == (2, f"memeval: unknown run '{word}'.")
    assert "this home has no finished runs; to make one:" in done.err


def test_a_damaged_config_hides_the_evidence_and_nothing_else(
    finished: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    (first, *_) = sorted((home / "outputs" / "runs").iterdir())
    (first / "config.yaml").write_text("dataset: [", encoding="utf-8")
    shown = " ".join(completed(home, "show", first.name, "demo-1/q0").out.split())
    assert "gold: 8 January 2023" in shown
    assert "evidence is not shown: data set 'demo' can't be read: config.yaml can't be" in shown
    (first / "config.yaml").unlink()
    shown = " ".join(completed(home, "show", first.name, "demo-1/q0").out.split())
    assert "evidence is not shown: " in shown and "can't be read: No such file or" in shown
    assert "data set 'demo'" not in shown and "Errno" not in shown
    (first / "records.jsonl").unlink()
    done = memeval(home, "show", first.name, "demo-1/q0")
    assert done.status == 2
    assert done.message.endswith("records.jsonl can't be read: No such file or directory")
