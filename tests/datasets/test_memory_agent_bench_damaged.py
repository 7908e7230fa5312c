"""Errors in a MemoryAgentBench file are reported by file, record and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from memory_agent_bench_samples import memory_agent_bench, row, write

from memeval.errors import UserError


def failure(folder: Path, content: Any) -> str:
    dataset = memory_agent_bench(write(folder, content))
    with pytest.raises(UserError) as caught:
        dataset.open()
        list(dataset.cases())
    assert "Conflict_Resolution.json" in caught.value.message and "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is it cut off?"),
        ("[]", "is empty, or not a list of records"),
        ("<html></html>", "is not readable JSON: lexical error"),
        (json.dumps([row()])[:-20], "is it cut off?"),
        (json.dumps([row()]).encode("utf-16"), "Conflict_Resolution.json"),
        ('[{"context": "é"}]'.encode("latin-1"), "in record 0"),
        (json.dumps(row()) + "\n" + json.dumps(row("ruler_x"))[:-9], "line 2"),
        ([None], "record 0 is null, not an object"),
        ([row(), row()], "record 1 has the same context and questions as record 0"),
        ([row(metadata=None)], "record 0: field 'metadata' is null, not an object"),
        (
            [row("webqa")],
            "record 0 metadata: field 'source' is 'webqa', a sub-data set without a known metric",
        ),
        (
            [row(metadata__source=3)],
            "record 0 metadata: field 'source' is an integer, not a string",
        ),
        ([row(questions=[])], "record 0: field 'questions' is empty"),
        ([row(questions=[" "])], "record 0: field 'questions' is empty, or contains an empty"),
        ([row(questions="x")], "record 0: field 'questions' is a string, not a list"),
        (
            [row(answers=[["x"]])],
            "record 0: field 'answers' has 1 lists of golds for 2 questions",
        ),
        (
            [row(answers=["x", ["y"]])],
            "record 0: field 'answers[0]' is a string, not a list of golds",
        ),
        ([row(answers=[["x"], []])], "record 0: field 'answers[1]' is empty"),
        ([row(answers=[["x"], ["y", " "]])], "record 0: field 'answers[1][1]' is empty"),
        ([row(answers=[["x"], [None]])], "record 0: field 'answers[1][0]' is null"),
        ([row(context=" ")], "record 0: field 'context' is empty"),
        ([row(context=None)], "record 0: field 'context' is null, not a string"),
        (
            [row(metadata__qa_pair_ids=["x"])],
            "record 0 metadata: field 'qa_pair_ids' has 1 entries for 2 questions",
        ),
        (
            [row(metadata__qa_pair_ids=["x", {}])],
            "record 0 metadata: field 'qa_pair_ids' contains an object, not a string",
        ),
        (
            [row(metadata__question_dates=["May", "June"])],
            "record 0 metadata: field 'question_dates[0]' is 'May', not a date like",
        ),
    ],
)
def test_damaged_file_is_refused_with_its_reason(
    tmp_path: Path, content: Any, message: str
) -> None:
    assert message in failure(tmp_path, content)


@pytest.mark.parametrize("name", ["context", "questions", "answers", "metadata"])
def test_a_missing_field_is_named(tmp_path: Path, name: str) -> None:
    missing = {key: value for key, value in row().items() if key != name}
    assert f"record 0: field '{name}' is missing" in failure(tmp_path, [missing])


def test_a_damaged_table_of_titles_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, [row()])
    write(tmp_path, "[]", "entity2id.json")
    with pytest.raises(UserError, match=r"entity2id.json: the table is a list, not an object"):
        list(memory_agent_bench(path).cases())
