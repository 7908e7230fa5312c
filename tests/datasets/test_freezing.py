"""`data freeze | diff | merge | power`, and frozen data sets in runs and comparisons."""

from __future__ import annotations

import copy
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from memeval.cli.data import data
from memeval.datasets.json import frozen
from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.results.private import new_file

DEMO = Path(__file__).parents[2] / "data" / "demo" / "own.json"


def cases_of(count: int, prefix: str = "c") -> list[dict[str, Any]]:
    return [
        {
            "case_id": f"{prefix}{number}",
            "sessions": [{"turns": [{"id": "t", "role": "user", "content": f"Port {number}."}]}],
            "questions": [
                {
                    "id": name,
                    "question": f"Which port is {name}?",
                    "answer": str(number),
                    "evidence": ["t"],
                    "status": "accepted" if name == "a" else None,
                    "reviews": [{"reviewer": "Ida", "decision": "accepted"}] * 2,
                    "meta": {"drafted_by": "m"} if name == "a" else None,
                }
                for name in ("a", "b")
            ],
        }
        for number in range(count)
    ]


def own_file(path: Path, cases: Any) -> Path:
    path.write_text(json.dumps({"name": "ports", "cases": cases}), encoding="utf-8")
    return path


def freeze(source: Path, folder: Path, *more: str, version: str = "1") -> Path:
    words = ["freeze", str(source), "--into", str(folder), "--version", version]
    assert data([*words, *more]) == 0
    return folder


def opened(path: Path, **settings: Any) -> Any:
    dataset = build("json", Path("/nowhere"), path=str(path), **settings)
    return dataset, dataset.open()


def test_a_frozen_data_set_has_a_version_and_is_pinned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *cases, bare = cases_of(9)
    source = own_file(tmp_path / "mine.json", [*cases, {**bare, "questions": []}])
    folder = freeze(source, tmp_path / "v1", "--split", "0.25", "--licence", "CC0 1.0")
    output = capsys.readouterr().out
    assert "ports version 1, 9 cases, 9 sessions, 9 turns, 16 questions" in output
    assert "dataset.split=dev: 4 questions in 2 cases are too few to show any" in output
    assert "dataset.split=test: 12 questions in 6 cases can show a difference of" in output
    assert "ports: 16 questions in 8 cases can show a difference of" in output

    dataset, loaded = opened(folder)
    assert (loaded.name, loaded.version, loaded.pinned) == ("ports", "1", True)
    assert len(list(dataset.cases())) == 8
    sides = {
        side: {case.case_id for case in opened(folder, split=side)[0].cases()}
        for side in ("dev", "test")
    }
    ids = [case["case_id"] for case in cases]
    ids.sort(key=lambda name: sha256(f"memeval split {name}".encode()).digest())
    assert sides == {"dev": set(ids[:2]), "test": set(ids[2:])}

    sheet = (folder / "DATASHEET.md").read_text(encoding="utf-8")
    for line in (
        "| Version | 1 |",
        "| Made from | mine.json sha256 ",
        "| Split by case | dev 2, test 6 |",
        "| Drafted by | m 8, not stated 8 |",
        "| Checked by | not stated 16 |",
        "| Status | accepted 8, not stated 8 |",
        "| Reviewed by | Ida 16 |",
        " in the turns, counted offline |",
        "| Scripts | Latin 100.0 % |",
        "| Licence | CC0 1.0 |",
        "memeval canary",
    ):
        assert line in sheet

    assert stat.S_IMODE((folder / "data.jsonl").stat().st_mode) == 0o600
    # The same content gives the same bytes.
    again = freeze(source, tmp_path / "again", "--split", "0.25")
    assert (again / "data.jsonl").read_bytes() == (folder / "data.jsonl").read_bytes()
    # A version made from a frozen one keeps its split.
    refrozen = freeze(folder, tmp_path / "v2")
    dev = {case.case_id for case in opened(refrozen, split="dev")[0].cases()}
    assert dev == sides["dev"]


def test_a_frozen_data_set_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_DATA_DIR", str(tmp_path))
    assert data(["freeze", str(DEMO), "--version", "2"]) == 0
    dataset = build("json", tmp_path, path="helpdesk@2")
    assert dataset.open().version == "2"
    assert data(["diff", "helpdesk@2", str(DEMO)]) == 0
    assert data(["verify", "json", "dataset.path=helpdesk@2"]) == 0
    assert data(["freeze", "helpdesk@2", "--version", "3"]) == 0


