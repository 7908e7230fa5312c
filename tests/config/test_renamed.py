"""An option's old name works wherever a user writes it, and is warned of once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memeval
from memeval.__main__ import main
from memeval.config import grids, renamed
from memeval.config.grids import cells
from memeval.config.renamed import check_given_once
from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.runs.compose.config import compose_config

SMALL = ("dataset.limit_cases=1", "dataset.limit_questions=2", "tracking=none")
TABLE = {
    "system": {"old_bm25": "bm25", "old_rag": "rag"},
    "dataset": {"old_demo": "demo", "old_synthetic": "synthetic"},
    "judge": {"old_keyword": "keyword"},
    "granularity": {"old_session": "session"},
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and old names whose new ones every version has."""
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    for variable in ("MEMEVAL_DATA_DIR", "MEMEVAL_SESSION", "MEMEVAL_WARNED", "MEMEVAL_OUTPUTS"):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)
    monkeypatch.setattr(renamed, "RENAMED", TABLE)
    return tmp_path


def warning(old: str, new: str) -> str:
    return f"memeval: {old} is now called {new}; the old name works until 0.3"


def warnings_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if "is now called" in line]


def run_of(home: Path) -> dict[str, object]:
    [path] = (home / "outputs" / "runs").glob("*/run.json")
    run: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return run


def test_tags_need_no_plus() -> None:
    assert dict(compose_config(["tags.paper=table1"]).tags) == {"paper": "table1"}
    assert renamed.current_setting("tags={a: b}") == "tags={a: b}"


def test_every_old_name_leads_to_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for group, names in renamed.RENAMED.items():
        for old, new in names.items():
            assert renamed.renamed_to(group, old) in (None, new)
            assert compose_config([f"{group}={old}"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("system=old_bm25", "system=bm25"),
        ("dataset=old_demo", "dataset=demo"),
        ("judge=old_keyword", "judge=keyword"),
        ("granularity=old_session", "granularity=session"),
    ],
)
def test_a_group_takes_the_old_name_and_warns_once(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compose_config([old]) == compose_config([new])
    assert compose_config([old]) == compose_config([new])
    assert warnings_of(capsys.readouterr().err) == [warning(old, new)]


def test_a_run_is_the_same_run(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["system=old_bm25", *SMALL]) == 0
    first = capfd.readouterr()
    assert warnings_of(first.err) == [warning("system=old_bm25", "system=bm25")]
    assert "now called" not in first.out

    assert main(["system=bm25", *SMALL]) == 0
    assert "already done: reused" in capfd.readouterr().err
    command = str(run_of(home)["command"])
    assert "system=bm25" in command and "old_bm25" not in command


@pytest.mark.slow
def test_a_sweep_on_the_command_line(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "system=old_bm25,no_memory", "top_k=2,3", *SMALL]) == 0
    assert warnings_of(capfd.readouterr().err) == [warning("system=old_bm25", "system=bm25")]
    assert len(list((home / "outputs" / "runs").iterdir())) == 4


SWEEP = """# @package _global_
defaults:
  - override /dataset: old_demo
sweep_name: mine
hydra:
  sweeper:
    params:
      system: old_bm25,no_memory
"""
GRIDS = """# @package _global_
sweep_name: mine
grids:
  - dataset=old_demo system=old_bm25,no_memory
"""


