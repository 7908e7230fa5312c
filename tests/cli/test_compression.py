"""A compression turn past the end of a conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import ROOT, completed, runs

pytestmark = pytest.mark.slow


def lengths() -> list[int]:
    """Number of turns of the first three demonstration conversations, in ascending order."""
    cases = json.loads((ROOT / "data" / "demo" / "demo.json").read_text(encoding="utf-8"))[:3]
    return sorted(
        sum(len(turns) for turns in case["conversation"].values() if isinstance(turns, list))
        for case in cases
    )


def test_run_notes_how_many_conversations_never_compressed(tmp_path: Path) -> None:
    shortest, end, longest = lengths()
    assert shortest < end < longest
    done = completed(
        tmp_path,
        "-m",
        f"compression_turn=100000,middle,{end}",
        "compression_unit=chunks",
        "tracking=none",
        "dataset.limit_cases=3",
        "dataset.limit_questions=1",
    )
    said = {
        run["params"]["compression_turn"]: [
            note["text"] for note in run["notes"] if "never fired" in note["text"]
        ]
        for run in runs(tmp_path)
    }
    assert said == {
        100000: [
            "compression_turn=100000 is past the end of 3 of 3 conversations and never fired there."
        ],
        "middle": [],
        end: [
            f"compression_turn={end} is past the end of 1 of 3 conversations and never fired there."
        ],
    }
    for turn in (100000, end):
        assert f"note: {said[turn][0]} (1 of 3 runs)\n" in done.out
        reports = [
            path.read_text(encoding="utf-8") for path in tmp_path.glob("outputs/runs/*/report.md")
        ]
        assert sum(said[turn][0] in report for report in reports) == 1
