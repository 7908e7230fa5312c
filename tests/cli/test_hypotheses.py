"""Every run writes answers in LongMemEval's format; `evaluate` gives them the same figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import completed, memeval, records, runs

from memeval.records import Status

pytestmark = pytest.mark.slow

FIGURES = (
    "accuracy",
    "accuracy_macro",
    "token_f1",
    "coverage",
    "abstention_accuracy",
    "knowledge_update_accuracy",
)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    "words",
    [
        ("dataset=demo_longmemeval", "system=oracle", "llm=mock", "judge=longmemeval"),
        ("dataset=demo",),
    ],
    ids=str,
)
def test_answers_judged_again_get_the_same_figures(tmp_path: Path, words: tuple[str, ...]) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    completed(first, *words, "tracking=none", "system=oracle")
    (file,) = first.glob("outputs/runs/*/hypotheses.jsonl")
    judging = [word for word in words if not word.startswith("system=")]
    completed(second, "evaluate", str(file), *judging, "tracking=none")
    (run,), (again,) = runs(first), runs(second)
    found = {name: run["metrics"].get(name) for name in FIGURES}
    assert found == {name: again["metrics"].get(name) for name in FIGURES}
    assert 0 < found["accuracy"] < 1 and run["facets"].keys() == again["facets"].keys()
    assert all(list(row) == ["question_id", "hypothesis"] for row in rows(file))


def test_each_repeat_has_a_file_without_failed_answers(tmp_path: Path) -> None:
    completed(tmp_path, "dataset=demo_longmemeval", "num_runs=2", "tracking=none")
    (folder,) = tmp_path.glob("outputs/runs/*")
    assert sorted(path.name for path in folder.glob("hyp*")) == [
        "hypotheses.jsonl",
        "hypotheses_1.jsonl",
    ]
    kept = [
        {"question_id": row["question_id"], "hypothesis": row["hypothesis"]}
        for row in records(folder)
        if row["repeat"] == 1
    ]
    assert rows(folder / "hypotheses_1.jsonl") == kept and len(kept) == 8
    part = tmp_path / "part.jsonl"
    part.write_text("\n".join(json.dumps(row) for row in kept[:5]), encoding="utf-8")
    words = ("evaluate", str(part), "dataset=demo_longmemeval", "tracking=none")
    assert memeval(tmp_path / "part", *words).status == 1, "three of eight questions have no answer"
    (folder,) = (tmp_path / "part").glob("outputs/runs/*")
    assert [row["status"] for row in records(folder)].count(Status.ANSWER_FAILED) == 3
    assert rows(folder / "hypotheses.jsonl") == kept[:5]
