"""A run on the mock model can use a model judge, and is marked wherever it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import SMALL, completed


def test_a_run_on_the_mock_model_is_marked(tmp_path: Path) -> None:
    done = completed(tmp_path, "llm=mock", "judge=llm", *SMALL)
    assert done.status == 0, done.err
    assert any(line.rstrip().endswith(" mock") for line in done.out.splitlines())
    assert "its figures mean nothing" in done.out
    (run,) = (
        json.loads(path.read_text(encoding="utf-8"))
        for path in tmp_path.glob("outputs/runs/*/run.json")
    )
    assert (run["tags"]["mock"], run["metrics"]["coverage"]) == ("true", 1.0)


@pytest.mark.parametrize("option", ["system=graphrag_lite", "system=mem0", "prompt=con"])
def test_mock_model_serves_options_that_need_a_language_model(option: str, tmp_path: Path) -> None:
    done = completed(tmp_path, option, "llm=mock", *SMALL)
    assert done.status == 0, done.err
    assert "INVALID" not in done.out
