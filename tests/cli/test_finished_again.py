"""A finished cell is requested again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import SMALL, Ended, completed, kept, records, runs


@dataclass(frozen=True)
class Twice:
    home: Path
    first: Ended
    before: dict[str, bytes]
    """Files after the first command."""
    second: Ended


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Twice:
    home = tmp_path_factory.mktemp("home")
    first = completed(home, "num_runs=3", "seed=7", *SMALL)
    before = kept(home)
    (run,) = runs(home)
    words = shlex.split(run["command"])[3:]  # `tracking` isn't in the command
    return Twice(home, first, before, completed(home, *words, "tracking=none"))


def test_second_command_reports_what_it_reused(twice: Twice) -> None:
    assert "answer 9/9, judge 9/9" in twice.first.err
    assert "already done: reused 9 results, no API calls" in twice.second.err
    assert "already done: reused" not in twice.first.err
    assert twice.second.out == twice.first.out


def test_measured_files_are_not_changed(twice: Twice) -> None:
    after = kept(twice.home)
    assert set(after) == set(twice.before)
    measured = [name for name in after if name.endswith((".jsonl", "run.json", "config.yaml"))]
    assert len(measured) == 3 + 3 * 4, (
        "records, summary, config; answers, texts, verdicts and hypotheses of each repeat"
    )
    for name in measured:
        assert after[name] == twice.before[name], name


def test_each_repeat_has_its_seed(twice: Twice) -> None:
    rows = records(twice.home)
    assert [(row["repeat"], row["seed"]) for row in rows] == [
        (repeat, 7 + repeat) for repeat in range(3) for _ in range(3)
    ]
    assert len({row["question_id"] for row in rows}) == 3
    assert [repeat["seed"] for repeat in runs(twice.home)[0]["repeats"]] == [7, 8, 9]


def test_zero_std_is_marked_as_deterministic(twice: Twice) -> None:
    (run,) = runs(twice.home)
    (report,) = twice.home.glob("outputs/runs/*/report.md")
    assert (run["metrics"]["accuracy_std"], run["tags"]["deterministic"]) == (0.0, "true")
    assert " 0 det " in twice.first.out
    assert (
        "note: Answers come from the offline extractive reader: it is deterministic, and not a "
        "language model." in twice.first.out
    )
    assert "| std over repeats, points | 0 (deterministic reader) |" in report.read_text(
        encoding="utf-8"
    )


def test_a_setting_without_effect_makes_one_row(tmp_path: Path) -> None:
    words = ("-m", "system=cogcanvas", "top_k=5,10", *SMALL, "tracking=none")
    note = "note: 1 of these runs is the same as another"
    assert note in completed(tmp_path, "plan", *words).out

    ended = completed(tmp_path, *words)
    assert note in ended.err
    assert "already done" in ended.err
    (row,) = [line for line in ended.out.splitlines() if line.startswith("cogcanvas ")]
    assert row
