"""`verify`, and who may read what a run leaves, through the command line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from command_line import SMALL, completed, memeval

CELL = ("dataset=demo", "system=rag", *SMALL)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("verify") / "home"
    before = os.umask(0)
    try:
        completed(home, *CELL)
        completed(home, *[word for word in CELL if word != "tracking=none"], "top_k=3")
    finally:
        os.umask(before)
    return home


def folders(home: Path) -> list[Path]:
    return sorted((home / "outputs" / "runs").iterdir())


def test_sound_runs_fit_by_key_beginning_and_folder(finished: Path) -> None:
    first, second = folders(finished)
    assert completed(finished, "verify").out.count(": sound") == 2
    assert first.name in completed(finished, "verify", first.name).out
    assert second.name in completed(finished, "verify", second.name[:6]).out
    assert completed(finished, "verify", str(first), second.name).out.count(": sound") == 2


@pytest.mark.parametrize("word", ["zz", "", "no/such/folder", "--nope", "\x1b[2J", "x" * 5000])
def test_what_names_no_run_is_one_line(finished: Path, word: str) -> None:
    done = memeval(finished, "verify", word)
    assert done.status == 2 and "Traceback" not in done.err and "\x1b" not in done.err
    assert len(done.err.splitlines()) <= 2


def test_a_beginning_of_two_keys_is_told(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "home")
    for number, folder in enumerate(folders(tmp_path / "home")):
        folder.rename(folder.with_name(f"abc{number}"))
    done = memeval(tmp_path / "home", "verify", "abc")
    assert done.status == 2 and "2 runs begin with 'abc'" in done.told


def test_a_home_without_runs_has_none(tmp_path: Path) -> None:
    assert "no finished run" in completed(tmp_path, "verify").out


def test_a_run_folder_away_from_its_home_is_compared_with_itself(
    finished: Path, tmp_path: Path
) -> None:
    first, _ = folders(finished)
    shutil.copytree(first, tmp_path / "sent" / "by" / first.name)
    assert (
        "not compared: "
        in completed(finished, "verify", str(tmp_path / "sent" / "by" / first.name)).out
    )


def test_what_was_edited_is_named(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, second = folders(home)
    records = first / "records.jsonl"
    rows = [json.loads(line) for line in records.read_bytes().split(b"\n") if line]
    rows[0]["hypothesis"] = "edited"
    records.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (second / "hypotheses.jsonl").unlink()
    manifest = next(home.glob("data/prepared/*/*/*/memory.json"))
    manifest.write_text(manifest.read_text().replace('"chunks": ', '"chunks": 9'))

    done = memeval(home, "verify")

    assert done.status == 1 and "Traceback" not in done.err
    for told in (
        "records.jsonl is damaged or was edited",
        rows[0]["question_id"],
        "hypotheses.jsonl is missing",
        "memory.json is damaged",
    ):
        assert told in done.out


def test_a_config_of_another_key_is_named_though_its_digest_fits(
    finished: Path, tmp_path: Path
) -> None:
    from memeval.results import file_digest, sealed

    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, _ = folders(home)
    config = first / "config.yaml"
    config.write_text(config.read_text().replace("retain_recent: 5", "retain_recent: 7"))
    told = json.loads((first / "run.json").read_bytes())
    told["files"]["config.yaml"] = file_digest(config)
    told.pop("digest")
    (first / "run.json").write_text(json.dumps(sealed(told)))
    assert "config.yaml makes another key" in memeval(home, "verify", first.name).out


def test_what_holds_conversations_is_its_owners_alone_whatever_the_umask(finished: Path) -> None:
    open_ones = [
        str(path.relative_to(finished))
        for path in finished.rglob("*")
        if path.stat().st_mode & 0o077
    ]
    assert open_ones == []
    assert (
        list(finished.rglob("mlflow.db"))
        and list(finished.rglob("chunks.json"))
        and list(finished.rglob("records_table.json"))
    )
