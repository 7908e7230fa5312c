"""What a plan learns from finished runs."""

from __future__ import annotations

from pathlib import Path

from memeval.records import Role
from memeval.results import RUN_FILE
from memeval.runs.forecast.past import read_past


def test_vanished_run_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / RUN_FILE).symlink_to(tmp_path / "nowhere")
    past = read_past(tmp_path)
    assert past.completion_tokens((Role.ANSWER, "m", "short")) is None
