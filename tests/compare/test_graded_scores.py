"""Comparisons of graded scores: means of scores, without a test on right and wrong answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import example, made_run

from memeval.calibration.scored import scored_answers
from memeval.comparison.build import compare_runs
from memeval.comparison.tables import comparison_text
from memeval.errors import UserError
from memeval.metrics.registry import metric_named
from memeval.records import Label, Verdict
from memeval.results.run import Run


def graded_run(folder: Path, name: str, score: float) -> Run:
    """A run in which every answer has this score."""
    verdict = Verdict("beam", Label.WRONG, score, graded=True, parts={"items": (score,)})
    return made_run(folder, name, example("A"), of_records={"verdict": verdict})


def test_graded_scores_are_compared_by_their_means(tmp_path: Path) -> None:
    runs = [graded_run(tmp_path, name, score) for name, score in (("A", 0.25), ("B", 0.75))]
    comparison = compare_runs(runs, metric_named("accuracy"))
    (difference,) = comparison.differences
    assert difference.result.mean == pytest.approx(0.5)
    assert difference.mcnemar_p is None
    assert "75.0" in comparison_text(comparison)


def test_graded_scores_cannot_be_calibrated(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has graded scores"):
        scored_answers(graded_run(tmp_path, "A", 0.25))
