"""`dataset=json` through the whole command line: a run has the name that its file declares."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import completed, memeval, runs

DEMO = Path(__file__).parents[2] / "data" / "demo" / "own.json"


def test_run_has_the_name_declared_by_the_file(tmp_path: Path) -> None:
    words = ("dataset=json", f"dataset.path={DEMO}", "tracking=none", "plots=false")
    completed(tmp_path, *words)
    (run,) = runs(tmp_path)
    assert (run["dataset"], run["params"]["dataset"]) == ("helpdesk", "json")
    assert [category["name"] for category in run["categories"]] == [
        "cause",
        "fact",
        "order",
        "unknown",
        "update",
    ]
    # Wrong questions are asked again under the option's name, not the name of the file.
    again = completed(tmp_path, *words, f"dataset.only=wrong:{run['run_key']}")
    assert "answer 5/5" in again.err
    for name in ("helpdesk", "json"):
        assert run["run_key"][:8] in completed(tmp_path, "list", f"dataset={name}").out


def test_categories_with_numbers_are_sorted_numerically(tmp_path: Path) -> None:
    sizes = ["262k", "32k", "64k"]
    path = tmp_path / "own.jsonl"
    case = {
        "case_id": "c",
        "sessions": [{"turns": [{"speaker": "Ida", "text": "Port 7 is down."}]}],
        "questions": [
            {"question": "Which port?", "answer": "7", "category": size} for size in sizes
        ],
    }
    path.write_text(json.dumps(case) + "\n", encoding="utf-8")
    words = (f"dataset.path={path}", "tracking=none", "plots=false")
    completed(tmp_path, "-m", "dataset=json", "system=full_history,bm25", *words)

    by_size = ["32k", "64k", "262k"]
    for run in runs(tmp_path):
        assert [row["name"] for row in run["categories"]] == by_size

    (table,) = tmp_path.rglob("comparison.csv")
    columns = table.read_text(encoding="utf-8").partition("\n")[0].split(",")
    names = [f"accuracy/{size}" for size in by_size]
    assert [column for column in columns if column in names] == names

    counted = completed(tmp_path, "data", "stats", "json", f"dataset.path={path}").out
    compared = completed(tmp_path, "compare", "dataset=json", "--stats").out
    for shown in (counted, compared):
        places = list(map(shown.index, by_size))
        assert places == sorted(places), shown


def test_free_text_answers_have_recorded_verdicts_and_a_probe(tmp_path: Path) -> None:
    """The file has multiple-choice questions too, which are judged by choice under any judge."""
    answers = tmp_path / "answers.jsonl"
    row = {"question_id": "oduya/visit", "hypothesis": "17 June", "recorded_judge_labels": [True]}
    answers.write_text(json.dumps(row) + "\n", encoding="utf-8")
    words = ("dataset=json", f"dataset.path={DEMO}", "tracking=none", "plots=false")
    done = completed(tmp_path, "evaluate", str(answers), *words, "judge=recorded", "--only-listed")
    assert "judge: recorded (unnamed)" in done.out and " 100.0 " in done.out

    answers.write_text(json.dumps(row | {"kind": "right"}) + "\n", encoding="utf-8")
    probed = completed(tmp_path, "judge", "probe", f"--items={answers}", *words[:2])
    assert "1 of 1" in probed.out


def test_mistake_in_the_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"case_id": "a", "sessions": [], "questions": []}\n', encoding="utf-8")
    ended = memeval(tmp_path, "dataset=json", f"dataset.path={path}", "tracking=none")
    assert ended.status == 2
    assert ended.message == f"memeval: {path}: line 1 'a': field 'sessions' is empty."


def test_frozen_versions_are_named_and_compared_on_common_questions(tmp_path: Path) -> None:
    """A run names its version. Two versions are compared on the questions that are the same in
    both.
    """
    cases = [
        {
            "case_id": f"c{number}",
            "sessions": [{"turns": [{"speaker": "Ida", "text": f"Port {number} is down."}]}],
            "questions": [
                {"id": "a", "question": "Which port is down?", "answer": str(number)},
                {"id": "b", "question": "Is a port down?", "answer": "yes"},
            ],
        }
        for number in range(8)
    ]
    keys = []
    for version, answer in (("1", "yes"), ("2", "one is")):
        cases[0]["questions"][1]["answer"] = answer  # type: ignore[index]
        source = tmp_path / f"{version}.json"
        source.write_text(json.dumps({"name": "ports", "cases": cases}), encoding="utf-8")
        folder = tmp_path / f"v{version}"
        completed(
            tmp_path, "data", "freeze", str(source), "--version", version, "--into", str(folder)
        )
        words = ("dataset=json", f"dataset.path={folder}", "tracking=none", "plots=false")
        done = completed(tmp_path, *words, "system=bm25")
        assert "unpinned" not in done.out
        keys.append({run["run_key"] for run in runs(tmp_path)})

    (first,), (second,) = keys[0], keys[1] - keys[0]
    tags = [run["tags"] for run in runs(tmp_path)]
    assert sorted(tag["data_version"] for tag in tags) == ["1", "2"]
    assert {tag["data_pinned"] for tag in tags} == {"true"}

    refused = memeval(tmp_path, "compare", first, second)
    assert refused.status == 2
    assert "different data: sha256" in refused.message and "versions 2, 1" in refused.message
    assert "--common" in refused.err
    completed(tmp_path, *words, "system=bm25", "judge=contains")
    refused = memeval(tmp_path, "compare", first, "@last", "--common")
    assert "different judges" in refused.message and "--common" not in refused.err
    compared = completed(tmp_path, "compare", first, second, "--common", "--stats")
    assert "only the 15 of 16 questions with the same wording" in compared.out
    assert "15 questions in common" in compared.out
    assert "the table has all questions of each run" in compared.out
    for name in ("comparison.md", "comparison.html"):
        (file,) = tmp_path.glob(f"outputs/comparisons/*/{name}")
        assert "the table has all questions of each run" in file.read_text(encoding="utf-8")
