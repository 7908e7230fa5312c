"""Control systems bound the accuracy of the systems between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from memeval.datasets.lint.bounds import scores
from memeval.datasets.lint.check import lint_run
from memeval.datasets.lint.records import Finding, LintedRun, Rival
from memeval.records import Label, Status, Verdict
from memeval.results import CategoryResult, Record, RunSummary


def summary(**params: Any) -> RunSummary:
    return RunSummary(
        run_key="0123456789abcdef",
        name="run",
        dataset="demo",
        sweep=None,
        command="python -m memeval",
        params={"judge": "llm", **params},
        tags={},
        metrics={},
        categories=(),
        repeats=(),
        notes=(),
        valid=True,
        started_at="2026-11-21T20:00:00+01:00",
        finished_at="2026-11-21T20:00:17+01:00",
    )


def answered(*right: bool) -> list[Record]:
    """Records of one run, one question each."""
    return [
        Record(
            question_id=f"c/q{number}",
            case_id="c",
            category=1,
            category_name="multi_hop",
            repeat=0,
            seed=0,
            question="?",
            gold=("x",),
            answerable=True,
            status=Status.OK,
            hypothesis="y",
            verdict=Verdict("llm", Label.CORRECT if is_right else Label.WRONG, float(is_right)),
        )
        for number, is_right in enumerate(right)
    ]


def found(
    system: str, other: str, own: tuple[bool, ...], rival: tuple[bool, ...], **params: Any
) -> list[Finding]:
    """Findings on a run of `system` compared with one of `other`."""
    material = LintedRun(
        summary=summary(system=system),
        records=answered(*own),
        rivals=(
            Rival(
                replace(summary(**{"system": other, **params}), run_key="fedcba9876543210"),
                scores(answered(*rival)),
            ),
        ),
    )
    return [finding for finding in lint_run(material).findings if finding.kind == "above its bound"]


HIGH, LOW = (True, True, False), (False, True, False)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("dense", "long_context"),
        ("dense", "full_history"),
        ("no_memory", "random_k"),
        ("constant", "no_memory"),
        ("random_k", "bm25"),
        ("long_context", "oracle"),
        ("my_own", "oracle"),
    ],
)
def test_run_above_its_bound_is_found_from_both_sides(lower: str, upper: str) -> None:
    (finding,) = found(lower, upper, HIGH, LOW)
    assert finding.what == f"{lower} is 33.3 points above {upper} on 3 questions"
    assert (finding.questions, finding.where) == (("c/q0",), "run fedcba9876543210")

    (other,) = found(upper, lower, LOW, HIGH)
    assert other.what == finding.what
    assert found(lower, upper, LOW, HIGH) == found(lower, upper, LOW, LOW) == []


def test_questions_right_or_wrong_in_all_of_three_runs_are_remarks() -> None:
    rows = [(True, False, True), (True, False, False), (True, False, True)]
    others = [scores(answered(*row)) for row in rows[1:]]
    rivals = tuple(Rival(summary(system="bm25"), other) for other in others)
    material = LintedRun(summary(system="dense"), answered(*rows[0]), rivals=rivals)
    result = lint_run(material)
    assert [(one.kind, one.questions) for one in result.remarks] == [
        ("right in every run", ("c/q0",)),
        ("right in no run", ("c/q1",)),
    ]
    assert result.findings == ()
    assert lint_run(replace(material, rivals=rivals[:1])).remarks == ()


def test_refusals_that_are_not_in_the_accuracy_are_above_no_bound() -> None:
    categories = []
    for category, name, headline in (("1", "multi_hop", True), ("5", "adversarial", False)):
        measured = dict.fromkeys(("accuracy", "accuracy_std", "ci95_low", "ci95_high", "token_f1"))
        row = CategoryResult(
            category=category, name=name, n=1, scored=1, asked=1, headline=headline, **measured
        )
        categories.append(row)

    rows = answered(False, True)
    rows[1] = structs.replace(rows[1], category=5)
    no_memory = replace(summary(system="no_memory"), categories=tuple(categories))
    bm25 = replace(summary(system="bm25"), run_key="fedcba9876543210")
    rival = Rival(bm25, scores(answered(False, False)))
    material = LintedRun(summary=no_memory, records=rows, rivals=(rival,))
    assert not lint_run(material).findings


def test_memory_systems_do_not_bound_each_other() -> None:
    assert found("dense", "bm25", HIGH, LOW) == []


def test_only_runs_with_the_same_answer_model_and_judge_are_bounds() -> None:
    assert found("dense", "oracle", HIGH, LOW, judge="mem0") == []
    assert found("dense", "oracle", HIGH, LOW, **{"llm.model": "other"}) == []
    for name in ("llm.ingest.model", "llm.timeout_s"):
        assert found("dense", "oracle", HIGH, LOW, **{name: "other"}) != []
