"""Files of a finished run are read line by line: they may be larger than memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from made_runs import example, made_run

from memeval.cli.show import find_records
from memeval.errors import UserError
from memeval.results import RECORDS_FILE

LARGE = 4_000_000


def test_records_are_read_one_by_one(tmp_path: Path) -> None:
    run = made_run(tmp_path / "outputs" / "runs", "bm25", example("A"))
    expected = run.read_records()
    with (run.folder / RECORDS_FILE).open("a") as file:
        file.write("torn\n")

    records = run.iter_records()
    assert [next(records) for _ in expected] == expected
    with pytest.raises(UserError, match=rf"line {len(expected) + 1}: "):
        next(records)


def test_a_question_of_a_large_run_takes_little_memory(tmp_path: Path) -> None:
    keys = {"keys": [{"seed": 0, "answer": "0123456789abcdef"}]}
    runs = tmp_path / "outputs" / "runs"
    scores = {f"conv/q{number}": [1.0] for number in range(200)}
    context = "0" * (LARGE // len(scores))
    run = made_run(runs, "bm25", scores, identity=keys, of_records={"context": context})
    answers = tmp_path / "outputs" / "answers" / "0123456789abcdef.jsonl"
    answers.parent.mkdir()
    answers.write_text(f'{{"id": "{context}"}}\n\n' * len(scores))

    tracemalloc.start()
    try:
        (record,) = find_records(run, "conv/q7")
        assert run.read_written(record) == []
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < LARGE / 2
