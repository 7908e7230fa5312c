"""`python -m memeval evaluate`: answers of another program, judged like any others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import ROOT, Ended, answers, completed, memeval, records, runs

from memeval.datasets.locate import build
from memeval.datasets.locomo.adapter import Locomo
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.pipeline.execute.imported import read_hypotheses
from memeval.records import EvalQuestion

DEMO = DATASETS["demo"]

REFUSAL = "No information available"


@pytest.fixture(scope="module")
def asked() -> list[EvalQuestion]:
    """All questions of the demonstration set."""
    demo = Locomo(ROOT / "data" / DEMO.file, info=DEMO)
    return [question for case in demo.cases() for question in case.questions]


def evaluate(home: Path, file: Path, *arguments: str, **environment: str) -> Ended:
    return memeval(home, "evaluate", str(file), *arguments, "tracking=none", **environment)


@pytest.mark.slow
def test_perfect_answers_score_full_marks(tmp_path: Path, asked: list[EvalQuestion]) -> None:
    file = answers(
        tmp_path / "k=5, perfect.jsonl",
        ((one.question_id, one.gold[0] if one.gold else REFUSAL) for one in asked),
    )
    done = evaluate(tmp_path, file, "judge=keyword")
    assert done.status == 0, done.err
    (run,) = runs(tmp_path)
    metrics = run["metrics"]
    assert [metrics[name] for name in ("accuracy", "keyword_pass", "exact_match", "coverage")] == [
        1.0
    ] * 4
    for name in ("multi_hop", "temporal", "open_domain", "single_hop"):
        assert metrics[f"accuracy/{name}"] == 1.0 and metrics[f"n_questions/{name}"] > 0, name
    assert metrics["n_questions"] == sum(one.category != 5 for one in asked)
    assert metrics["n_records"] == len(asked) > metrics["n_questions"]
    assert (metrics["abstention_rate"], metrics["abstention_rate/unanswerable"]) == (0.0, 1.0)
    assert run["statuses"] == {"ok": len(asked)}
    assert run["tags"]["imported"] == "true" and run["params"]["system"] == "imported"
    assert "imported" in done.out
    # What the other program spent is unknown, not 0.
    assert metrics["tokens/total"] is None and metrics["cost_usd_uncached/total"] is None
    assert completed(tmp_path, "verify").out.count(": sound") == 1
    again = completed(tmp_path, "evaluate", str(file), "judge=keyword", "tracking=none")
    assert f"already done: reused {len(asked)} results" in again.err
    # A label that equals the file's name is shown once.
    for label, name in (("v2", "v2 k=5, perfect"), ("'k=5, perfect'", "k=5, perfect")):
        words = ("judge=keyword", "tracking=none", f"label={label}")
        labelled = completed(tmp_path, "evaluate", str(file), *words)
        assert f"imported {name} keyword" in labelled.out


def test_rows_that_do_not_match_questions_are_counted_and_named(
    tmp_path: Path, asked: list[EvalQuestion]
) -> None:
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
    done = evaluate(
        tmp_path,
        answers(tmp_path / "messy.jsonl", rows),
        "dataset.limit_cases=1",
        "dataset.limit_questions=6",
    )
    assert done.status == 1, done.err
    (run,) = runs(tmp_path)
    names = [question_id for question_id, _ in right]
    expected = [
        "12 unknown: ids that are not in the data set, left out: "
        f"{', '.join(i for i, _ in unknown[:10])} and 2 more",
        "1 not asked: answers to questions that were not chosen, left out: demo-2/q0",
        f"1 repeated: more rows with the same id; the first one counts: {names[4]}",
        f"1 missing: questions without a row, counted as failed: {names[5]}",
        f"1 empty: rows without an answer, counted as failed: {names[3]}",
        f"1 blank: rows with a blank answer, counted as wrong: {names[2]}",
    ]
    assert [note["text"] for note in run["notes"] if note["text"] in expected] == expected
    assert all(f"note: {note}\n" in done.out for note in expected)
    assert run["statuses"] == {"ok": 4, "answer_failed": 2}
    measured = [run["metrics"][name] for name in ("coverage", "accuracy", "exact_match", "bleu1")]
    assert measured == pytest.approx([4 / 6, 3 / 4, 3 / 4, 3 / 4]) and not run["valid"]
    assert "INVALID" in done.out
    by_id = {row["question_id"]: row for row in records(tmp_path)}
    assert list(by_id) == names
    assert [by_id[name]["hypothesis"] for name in names] == [
        right[0][1],
        right[1][1],
        " \n",
        None,
        right[4][1],
        None,
    ]
    assert set(by_id[names[2]]["metrics"].values()) == {0.0}
    assert by_id[names[2]]["verdict"] == {
        "judge": "keyword",
        "label": "wrong",
        "score": 0.0,
        "reason": "the answer is blank",
    }
    assert (
        "its row has no answer" in by_id[names[3]]["error"] and "no row" in by_id[names[5]]["error"]
    )


REFERENCE = {
    "token_f1": "locomo_f1",
    "mem0_f1": "mem0_f1",
    "bleu1": "mem0_bleu1",
    "keyword_overlap": "cog_kw_overlap",
    "keyword_pass": "cog_kw_passed",
}
WITHIN = 1e-9 + 5e-11
"""Recorded values have ten decimals."""


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize("name", ["full_context_gpt_4o_mini", "mem0_2025", "vague_wrong_answers"])
def test_recorded_answers_get_their_recorded_metrics(
    tmp_path: Path, data_dir: Path, name: str
) -> None:
    file = data_dir.parent / "outputs" / "locomo" / f"{name}.jsonl"
    recorded = {
        row["question_id"]: row
        for row in map(json.loads, file.read_text(encoding="utf-8").splitlines())
    }
    done = evaluate(
        tmp_path, file, "dataset=locomo", "judge=keyword", MEMEVAL_DATA_DIR=str(data_dir)
    )
    assert done.status == 0, done.err
    (run,) = runs(tmp_path)
    assert (
        run["metrics"]["n_questions"],
        run["metrics"]["coverage"],
        run["tags"]["data_pinned"],
    ) == (1540.0, 1.0, "true")
    rows = records(tmp_path)
    assert {row["question_id"] for row in rows} == set(recorded) and len(rows) == 1540
    for row in rows:
        reference = recorded[row["question_id"]]["reference"]
        for ours, theirs in REFERENCE.items():
            assert row["metrics"][ours] == pytest.approx(reference[theirs], rel=0, abs=WITHIN), (
                row["question_id"],
                ours,
            )
        assert row["verdict"]["score"] == reference["cog_kw_passed"], row["question_id"]
    passed = sum(row["reference"]["cog_kw_passed"] for row in recorded.values())
    assert run["metrics"]["accuracy"] == pytest.approx(passed / 1540)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        *(("7", "7"), ("-0", "-0"), ("7.50", "7.50"), ("1e5", "1e5"), ("1" * 5000, "1" * 5000)),
        *(('""', ""), ('" \\n"', " \n"), ('"NaN"', "NaN"), ('"null"', "null")),
        *(
            ("null", None),
            ("NaN", None),
            ("Infinity", None),
            ("-Infinity", None),
            ("1e400", None),
            ("-1e999", None),
        ),
    ],
    ids=lambda value: str(value)[:12],
)
def test_hypothesis_is_read_as_text(tmp_path: Path, written: str, text: str | None) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(f'{{"question_id": "q", "hypothesis": {written}}}\n', encoding="utf-8")
    assert hypotheses_in(file) == {"q": text}


def hypotheses_in(file: Path) -> dict[str, str | None]:
    rows = read_hypotheses(file).rows
    return {question_id: row.hypothesis for question_id, row in rows.items()}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question_id": "q", "hypothesis": true}', "hypothesis: expected `str | null`, got"),
        ('{"question_id": "q", "hypothesis": ["a"]}', "got `array`"),
        ('{"question_id": "q", "hypothesis": {"a": 1}}', "got `object`"),
        ('{"question_id": NaN, "hypothesis": "a"}', "question_id: expected `str`, got `null`"),
        ('{"question_id": "q"}', "missing required field `hypothesis`"),
        ('{"question_id": "q", "hypothesis": "\\ud800"}', "half a character"),
        ("[" * 100_000, "not a row in JSON"),
        ("[7]", "expected `object`, got `array`"),
        ('{"question_id": "q", "hypothesis": 1e400000000000}', None),
        ("\x1b[31m", "not a row in JSON"),
        ('{"question_id": "q", "hypothesis": "a", "hypothesis": "b"}', "a duplicate field"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_invalid_row_is_named_by_its_line(tmp_path: Path, line: str, message: str | None) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(f'{{"question_id": "first", "hypothesis": "a"}}\n{line}\n', encoding="utf-8")
    if message is None:
        assert hypotheses_in(file)["q"] is None
        return
    with pytest.raises(UserError, match="line 2: ") as caught:
        read_hypotheses(file)
    assert message in str(caught.value) and "\x1b" not in str(caught.value)


@pytest.mark.slow
def test_blank_multiple_choice_answer_is_unparsed(tmp_path: Path) -> None:
    choosing = build("demo_locomo_mc10", ROOT / "data")
    first, second = [
        question.question_id for case in choosing.cases() for question in case.questions
    ][:2]
    file = answers(tmp_path / "blank.jsonl", [(first, " "), (second, "0")])
    done = evaluate(tmp_path, file, "--only-listed", "dataset=demo_locomo_mc10")
    assert done.status == 1, done.err
    rows = {row["question_id"]: row for row in records(tmp_path)}
    assert [rows[name]["status"] for name in (first, second)] == ["unparsed", "ok"]
    assert f"counted as wrong, or as unparsed if the question has choices: {first}\n" in done.out
    assert (
        "already done: reused"
        in evaluate(tmp_path, file, "--only-listed", "dataset=demo_locomo_mc10").err
    )


@pytest.mark.slow
def test_only_listed_asks_only_listed_questions(tmp_path: Path, asked: list[EvalQuestion]) -> None:
    chosen = [one for one in asked if one.gold][3:9]
    file = answers(
        tmp_path / "few.jsonl",
        [*((one.question_id, one.gold[0]) for one in chosen), ("no such/q", "x")],
    )
    done = evaluate(tmp_path, file, "judge=keyword", "--only-listed")
    assert done.status == 0, done.err
    assert "imported, partial" in done.out
    (run,) = runs(tmp_path)
    assert run["tags"]["partial"] == "true" and run["statuses"] == {"ok": 6} and run["valid"]
    left_out = len(asked) - 6
    notes = [note["text"] for note in run["notes"]]
    assert (
        f"partial: only the questions listed in the file are asked, {left_out} others are left out"
        in notes
    )
    assert "1 unknown: ids that are not in the data set, left out: no such/q" in notes
    assert "evaluate" in run["command"] and "--only-listed" in run["command"]

    assert evaluate(tmp_path, file, "judge=keyword").status == 1
    whole = [run for run in runs(tmp_path) if "partial" not in run["tags"]]
    assert [run["statuses"] for run in whole] == [{"ok": 6, "answer_failed": left_out}], (
        "without the word another run"
    )


@pytest.mark.parametrize("option", [(), ("--only-listed",)])
def test_a_file_without_a_known_question_is_refused(
    tmp_path: Path, option: tuple[str, ...]
) -> None:
    file = answers(tmp_path / "other.jsonl", [("conv-26/q0", "7 May 2023")])
    done = evaluate(tmp_path, file, "judge=keyword", *option)
    assert not runs(tmp_path)
    assert done.status == 2 and "Traceback" not in done.err
    assert (
        "other.jsonl lists no question of dataset=demo" in done.message
        and "this data set's ids look like:  demo-1/q0" in done.err
    )


@pytest.mark.slow
def test_tens_of_thousands_of_unmatched_rows_are_evaluated(tmp_path: Path) -> None:
    """30,000 answers to questions that are not asked, and as many to unknown ones."""
    data = json.loads((ROOT / "data" / DEMO.file).read_text(encoding="utf-8"))
    data[0]["qa"] = [{"question": "What?", "answer": "tea", "category": 4, "evidence": []}] * 30_000
    path = tmp_path / "many.json"
    path.write_text(json.dumps(data[:1]), encoding="utf-8")
    case = data[0]["sample_id"]
    listed = [(f"{case}/q{number}", "tea") for number in range(30_000)] + [
        (f"unknown/q{number}", "tea") for number in range(30_000)
    ]
    file = answers(tmp_path / "many.jsonl", listed)
    done = evaluate(
        tmp_path,
        file,
        f"dataset.path={path}",
        "+dataset.allow_unpinned=true",
        "dataset.limit_questions=10",
    )
    assert done.status == 0, done.err
    assert "29990 not asked" in done.out and "30000 unknown" in done.out
