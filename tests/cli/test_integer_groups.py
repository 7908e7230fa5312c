"""`top_k` and `compression_turn` take integers wherever an option is allowed.

Runs record the resolved values.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from command_line import SMALL, completed, memeval, runs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's own config folder."""
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def write(folder: Path, name: str, text: str) -> None:
    path = folder / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"# @package _global_\n{dedent(text)}", encoding="utf-8")


def resolved(home: Path) -> set[tuple[Any, Any]]:
    return {(run["params"]["top_k"], run["params"]["compression_turn"]) for run in runs(home)}


PLAIN = """
    sweep_name: plain
    hydra:
      sweeper:
        params:
          system: no_memory
          top_k: 7
          compression_turn: 40,rolling
"""


@pytest.mark.slow
def test_sweep_file_can_have_plain_integers(tmp_path: Path, folder: Path) -> None:
    write(folder, "sweep/plain", PLAIN)
    done = completed(tmp_path, "-m", "--config-dir", str(folder), "+sweep=plain", *SMALL)
    assert resolved(tmp_path) == {(7, 40), (7, "rolling")}
    assert {run["tags"]["sweep"] for run in runs(tmp_path)} == {"plain"}
    assert "compress=40" in done.err
    (fortieth,) = (run for run in runs(tmp_path) if run["params"]["compression_turn"] == 40)
    repeated = completed(tmp_path, *shlex.split(fortieth["command"])[3:])
    assert "already done: reused" in repeated.err
    assert len(runs(tmp_path)) == 2
    assert f"--config-dir {folder} " in fortieth["command"]
    assert {"+sweep=plain", "top_k=7", "compression_turn=40"} <= set(fortieth["command"].split())


@pytest.mark.slow
def test_joblib_workers_resolve_integers(tmp_path: Path) -> None:
    two = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    done = completed(tmp_path, "-m", *two, "system=no_memory", "top_k=choice(3,wide,012)", *SMALL)
    assert resolved(tmp_path) == {(3, "never"), (20, "never"), (12, "never")}
    lines = done.out.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("top_k"))
    order = [line.split()[0] for line in lines[header + 1 : header + 4]]
    assert order == ["3", "20", "12"], done.out


SEVEN = """
    defaults:
      - override /top_k: "7"
      - override /system: no_memory
"""


def test_integers_in_an_experiment_and_a_range_are_resolved(tmp_path: Path, folder: Path) -> None:
    write(folder, "experiment/seven", SEVEN)
    completed(
        tmp_path,
        "-m",
        "--config-dir",
        str(folder),
        "+experiment=seven",
        "compression_turn=range(1,10,4)",
        *SMALL,
    )
    assert resolved(tmp_path) == {(7, 1), (7, 5), (7, 9)}


@pytest.mark.slow
def test_custom_option_can_be_mixed_with_integers(tmp_path: Path, folder: Path) -> None:
    write(folder, "top_k/huge", "top_k: 100\n")
    completed(
        tmp_path,
        "-m",
        "--config-dir",
        str(folder),
        "top_k=3,huge",
        "compression_turn=40",
        "system=no_memory",
        *SMALL,
    )
    assert resolved(tmp_path) == {(3, 40), (100, 40)}


BAD_FILES = {
    "a file that beats the option": (
        ("experiment/leaf", "top_k: 7\n"),
        ("+experiment=leaf", "top_k=3"),
        "top_k=3 has no effect: a config file sets top_k: 7",
        'in that file, use:  defaults: [override /top_k: "7"]',
    ),
    "a sweep that beats its own parameters": (
        ("sweep/leaf", "compression_turn: 9\nhydra: {sweeper: {params: {compression_turn: 40}}}\n"),
        ("-m", "+sweep=leaf"),
        "compression_turn=40 has no effect: a config file sets compression_turn: 9",
        'in that file, use:  defaults: [override /compression_turn: "9"]',
    ),
    "a sweep over a value that is not an integer": (
        ("sweep/odd", "hydra: {sweeper: {params: {top_k: 0}}}\n"),
        ("-m", "+sweep=odd"),
        "top_k must be one of default, narrow, wide or a positive integer, not '0'",
        "",
    ),
    "a sweep over a YAML list": (
        ("sweep/listed", "hydra: {sweeper: {params: {top_k: [3, 5]}}}\n"),
        ("-m", "+sweep=listed"),
        "top_k=['3','5'] is a list, but top_k takes one option",
        "to compare several:  python -m memeval -m top_k=a,b",
    ),
    "an experiment with a bare integer": (
        ("experiment/bare", "defaults:\n  - override /top_k: 7\n"),
        ("+experiment=bare",),
        "an option in a config file's defaults list is a number",
        'quote it:  override /top_k: "7"',
    ),
    "an experiment with another integer": (
        ("experiment/none", 'defaults:\n  - override /top_k: "-7"\n'),
        ("+experiment=none",),
        "top_k must be one of default, narrow, wide or a positive integer, not '-7'",
        "",
    ),
    "a file that is no YAML": (
        ("experiment/broken", "top_k: [\n"),
        ("+experiment=broken",),
        "broken.yaml, line 3, column 1: not YAML: expected the node content",
        "",
    ),
    "a sweep that is no YAML": (
        ("sweep/broken", "hydra: {sweeper: {params: {\n"),
        ("+sweep=broken",),
        "broken.yaml, line 3, column 1: not YAML: expected the node content",
        "",
    ),
    "a name that is not in the folder": (
        ("experiment/seven", SEVEN),
        ("+experiment=sevn",),
        "unknown experiment 'sevn'. Did you mean: seven?",
        "",
    ),
}


@pytest.mark.sampled(kept=3)
@pytest.mark.parametrize("case", BAD_FILES)
def test_mistake_in_a_config_file_is_reported(tmp_path: Path, folder: Path, case: str) -> None:
    (name, text), arguments, message, way_out = BAD_FILES[case]
    write(folder, name, text)
    done = memeval(tmp_path, *arguments, "--config-dir", str(folder), "system=no_memory", *SMALL)
    assert done.status == 2, done.err
    assert done.message.startswith("memeval: ") and message in done.message
    assert way_out in done.err and "Traceback" not in done.err
    assert runs(tmp_path) == []
