"""`--help` lists commands, groups and options, wherever it is on the command line."""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest
from command_line import completed

from memeval import __version__
from memeval.__main__ import main
from memeval.cli.main import COMMANDS, run_command
from memeval.config.paths import conf_dir, sweeps_dir


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> str:
    assert run_command(["--help", "all"]) == 0
    return capsys.readouterr().out


@pytest.fixture
def screen(capsys: pytest.CaptureFixture[str]) -> str:
    assert run_command(["--help"]) == 0
    return capsys.readouterr().out


def test_first_page_fits_a_screen_and_names_everything(screen: str) -> None:
    lines = screen.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for command in set(COMMANDS) - {"run"}:
        assert re.search(rf"^  (\w+, )?{command}\b", screen, re.MULTILINE), command
    for group in {path.parent.name for path in OPTIONS}:
        assert group in screen


def test_a_group_has_a_page(capsys: pytest.CaptureFixture[str], shown: str) -> None:
    for words in (["--help", "top_k"], ["help", "top_k"], ["-h", "top_k"]):
        assert run_command(words) == 0
        page = capsys.readouterr().out
        assert page.startswith("  top_k   or any positive integer\n")
        assert page in shown and "dataset" not in page

    assert run_command(["--help", "tok_k"]) == 2
    assert "unknown topic of --help 'tok_k'. Did you mean: top_k" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--config-dir {}", "--config-dir={}", "-cd {}"])
def test_options_of_ones_own_are_listed_with_their_folder(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "mine.yaml").write_text("# My own.\nname: mine\nsize: 3  # in cm\n")
    (tmp_path / "system" / "folder.yaml").mkdir()
    assert run_command([*option.format(tmp_path).split(), "--help", "system"]) == 0
    listed = capsys.readouterr().out
    assert f"     {'mine':<16} My own.\n       system.size=3  # in cm\n" in listed
    assert "   * bm25 " in listed


OPTIONS = sorted(path for path in conf_dir().glob("*/*.yaml") if path.parent.name != "sweep")


@pytest.mark.sampled(kept=12)
@pytest.mark.parametrize("file", OPTIONS, ids=lambda path: f"{path.parent.name}={path.stem}")
def test_an_option_is_listed_below_its_group_with_its_fields(shown: str, file: Path) -> None:
    group = re.search(rf"^  {file.parent.name}\b.*\n((?:   .*\n)+)", shown, re.MULTILINE)
    assert group is not None, file.parent.name
    option = re.search(rf"^   [* ] {file.stem} +(\S.*)\n((?:       .*\n)*)", group[1], re.MULTILINE)
    assert option is not None, (
        f"{file.stem} is missing, or its file begins with no comment that says what it is"
    )
    text = file.read_text(encoding="utf-8")
    fields = re.findall(r"^(\w+):", text, re.MULTILINE) if "@package _global_" not in text else []
    for name in set(fields) - {"name", "class", "defaults"}:
        assert re.search(rf"{file.parent.name}\.{name}(\.\w+)?=", option[2]), name


def test_every_field_fits_80_columns_and_is_named_in_full(shown: str) -> None:
    assert max(map(len, shown.splitlines())) < 80
    for name in ("system.recall.message_range", "llm.judge.model", "budget.usd", "store.url"):
        assert re.search(rf"^ +{re.escape(name)}=\S", shown, re.MULTILINE), name

    # A field that every option has, and none of their files.
    assert shown.count("system.timeout_s=") == shown.count("dataset.canaries=") == 1
    assert not re.search(r"^ +[\w.]+=( |$)", shown, re.MULTILINE)


def test_defaults_are_marked(shown: str) -> None:
    marked = dict(re.findall(r"^  (\w+)\b.*\n(?:   .*\n)*?   \* (\w+)", shown, re.MULTILINE))
    text = (conf_dir() / "config.yaml").read_text(encoding="utf-8")
    assert marked == dict(re.findall(r"^  - (\w+): (\w+)$", text, re.MULTILINE)) != {}