@pytest.mark.parametrize("text", [SWEEP, GRIDS])
def test_a_sweep_of_the_users_own(
    text: str, home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sweeps = home / "sweeps"
    sweeps.mkdir()
    (sweeps / "mine.yaml").write_text(text, encoding="utf-8")
    for module in (grids, "memeval.config.integers"):
        target = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{target}.sweeps_dir", lambda: sweeps)

    assert main(["-m", "+sweep=mine", *SMALL]) == 0
    assert sorted(warnings_of(capfd.readouterr().err)) == [
        warning("dataset=old_demo", "dataset=demo"),
        warning("system=old_bm25", "system=bm25"),
    ]
    assert len(list((home / "outputs" / "runs").iterdir())) == 2


def test_a_sweep_in_a_folder_of_the_users_own(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = home / "conf"
    (folder / "sweep").mkdir(parents=True)
    (folder / "sweep" / "mine.yaml").write_text(SWEEP, encoding="utf-8")

    assert main(["-m", "+sweep=mine", *SMALL, "--config-dir", str(folder)]) == 0
    assert len(warnings_of(capfd.readouterr().err)) == 2
    assert len(list((home / "outputs" / "runs").iterdir())) == 2


def test_an_option_of_the_users_own(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its `name:` may be an old one, as may the option that it builds on."""
    folder = home / "conf" / "system"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("name: old_bm25\nstem: false\n", encoding="utf-8")
    (folder / "wide.yaml").write_text("defaults: [old_rag]\nchunk_size: 600\n", encoding="utf-8")
    words = ["--config-dir", str(folder.parent)]

    assert compose_config(["system=mine", *words]).system["name"] == "bm25"
    assert warnings_of(capsys.readouterr().err) == [warning("system=old_bm25", "system=bm25")]
    assert compose_config(["system=wide", *words]).system["name"] == "rag"
    assert warnings_of(capsys.readouterr().err) == [warning("system=old_rag", "system=rag")]


def test_the_python_api(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = memeval.run(*SMALL, system="old_bm25", dataset={"name": "old_demo"}, progress=False)
    assert len(warnings_of(capfd.readouterr().err)) == 2
    assert run.params["system"] == "bm25"
    assert "old_" not in run.summary.command
    assert [found.key for found in memeval.load_runs(dataset="old_demo")] == [run.key]


def test_runs_that_are_older_than_the_new_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = memeval.run(*SMALL, system="bm25", progress=False)
    monkeypatch.setattr(renamed, "RENAMED", {"dataset": {"demo": "demonstration"}})
    monkeypatch.setattr(renamed, "conf_dir", lambda: home)
    assert [found.key for found in memeval.load_runs(dataset="demonstration")] == [run.key]


@pytest.mark.parametrize("action", ["verify", "stats", "fetch"])
def test_commands_on_data(action: str, capfd: pytest.CaptureFixture[str]) -> None:
    main(["data", action, "old_demo"])
    said = capfd.readouterr()
    assert said.err.startswith(warning("dataset=old_demo", "dataset=demo"))
    assert "unknown" not in said.err


def test_data_make(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = home / "made.json"
    words = ["dataset.tokens=3000", "dataset.n_cases=1"]
    assert main(["data", "make", "old_synthetic", str(file), *words]) == 0
    said = capfd.readouterr()
    assert "dataset=synthetic dataset.path" in said.out
    assert len(warnings_of(said.err)) == 1


def test_prepare(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare", "system=old_bm25", *SMALL]) == 0
    assert warnings_of(capfd.readouterr().err) == [warning("system=old_bm25", "system=bm25")]


def test_evaluate(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    question = next(iter(memeval.run(*SMALL, system="bm25", progress=False).records().question_id))
    file = home / "answers.jsonl"
    file.write_text(json.dumps({"question_id": question, "hypothesis": "Rome"}), encoding="utf-8")

    main(["evaluate", str(file), "--only-listed", "dataset=old_demo", "tracking=none"])
    assert warnings_of(capfd.readouterr().err) == [warning("dataset=old_demo", "dataset=demo")]
    [command] = [
        run.summary.command for run in memeval.load_runs() if "evaluate" in run.summary.command
    ]
    assert "dataset=demo" in command


@pytest.mark.parametrize(("group", "name"), [("system", "bm52"), ("dataset", "dmo")])
def test_an_unknown_name_is_still_answered_with_the_nearest(group: str, name: str) -> None:
    with pytest.raises(UserError, match="Did you mean: ") as refused:
        compose_config([f"{group}={name}"])
    assert "old_" not in str(refused.value), "old names are not advertised"


def test_exit_status_and_output_stay(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["system=old_bm25", "judge=nonsense"]) == 2
    assert "unknown judge 'nonsense'" in capfd.readouterr().err


def test_a_config_that_names_no_old_option_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(compose_config([]), RunConfig)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "form"),
    [
        (["-m", "system=bm25", "system=rag"], "-m system=bm25,rag"),
        (["system=bm25", "+system=rag"], "-m system=bm25,rag"),
        (["top_k=3", "++top_k=5"], "-m top_k=3,5"),
        (["-m", "system=bm25,rag", "system=dense"], "-m system=bm25,rag,dense"),
        (["sample=5", "dataset.sample=6"], "-m dataset.sample=5,6"),
    ],
)
def test_a_setting_that_is_given_twice_is_refused_with_the_form_that_is_meant(
    words: list[str], form: str
) -> None:
    with pytest.raises(UserError, match="is given twice") as refused:
        check_given_once(words)

    assert f"to compare both:  python -m memeval {form}" in refused.value.hints


def test_the_same_word_twice_says_the_same() -> None:
    words = ["system=bm25", "tracking=none", "tracking=none", "tags.a=1", "tags.b=2"]
    check_given_once(words)


def test_a_grid_that_drops_a_system_is_refused() -> None:
    with pytest.raises(UserError, match="system is given twice"):
        list(cells(["system=bm25 system=rag"]))
