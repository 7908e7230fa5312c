"""Graded verdicts: `accuracy` is the mean of their scores."""

from __future__ import annotations

import json

import pytest
from sample_records import record, verdict

from memeval.pipeline.measure.figures import measure_repeat
from memeval.records import Label, Status
from memeval.results import Record, VerdictRow, json_line
from memeval.results.fields import read_as
from memeval.results.verdict_row import verdict_json

HALF = verdict(Label.WRONG, score=0.25, graded=True, parts={"items": (0.5, 0.0)})


def test_graded_score_counts_unrounded_in_accuracy() -> None:
    rows = [record(verdict=HALF), record(verdict=verdict()), record(verdict=verdict(Label.WRONG))]
    assert [row.score for row in rows] == [0.25, 1.0, 0.0]
    assert [row.is_right for row in rows] == [False, True, False]
    assert measure_repeat(rows, ())["accuracy"] == pytest.approx(1.25 / 3)


def test_a_graded_verdict_that_is_unscored_has_no_score() -> None:
    row = record(verdict=verdict(Label.UNSCORED, graded=True), status=Status.UNPARSED)
    assert (row.score, row.is_right) == (None, None)


def test_graded_verdict_survives_a_round_trip() -> None:
    line = json.loads(json_line(record(verdict=HALF).to_json()))
    assert read_as(line, Record).verdict == HALF

    row = VerdictRow(id="q", status=Status.OK, verdict=HALF)
    assert VerdictRow.from_json(row.to_json()).verdict == HALF


def test_ungraded_verdicts_have_no_members_of_graded_ones() -> None:
    assert {"graded", "parts"}.isdisjoint(verdict_json(verdict()))


@pytest.mark.parametrize(
    "odd",
    [{"graded": "yes"}, {"parts": [1]}, {"parts": {"items": ["1"]}}, {"parts": {"items": 1}}],
)
def test_malformed_members_of_a_graded_verdict_are_refused(odd: dict[str, object]) -> None:
    row = VerdictRow(id="q", status=Status.OK, verdict=HALF).to_json()
    row["verdict"] |= odd
    (name,) = odd
    with pytest.raises(ValueError, match=rf"at `\$\.verdict\.{name}"):
        VerdictRow.from_json(row)
