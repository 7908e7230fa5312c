"""Multiple-choice data sets on the real command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import answers, memeval, records, runs

DEMO = "dataset=demo_locomo_mc10"


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["keyword", "token_f1", "llm", "mem0"])
def test_free_text_judge_is_refused(tmp_path: Path, judge: str) -> None:
    done = memeval(tmp_path, DEMO, f"judge={judge}", "tracking=none")
    assert done.status == 2
    assert (
        done.message == f"memeval: judge={judge} does not apply to dataset=demo_locomo_mc10, whose "
        "questions are multiple choice"
    )
    assert "use:  judge=accuracy" in done.err and "Traceback" not in done.err
    assert runs(tmp_path) == []


@pytest.mark.slow
def test_accuracy_judge_is_refused_for_free_text_answers(tmp_path: Path) -> None:
    done = memeval(tmp_path, "dataset=demo", "judge=accuracy", "tracking=none")
    assert done.status == 2 and "judge=accuracy does not apply to dataset=demo" in done.message


@pytest.mark.slow
def test_multiple_choice_run_is_judged_by_accuracy(tmp_path: Path) -> None:
    done = memeval(tmp_path, DEMO, "system=oracle", "tracking=none")
    assert done.status == 0, done.err
    (run,) = runs(tmp_path)
    assert run["params"]["judge"] == "accuracy"
    metrics = run["metrics"]
    assert (metrics["coverage"], metrics["unparsed_rate"], metrics["random_accuracy"]) == (
        1.0,
        0.0,
        pytest.approx(0.1),
    )
    assert (
        metrics["accuracy"] > 0.3
        and 0 <= metrics["position_bias"] < 1
        and metrics["recall_at_10"] == 1.0
    )
    assert metrics["token_f1"] is None and "data_derived" not in run["tags"]
    rows = records(tmp_path)
    assert {len(row["choices"]) for row in rows} == {10}
    assert all([int(row["hypothesis"])] == row["chosen"] for row in rows)
    assert all(
        (row["chosen"] == row["right_choices"]) == (row["verdict"]["label"] == "correct")
        for row in rows
    )


@pytest.mark.slow
def test_derived_data_are_flagged_in_every_table(tmp_path: Path) -> None:
    done = memeval(
        tmp_path,
        DEMO,
        "dataset.derive=true",
        "system=no_memory",
        "tracking=none",
        "dataset.limit_questions=3",
    )
    assert done.status == 0, done.err
    (run,) = runs(tmp_path)
    assert run["tags"]["data_derived"] == "true"
    assert any(note["text"].startswith("DERIVED: ") for note in run["notes"])
    (report,) = (tmp_path / "outputs" / "runs").glob("*/report.md")
    assert "| flags | derived data, biased cut: " in report.read_text(encoding="utf-8")
    assert "derived data" in " ".join(done.out.split())


def test_reply_of_another_program_without_a_clear_choice_is_not_guessed(tmp_path: Path) -> None:
    replies = [
        ("demo-1_q0", "3. 8 January 2023"),
        ("demo-1_q2", "lettuce"),
        ("demo-1_q4", "The correct answer is 1."),
        ("demo-1_q5", "It must have been on 23 February 2023, I think."),
        ("demo-1_q19", "0"),
        ("demo-2_q1", "A whale"),
        ("demo-2_q3", "2 February 2024"),
        ("demo-2_q5", "**2**"),
        ("demo-2_q18", "Answer: 7"),
        ("demo-2_q20", "5"),
    ]
    done = memeval(
        tmp_path,
        "evaluate",
        str(answers(tmp_path / "replies.jsonl", replies)),
        DEMO,
        "tracking=none",
    )
    assert done.status == 1, "replies that name no choice have no score: the run is invalid"
    rows = {row["question_id"]: row for row in records(tmp_path)}
    assert [rows[question_id]["chosen"] for question_id, _ in replies] == [
        [3],
        [6],
        [1],
        None,
        [0],
        None,
        [0],
        [2],
        [7],
        [5],
    ]
    assert [question_id for question_id, row in rows.items() if row["status"] == "unparsed"] == [
        "demo-1_q5",
        "demo-2_q1",
    ]
    assert rows["demo-2_q1"]["verdict"] == {
        "judge": "accuracy",
        "label": "unscored",
        "score": None,
        "reason": "names no choice: 'A whale'",
    }
    (run,) = runs(tmp_path)
    assert (run["metrics"]["unparsed_rate"], run["metrics"]["accuracy"], run["valid"]) == (
        0.2,
        pytest.approx(5 / 6),
        False,
    )
    report = next((tmp_path / "outputs" / "runs").glob("*/report.md")).read_text(encoding="utf-8")
    assert (
        "| right ↓ chosen → | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | unparsed | of all, % |"
        in report
    )
    assert json.dumps(run["statuses"], sort_keys=True) == '{"ok": 8, "unparsed": 2}'
