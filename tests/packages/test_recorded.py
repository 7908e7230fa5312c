"""Real answers with recorded verdicts, judged, packed and checked: the figures equal the
reference.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

import memeval
from memeval.packages import open_package
from memeval.packages.levels import Checks, verify_package
from memeval.packages.write import pack

pytestmark = pytest.mark.slow

FILES = ("mem0_2025", "full_context_gpt_4o_mini", "vague_wrong_answers")


@pytest.mark.real_data
def test_packed_figures_of_recorded_systems_equal_the_reference(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEMEVAL_DATA_DIR", str(data_dir))
    monkeypatch.setenv("MEMEVAL_PLOTS", "false")
    outputs = data_dir.parent / "outputs" / "locomo"
    runs = [
        memeval.evaluate(
            outputs / f"{name}.jsonl", "dataset=locomo", "judge=recorded", "tracking=none",
            judged_by="one judge of all three", progress=False,
        )
        for name in FILES
    ]  # fmt: skip
    path = pack(runs, tmp_path / "recorded.memeval").path
    levels = list(verify_package(path, Checks(data=True)))
    assert [level.problems for level in levels] == [[]] * 6
    assert "all figures of 3 runs and 3 comparisons" in levels[1].did

    with open_package(path) as package:
        assert not package.manifest.data[0].texts
        by_key = {run.key: run for run in package.runs}

    for name, run in zip(FILES, runs, strict=True):
        lines = (outputs / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        metrics = by_key[run.key].metrics
        f1 = fmean(row["reference"]["locomo_f1"] for row in rows)
        assert metrics["token_f1"] == pytest.approx(f1, abs=1e-9)
        labels = [row["recorded_judge_labels"] for row in rows]
        right = fmean(sum(own) * 2 > len(own) for own in labels)
        assert metrics["accuracy"] == pytest.approx(right, abs=1e-12)
