"""Versions: labels, the commit of the user's code, references like `@last`, tags, `history`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from command_line import completed, memeval

from memeval.pipeline.open.opening import open_cell
from memeval.runs.compose.config import compose_config

FAST = ("dataset=demo", "tracking=none", "plots=false", "dataset.limit_questions=4")
OWN = """
from memeval.systems.retrieval.bm25 import Bm25


class Notes(Bm25):
    \"\"\"Notes of one's own.\"\"\"
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two labelled versions of one system, and a run of another."""
    folder = tmp_path_factory.mktemp("home")
    completed(folder, "label=v1", "system=no_memory", "tags.paper=table2", *FAST)
    completed(folder, "label=v2", "system=oracle", *FAST)
    completed(folder, "label=v2", "system=no_memory", *FAST)
    return folder


def listed(home: Path, *words: str) -> list[dict[str, object]]:
    content: list[dict[str, object]] = json.loads(completed(home, "list", "--json", *words).out)
    return content


@pytest.mark.slow
def test_runs_of_two_labels_are_kept_apart_and_named(home: Path) -> None:
    runs = listed(home)
    assert [(run["system"], run["label"]) for run in runs] == [
        ("no_memory", "v1"),
        ("oracle", "v2"),
        ("no_memory", "v2"),
    ]
    table = completed(home, "list", "system=no_memory").out
    assert "no_memory v1 " in table and "no_memory v2 " in table


def test_list_filters_runs_by_tag(home: Path) -> None:
    assert [run["label"] for run in listed(home, "tags.paper=table2")] == ["v1"]
    assert listed(home, "tags.paper=table2")[0]["tags"] == {"paper": "table2"}
    done = memeval(home, "list", "tags.papr=table2")
    assert done.status == 2 and "Did you mean: tags.paper" in done.message


def test_finished_run_takes_the_tags_of_a_later_command(tmp_path: Path) -> None:
    completed(tmp_path, "system=no_memory", *FAST)
    completed(tmp_path, "system=no_memory", "tags.version=one", *FAST)

    (run,) = listed(tmp_path)

    assert run["tags"] == {"version": "one"}
    assert completed(tmp_path, "verify").status == 0


def test_finished_runs_take_the_tags_of_a_later_sweep(tmp_path: Path) -> None:
    sweep = ("-m", "system=no_memory,constant")
    completed(tmp_path, *sweep, *FAST)
    completed(tmp_path, *sweep, "tags.version=one", *FAST)

    assert [run["tags"] for run in listed(tmp_path)] == [{"version": "one"}] * 2


def test_previous_is_the_run_before_last_of_the_same_system(home: Path) -> None:
    done = completed(home, "compare", "@previous", "@last", "--json")

    content = json.loads(done.out)

    keys = {run["key"]: run["label"] for run in listed(home, "system=no_memory")}
    assert [keys[run["key"]] for run in content["runs"]] == ["v1", "v2"]
    assert completed(home, "show", "@label:v1").out.startswith("no_memory v1 ")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("@label:v2", "2 runs are named '@label:v2'"),
        ("@label:v3", "unknown run '@label:v3'. Did you mean: "),
        ("@first", "@label:NAME for a run made with label=NAME"),
    ],
)
def test_reference_without_a_single_run_is_refused(home: Path, word: str, message: str) -> None:
    done = memeval(home, "show", word)
    assert done.status == 2 and message in done.err


def test_invalid_labels_are_refused(home: Path) -> None:
    for label in ("@v1", 50 * "v", "'  '"):
        done = memeval(home, f"label={label}", *FAST)
        assert done.status == 2 and done.message.startswith("memeval: label ")


@pytest.mark.parametrize(("system", "same"), [("http", False), ("bm25", True)])
def test_label_changes_keys_only_if_the_systems_code_is_remote(system: str, same: bool) -> None:
    words = [f"system={system}"]
    if system == "http":
        words.append("system.base_url=http://127.0.0.1:9")

    plain = open_cell(compose_config(words), "")
    labelled = open_cell(compose_config([*words, "label=v2"]), "")

    assert (plain.keys(0) == labelled.keys(0)) is same
    assert plain.run_key != labelled.run_key


@pytest.mark.slow
def test_label_of_a_class_is_its_commit_and_its_edits(tmp_path: Path) -> None:
    file = tmp_path / "own_notes.py"
    file.write_text(OWN, encoding="utf-8")
    git = ["git", "-C", str(tmp_path), "-c", "user.email=a@example.com", "-c", "user.name=a"]
    for arguments in (["init", "-q"], ["add", file.name], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)

    commit = subprocess.run(
        [*git, "rev-parse", "--short=7", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    words = ("system.class=own_notes:Notes", *FAST)
    completed(tmp_path, *words, PYTHONPATH=str(tmp_path))
    file.write_text(f"{OWN}\n# edited\n", encoding="utf-8")
    completed(tmp_path, *words, PYTHONPATH=str(tmp_path))

    first, second = (run["label"] for run in listed(tmp_path))

    assert first == commit
    assert str(second).startswith(f"{commit} edited ")


def test_history_says_which_steps_show_a_difference(tmp_path: Path) -> None:
    words = ("dataset=demo", "tracking=none", "plots=false", "system=rag")
    completed(tmp_path, *words, "label=v1", "top_k=1")
    completed(tmp_path, *words, "label=v2", "top_k=10")
    completed(tmp_path, *words, "label=v3", "top_k=8")

    done = completed(tmp_path, "history", "system=rag")

    text = " ".join(done.out.split())
    assert "is higher than" in text and "No difference shown between" in text
    assert [line.split()[0] for line in done.out.splitlines() if line.startswith("v")] == [
        "version",
        "v1",
        "v2",
        "v3",
    ]
    picture = Path(done.out.rpartition("plot: ")[2].strip())
    assert picture.stat().st_size > 1000 and picture.with_suffix(".svg").is_file()


def test_history_needs_two_runs_of_one_system(home: Path) -> None:
    done = memeval(home, "history")
    assert done.status == 2 and "the runs have 2 systems: no_memory, oracle" in done.message
    assert "choose one:  system=no_memory" in done.err
    done = memeval(home, "history", "system=oracle")
    assert done.status == 2 and "history needs two finished runs" in done.message
    done = memeval(home, "history", "system=no_memory", "--last", "1")
    assert "history needs two finished runs, but only one is chosen" in done.message
