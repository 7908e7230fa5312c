"""`python -m memeval evaluate`: answers of another program, judged like any."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import ROOT, Ended, answers, completed, memeval, records, runs

from memeval.datasets.locomo import Locomo
from memeval.datasets.registry import DEMO
from memeval.records import EvalQuestion

REFUSAL = "No information available"


@pytest.fixture(scope="module")
def asked() -> list[EvalQuestion]:
    """All questions of the demonstration set."""
    demo = Locomo(ROOT / "data" / DEMO.file, info=DEMO)
    return [question for case in demo.cases() for question in case.questions]


def evaluate(home: Path, file: Path, *arguments: str, **environment: str) -> Ended:
    return memeval(home, "evaluate", str(file), *arguments, "tracking=none", **environment)


def test_a_perfect_file(tmp_path: Path, asked: list[EvalQuestion]) -> None:
    file = answers(tmp_path / "k=5, perfect.jsonl", ((one.question_id, one.gold[0] if one.gold else REFUSAL) for one in asked))
    done = evaluate(tmp_path, file, "judge=keyword")
    assert done.status == 0, done.err
    (run,) = runs(tmp_path)
    metrics = run["metrics"]
    assert [metrics[name] for name in ("accuracy", "keyword_pass", "exact_match", "coverage")] == [1.0] * 4
    for name in ("multi_hop", "temporal", "open_domain", "single_hop"):
        assert metrics[f"accuracy/{name}"] == 1.0 and metrics[f"n_questions/{name}"] > 0, name
    assert metrics["n_questions"] == sum(one.category != 5 for one in asked)
    assert metrics["n_records"] == len(asked) > metrics["n_questions"]
    assert (metrics["abstention_rate"], metrics["abstention_rate/unanswerable"]) == (0.0, 1.0)
    assert run["statuses"] == {"ok": len(asked)}
    assert run["tags"]["imported"] == "true" and run["params"]["system"] == "imported"
    assert "imported" in done.out
    again = completed(tmp_path, "evaluate", str(file), "judge=keyword", "tracking=none")
    assert f"finished before: {len(asked)} records reused" in again.err


def test_ids_that_do_not_fit_are_counted_and_named(tmp_path: Path, asked: list[EvalQuestion]) -> None:
    first = [one for one in asked if one.question_id.startswith("demo-1/")][:6]
    right = [(one.question_id, one.gold[0]) for one in first]
    unknown = [(f"demo-1/q{number}", "something") for number in range(900, 912)]
    rows: list[tuple[str, str | None]] = [
        *right[:2],
        (right[2][0], " \n"),
        (right[3][0], None),
        (right[4][0], right[4][1]),
        (right[4][0], "a second answer, and a wrong one"),
        ("demo-2/q0", "nobody asks"),
        *unknown,
    ]
    done = evaluate(tmp_path, answers(tmp_path / "messy.jsonl", rows), "dataset.limit_cases=1", "dataset.limit_questions=6")
    assert done.status == 0, done.err
    (run,) = runs(tmp_path)
    names = [question_id for question_id, _ in right]
    expected = [
        f"12 unknown: ids that the data set does not have, left out: {', '.join(i for i, _ in unknown[:10])} and 2 more",
        "1 not asked: answers to questions outside of the chosen ones, left out: demo-2/q0",
        f"1 repeated: further rows of an id, of which the first counts: {names[4]}",
        f"1 missing: questions without a row, counted as failed: {names[5]}",
        f"1 empty: rows without an answer, counted as failed: {names[3]}",
        f"1 blank: rows with an answer of no words, which is wrong: {names[2]}",
    ]
    assert [note for note in run["notes"] if note in expected] == expected
    assert all(f"note: {note}\n" in done.out for note in expected)
    assert run["statuses"] == {"ok": 4, "answer_failed": 2}
    measured = [run["metrics"][name] for name in ("coverage", "accuracy", "exact_match", "bleu1")]
    assert measured == pytest.approx([4 / 6, 3 / 4, 3 / 4, 3 / 4]) and not run["valid"]
    assert "INVALID" in done.out
    by_id = {row["question_id"]: row for row in records(tmp_path)}
    assert list(by_id) == names
    assert [by_id[name]["hypothesis"] for name in names] == [right[0][1], right[1][1], " \n", None, right[4][1], None]
    assert set(by_id[names[2]]["metrics"].values()) == {0.0}
    assert by_id[names[2]]["verdict"] == {"judge": "keyword", "label": "wrong", "score": 0.0, "reason": "the answer is blank"}
    assert "its row holds no answer" in by_id[names[3]]["error"] and "no row" in by_id[names[5]]["error"]


def test_a_file_for_another_data_set_scores_nothing(tmp_path: Path) -> None:
    done = evaluate(tmp_path, answers(tmp_path / "other.jsonl", [("conv-26/q0", "7 May 2023")]), "dataset.limit_questions=1")
    assert done.status == 1
    assert "note: 1 unknown: ids that the data set does not have, left out: conv-26/q0\n" in done.out
    (run,) = runs(tmp_path)
    assert (run["metrics"]["coverage"], run["metrics"]["accuracy"]) == (0.0, None)


REFERENCE = {
    "token_f1": "locomo_f1",
    "mem0_f1": "mem0_f1",
    "bleu1": "mem0_bleu1",
    "keyword_overlap": "cog_kw_overlap",
    "keyword_pass": "cog_kw_passed",
}
WITHIN = 1e-9 + 5e-11
"""The recorded values have ten decimals."""


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["full_context_gpt_4o_mini", "mem0_2025", "vague_wrong_answers"])
def test_recorded_answers_get_their_recorded_metrics(tmp_path: Path, data_dir: Path, name: str) -> None:
    file = data_dir.parent / "outputs" / "locomo" / f"{name}.jsonl"
    recorded = {row["question_id"]: row for row in map(json.loads, file.read_text(encoding="utf-8").splitlines())}
    done = evaluate(tmp_path, file, "dataset=locomo", "judge=keyword", MEMEVAL_DATA_DIR=str(data_dir))
    assert done.status == 0, done.err
    (run,) = runs(tmp_path)
    assert (run["metrics"]["n_questions"], run["metrics"]["coverage"], run["tags"]["data_pinned"]) == (1540.0, 1.0, "true")
    rows = records(tmp_path)
    assert {row["question_id"] for row in rows} == set(recorded) and len(rows) == 1540
    for row in rows:
        reference = recorded[row["question_id"]]["reference"]
        for ours, theirs in REFERENCE.items():
            assert row["metrics"][ours] == pytest.approx(reference[theirs], rel=0, abs=WITHIN), (row["question_id"], ours)
        assert row["verdict"]["score"] == reference["cog_kw_passed"], row["question_id"]
    passed = sum(row["reference"]["cog_kw_passed"] for row in recorded.values())
    assert run["metrics"]["accuracy"] == pytest.approx(passed / 1540)
