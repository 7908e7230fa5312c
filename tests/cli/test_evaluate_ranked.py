"""`evaluate --ranked FILE`: rankings of another program, measured and answered from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from command_line import completed, memeval, records, runs

from memeval.api.judging import RANKED_CLASS
from memeval.datasets.locate import build
from memeval.results.texts import TextStore

FEW = ("dataset.limit_cases=2", "tracking=none", "plots=false")


def written(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def of_bm25(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a run of bm25."""
    home = tmp_path_factory.mktemp("bm25")
    completed(home, "system=bm25", *FEW)
    return home


def rankings(home: Path, member: str) -> list[dict[str, Any]]:
    """Rankings of a home's run, as another program would write them."""
    (path,) = home.glob("outputs/answers/*.texts.jsonl")
    rows = []
    with TextStore(path) as texts:
        for record in records(home):
            found = record["retrieved"]
            if member == "text":
                ranked = [{"text": texts.get(one["text"]), "score": one["score"]} for one in found]
            else:
                ranked = [{"turn_ids": one["turn_ids"]} for one in found]

            rows.append({"question_id": record["question_id"], "ranked": ranked})

    return rows


@pytest.mark.slow
@pytest.mark.parametrize("member", ["text", "turn_ids"])
def test_rankings_of_a_system_give_its_figures(member: str, of_bm25: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "found.jsonl", rankings(of_bm25, member))
    completed(tmp_path, "evaluate", "--ranked", str(file), *FEW)
    (theirs,), (ours,) = runs(of_bm25), runs(tmp_path)
    for name in ("accuracy", "recall_at_5", "recall_at_10", "context_tokens", "coverage"):
        assert ours["metrics"][name] == theirs["metrics"][name], name

    for one, other in zip(records(tmp_path), records(of_bm25), strict=True):
        assert (one["hypothesis"], one["context"]) == (other["hypothesis"], other["context"])


def test_rankings_support_retrieve_and_context_tokens(of_bm25: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "found.jsonl", rankings(of_bm25, "turn_ids"))
    words = ("stages=retrieve", "context_tokens=60", *FEW)
    completed(tmp_path, "evaluate", "--ranked", str(file), *words)
    (run,) = runs(tmp_path)
    assert run["metrics"].get("accuracy") is None
    assert 0 < run["metrics"]["context_tokens"] <= 60
    assert run["metrics"]["ranking_recall_at_10"] > run["metrics"]["recall_shown"] > 0


@pytest.mark.slow
def test_rankings_and_answers_of_a_changing_memory_are_measured(tmp_path: Path) -> None:
    """Only questions have results, so nothing is searched for before a request to forget."""
    dataset = build(
        "demo_lifecycle", tmp_path, n_cases=1, languages=["en"], tokens=0, later_tokens=0
    )
    (case,) = dataset.cases()
    ranked, answers = [], []
    for question in case.questions:
        values = question.traces.values if question.traces else ()
        ranked.append({"question_id": question.question_id, "ranked": [{"text": str(values)}]})
        answers.append({"question_id": question.question_id, "hypothesis": str(values)})

    words = (
        "dataset=demo_lifecycle",
        "dataset.n_cases=1",
        "dataset.languages=[en]",
        "dataset.tokens=0",
        "dataset.later_tokens=0",
        "tracking=none",
        "plots=false",
    )
    file = written(tmp_path / "found.jsonl", ranked)
    completed(tmp_path / "ranked", "evaluate", "--ranked", str(file), *words)
    (run,) = runs(tmp_path / "ranked")
    assert run["metrics"]["known_rate/context"] == run["metrics"]["leak_rate/context"] == 1.0
    assert "leak_rate/probe" not in run["metrics"]
    assert "operations/forget/supported" not in run["metrics"]

    completed(
        tmp_path / "given", "evaluate", str(written(tmp_path / "given.jsonl", answers)), *words
    )
    (run,) = runs(tmp_path / "given")
    names = ("known_rate/answer", "leak_rate/answer", "breach_rate", "obeyed_rate")
    assert [run["metrics"][name] for name in names] == [1.0] * 4


def test_a_byte_order_mark_is_passed_over(of_bm25: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "found.jsonl", rankings(of_bm25, "turn_ids"))
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    completed(tmp_path, "evaluate", "--ranked", str(file), "stages=retrieve", *FEW)


def test_unmatched_ids_are_counted_and_named(of_bm25: Path, tmp_path: Path) -> None:
    rows = rankings(of_bm25, "turn_ids")
    left_out, wrong = rows.pop(0)["question_id"], rows[0]
    wrong["ranked"] = [{"turn_ids": ["D99:1"]}]
    others = [rows[1], {"question_id": "nobody", "ranked": []}]
    file = written(tmp_path / "found.jsonl", rows + others)
    done = memeval(tmp_path, "evaluate", "--ranked", str(file), *FEW)
    notes = " ".join((done.out + done.err).split())
    assert "1 unknown: ids that are not in the data set, left out: nobody" in notes
    assert f"1 missing: questions without a row, counted as failed: {left_out}" in notes
    again = rows[1]["question_id"]
    assert f"1 repeated: more rows with the same id; the first one counts: {again}" in notes
    failed = {one["question_id"]: one["error"] for one in records(tmp_path) if "error" in one}
    assert failed[left_out].endswith("the file has no row for it")
    why = "ranked[0].turn_ids names 'D99:1', which its case does not have"
    assert why in failed[wrong["question_id"]]


@pytest.mark.sampled(kept=3)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 1: not a row in JSON: input data was truncated"),
        ('{"ranked": []}', "not a row in JSON: object missing required field `question_id`"),
        ('{"question_id": "q"}', "not a row in JSON: object missing required field `ranked`"),
        ('{"question_id": "q", "ranked": [{"score": 1}]}', "ranked[0]: it has neither text nor"),
        ('{"question_id": "q", "ranked": [{"text": 7}]}', "ranked[0].text: expected `str | null`"),
        (
            '{"question_id": "q", "ranked": [{"text": "x", "score": "y"}]}',
            "ranked[0].score: expected",
        ),
        ("", "is empty"),
        ('{"question_id": "q", "ranked": []}', "lists no question of dataset=demo"),
    ],
)
def test_invalid_ranking_is_reported_on_one_line(row: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "found.jsonl"
    file.write_text(row, encoding="utf-8")
    done = memeval(tmp_path, "evaluate", "--ranked", str(file), *FEW)
    assert done.status == 2 and message in done.message, done.err
    assert str(file) in done.message


def test_ranked_refuses_only_listed(tmp_path: Path) -> None:
    file = written(tmp_path / "found.jsonl", [])
    done = memeval(tmp_path, "evaluate", "--ranked", "--only-listed", str(file))
    assert done.message.startswith("memeval: --ranked takes neither --only-listed nor --judged-by=")


def test_import_path_of_the_ranked_class_is_stable() -> None:
    assert RANKED_CLASS == "memeval.systems.external.ranked:Ranked"