def test_edited_frozen_data_set_is_refused(tmp_path: Path) -> None:
    folder = freeze(DEMO, tmp_path / "version 1")
    # Another version does not help: the folder is taken.
    with pytest.raises(UserError, match="already exists") as refused:
        data(["freeze", str(DEMO), "--into", str(folder), "--version", "2"])

    assert "another folder" in refused.value.line

    file = folder / "data.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("17 June", "18 June"))
    with pytest.raises(UserError, match="was edited after it was frozen as version 1") as refused:
        opened(folder)

    assert str(file) in shlex.split(refused.value.hints[0])

    (folder / "frozen.json").write_text('{"name": 5}')
    with pytest.raises(UserError, match=r"is not a frozen data set: frozen\.json: "):
        opened(folder)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--split", "1"], "leaves one side empty"),
        (["--version", "a b"], "must be like 1, 2.0"),
    ],
)
def test_freeze_refuses_invalid_arguments(tmp_path: Path, words: list[str], message: str) -> None:
    source = own_file(tmp_path / "mine.json", cases_of(3))
    base = ["freeze", str(source), "--into", str(tmp_path / "v"), "--version", "1"]
    with pytest.raises(UserError, match=message):
        data([*base, *words])

    assert not (tmp_path / "v").exists()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_interrupted_freeze_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = own_file(tmp_path / "mine.json", cases_of(3))
    words = ["freeze", str(source), "--version", "1", "--into"]
    with pytest.raises(UserError, match="v can't be written: Not a directory"):
        data([*words, str(source / "v")])

    folder = tmp_path / "v"
    with monkeypatch.context() as stopped:
        stopped.setattr(frozen, "_datasheet", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            data([*words, str(folder)])

    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]
    assert data([*words, str(folder)]) == 0


