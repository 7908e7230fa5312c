"""`--fresh` repeats a stage and those after it although their results exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest_pipeline import SMALL, Command, records

STAGES = re.compile(r"(prepare|answer|judge) (\d+)/\2(?: \((\d+) reused\))?")


def made(stderr: str) -> set[str]:
    """The stages in which a run did anything."""
    found = STAGES.findall(stderr)
    return {stage for stage, total, reused in found if int(total) > int(reused or 0)}


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize(
    ("option", "stages"),
    [
        ("--fresh", {"prepare", "answer", "judge"}),
        ("--fresh=prepare", {"prepare", "answer", "judge"}),
        ("--fresh=answer", {"answer", "judge"}),
        ("fresh=judge", {"judge"}),
    ],
)
def test_fresh_repeats_the_stage_and_those_after_it(
    memeval: Command, tmp_path: Path, option: str, stages: set[str]
) -> None:
    assert made(memeval(*SMALL, "system=bm25").stderr) == {"prepare", "answer", "judge"}
    before = records(tmp_path)
    assert made(memeval(*SMALL, "system=bm25").stderr) == set()

    again = memeval(*SMALL, "system=bm25", option)
    assert made(again.stderr) == stages
    after = records(tmp_path)
    assert [{**row, "times": None} for row in after] == [{**row, "times": None} for row in before]

    assert "already done: reused" in memeval(*SMALL, "system=bm25").stderr, "it is the same run"


def test_fresh_sweep_builds_a_shared_memory_once(memeval: Command) -> None:
    memeval("-m", *SMALL, "system=bm25", "top_k=2,3")
    again = memeval("-m", *SMALL, "system=bm25", "top_k=2,3", "--fresh")
    prepared = [
        int(total) - int(reused or 0)
        for stage, total, reused in STAGES.findall(again.stderr)
        if stage == "prepare"
    ]
    assert len(prepared) == 2
    assert prepared[0] > 0
    assert prepared[1] == 0


def test_unknown_stage_is_refused(memeval: Command) -> None:
    done = memeval(*SMALL, "--fresh=answers", check=False)
    assert done.returncode == 2
    assert "unknown fresh 'answers'. Did you mean: answer?" in done.stderr


@pytest.mark.slow
def test_command_stored_in_run_json_omits_fresh(memeval: Command, tmp_path: Path) -> None:
    memeval(*SMALL, "system=bm25", "--fresh=judge")
    [run] = (tmp_path / "outputs" / "runs").glob("*/run.json")
    assert "fresh" not in run.read_text(encoding="utf-8")