def test_top_level_fields_and_sweeps_are_listed(shown: str) -> None:
    for name in ("num_runs", "seed", "retain_recent", "min_coverage", "sweep_name"):
        assert re.search(rf"^    {name}=", shown, re.MULTILINE), name
    for sweep in sweeps_dir().glob("*.yaml"):
        assert re.search(rf"^    {sweep.stem} +\S", shown, re.MULTILINE), sweep.stem
    assert shown.count("or any positive integer") == 2


@pytest.mark.parametrize(
    "words",
    ["-h", "help", "run --help", "system=rag --help", "-m system=rag,bm25 -h"],
)
def test_help_is_the_same_wherever_it_is_asked_for(
    screen: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(words.split()) == 0
    assert capsys.readouterr().out == screen


@pytest.mark.parametrize(
    ("command", "option"),
    [("plan", "--exact"), ("prepare", "asks no questions"), ("evaluate", "--only-listed")],
)
def test_commands_that_take_settings_describe_their_own_arguments(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([command, "system=rag", "--help"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"usage: python -m memeval {command} ") and option in page
    assert max(map(len, page.splitlines())) < 80
    assert run_command([command, "--help", "top_k"]) == 0
    assert capsys.readouterr().out.startswith("  top_k")


def test_version_lists_and_composed_config_are_printed(tmp_path: Path) -> None:
    assert completed(tmp_path, "--version").out == f"{__version__}\n"
    assert "fetch" in completed(tmp_path, "data", "--help").out
    assert "locomo: LoCoMo" in completed(tmp_path, "data", "list").out
    composed = completed(tmp_path, "top_k=7", "--cfg", "job", "compression_turn=40").out
    assert "\ntop_k: 7\n" in composed and "\ncompression_turn: 40\n" in composed
    assert list(tmp_path.glob("outputs/runs/*")) == []


@pytest.mark.parametrize(("said", "message"), [((), "out of memory"), (("no 9 GiB",), "no 9 GiB")])
def test_lack_of_memory_is_reported_without_a_traceback(
    said: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def lack(_: object) -> int:
        raise MemoryError(*said)

    monkeypatch.setattr("memeval.cli.main._load_command", lambda _: lack)
    assert run_command(["data", "list"]) == 1
    assert capsys.readouterr().err.startswith(f"memeval: {message}\n  finished work is kept")


def refused(number: int, *said: str) -> OSError:
    return OSError(number, *(said or [os.strerror(number)]))


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (refused(errno.EAGAIN), "ulimit -u"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (refused(errno.EMFILE, os.strerror(errno.EMFILE), "rows.jsonl"), "ulimit -n"),
        (refused(errno.ENOMEM), "ulimit -v"),
    ],
    ids=["process", "thread", "file", "memory"],
)
def test_a_limit_of_the_system_is_reported_on_one_line(
    error: Exception,
    limit: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("memeval.cli.main._load_command", lambda _: Mock(side_effect=error))
    assert run_command(["verify"]) == 1
    line = capsys.readouterr().err
    assert line.startswith("memeval: ") and line.endswith(f"(its limit: {limit})\n")
    assert line.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a fault of memeval"),
        refused(errno.ENOENT),
        refused(errno.EAGAIN, "write could not complete without blocking"),
    ],
    ids=["other", "no-file", "full-pipe"],
)
def test_other_errors_are_not_taken_for_a_limit(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memeval.cli.main._load_command", lambda _: Mock(side_effect=error))
    with pytest.raises(type(error)):
        run_command(["verify"])


def test_a_command_runs_without_threads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse = Mock(side_effect=RuntimeError("can't start new thread"))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(sys, "argv", ["memeval", "--version"])
    assert main() == 0
    assert capsys.readouterr().out == f"{__version__}\n"
    assert refuse.call_count == 2