def test_leftovers_of_a_killed_process_with_the_same_id_do_not_block(tmp_path: Path) -> None:
    source = own_file(tmp_path / "mine.json", cases_of(2))
    left = tmp_path / f".v1.{os.getpid()}.tmp"
    left.mkdir()
    (left / "data.jsonl").write_text("torn")
    assert freeze(source, tmp_path / "v1").is_dir()

    (tmp_path / f".new.json.{os.getpid()}.tmp").write_text("torn")
    with new_file(tmp_path / "new.json") as file:
        file.write("whole")
    assert (tmp_path / "new.json").read_text() == "whole"
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o600


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from memeval.results.private import new_file
with new_file(Path(sys.argv[1])) as file:
    file.write("half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    path = tmp_path / "new.json"
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (tmp_path / ".notes-of-2026-abcdef01.abcdefgh.tmp").mkdir()
    assert len(list(tmp_path.iterdir())) == 2

    with new_file(path) as file:
        file.write("whole")

    names = sorted(left.name for left in tmp_path.iterdir())
    assert names == [".notes-of-2026-abcdef01.abcdefgh.tmp", "new.json"]


def test_freeze_refuses_a_file_without_questions_or_with_mistakes(tmp_path: Path) -> None:
    cases = cases_of(1)
    cases[0]["questions"] = []
    words = ["--into", str(tmp_path / "v"), "--version", "1"]
    with pytest.raises(UserError, match="has no questions"):
        data(["freeze", str(own_file(tmp_path / "a.json", cases)), *words])

    cases[0]["sesions"] = []
    with pytest.raises(UserError, match="field 'sesions' is not in the schema"):
        data(["freeze", str(own_file(tmp_path / "b.json", cases)), *words])


def test_diff_lists_the_changes_between_two_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = cases_of(4)
    new = copy.deepcopy(old)[1:] + cases_of(1, "new")
    new[0]["questions"][0]["answer"] = "another"
    new[1]["sessions"][0]["turns"][0]["content"] = "Port nine."
    new[2]["questions"].pop()
    new[2]["questions"][0]["meta"] = {"status": "edited"}
    new[2]["operations"] = [{"kind": "consolidate", "after": 0}]
    first = freeze(own_file(tmp_path / "old.json", old), tmp_path / "v1")
    second = freeze(own_file(tmp_path / "new.json", new), tmp_path / "v2", version="2")
    capsys.readouterr()
    assert data(["diff", str(first), str(second)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "1 case added",
        "  new0",
        "1 case removed",
        "  c0",
        "2 cases with another conversation",
        "  c2",
        "  c3",
        "2 questions added",
        "  new0/a",
        "  new0/b",
        "3 questions removed",
        "  c0/a",
        "  c0/b",
        "  c3/b",
        "1 question changed",
        "  c1/a (answer)",
        "4 questions are the same",
    ]


def test_merge_joins_matching_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = freeze(own_file(tmp_path / "a.json", cases_of(4)), tmp_path / "a", "--split", "0.5")
    other = own_file(tmp_path / "b.json", cases_of(4, "d"))
    second = freeze(other, tmp_path / "b", "--split", "0.5")
    words = ["--name", "both", "--version", "1"]
    whole = tmp_path / "whole"
    assert data(["merge", str(first), str(second), *words, "--into", str(whole)]) == 0
    dataset, loaded = opened(whole, split="dev")
    assert (loaded.name, len(list(dataset.cases()))) == ("both", 4)

    changed = cases_of(4)
    changed[0]["questions"][0]["answer"] = "x"
    third = freeze(own_file(tmp_path / "c.json", changed), tmp_path / "c", "--split", "0.5")
    target = ["--into", str(tmp_path / "x")]
    with pytest.raises(UserError, match="case 'c0' has different content in an earlier set"):
        data(["merge", str(first), str(third), *words, *target])

    plain = freeze(other, tmp_path / "d")
    with pytest.raises(UserError, match="some of the sets have a split, but others don't"):
        data(["merge", str(first), str(plain), *words, *target])

    # Half of the cases of `first` are on the other side in this set.
    other_side = freeze(
        own_file(tmp_path / "e.json", cases_of(4)), tmp_path / "e", "--split", "0.9"
    )
    with pytest.raises(UserError, match="is on the other side of the split in an earlier set"):
        data(["merge", str(first), str(other_side), *words, *target])

    capsys.readouterr()
    for set_, shared in ((plain, 0), (other_side, 4)):
        into = ["--into", str(tmp_path / f"anew {set_.name}")]
        assert data(["merge", str(first), str(set_), *words, *into, "--split", "0.5"]) == 0
        line = f"left out: {shared} cases with the same content in an earlier set"
        assert (line in capsys.readouterr().out) == bool(shared)

    with pytest.raises(UserError, match="whole repeats an earlier set"):
        data(["merge", str(whole), str(first), str(whole), *words, *target])

    with pytest.raises(UserError, match="is not a frozen data set"):
        data(["merge", str(other), *words, *target])


def test_licence_is_kept_by_new_versions_and_merges(tmp_path: Path) -> None:
    source = own_file(tmp_path / "a.json", cases_of(2))
    first = freeze(source, tmp_path / "a", "--licence", "CC0 1.0")
    other = freeze(own_file(tmp_path / "b.json", cases_of(2, "d")), tmp_path / "b")

    def licence(folder: Path) -> str:
        return str(json.loads((folder / "frozen.json").read_bytes())["licence"])

    assert licence(freeze(first, tmp_path / "a2", version="2")) == "CC0 1.0"
    whole = tmp_path / "whole"
    words = ["--name", "both", "--version", "1", "--into", str(whole)]
    assert data(["merge", str(first), str(other), *words]) == 0
    assert licence(whole) == "ports 1: CC0 1.0; ports 1: not stated"


def test_power_reports_the_detectable_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data(["power", str(own_file(tmp_path / "mine.json", cases_of(20)))]) == 0
    now, cases, questions = capsys.readouterr().out.splitlines()
    assert "40 questions in 20 cases can show a difference of" in now
    assert "with 40 such cases: a difference of" in cases
    assert "with 80 questions about these cases: a difference of" in questions
    # More cases help more than additional questions for the same cases.
    points = [float(line.split("difference of ")[1].split()[0]) for line in (cases, questions, now)]
    assert points == sorted(points)


def test_power_ignores_rejected_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = cases_of(20)
    for case, status in zip(cases, ["rejected", "drafted"] * 10, strict=True):
        case["questions"][1]["status"] = status

    assert data(["power", str(own_file(tmp_path / "mine.json", cases))]) == 0
    output = capsys.readouterr().out
    assert "30 questions in 20 cases can show" in output
    assert "10 of the questions are drafts: a run asks them once they are accepted" in output
