"""`pack`: what a package contains, and what it must not contain."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from array import array
from dataclasses import replace
from pathlib import Path

import pytest
from installed import install
from msgspec import structs

import memeval
from memeval.cli.main import run_command
from memeval.datasets.registry import dataset_info
from memeval.errors import StorageError, UserError
from memeval.packages import form, is_withheld, open_package
from memeval.packages.cleaning import Cleaner
from memeval.packages.export import terms
from memeval.packages.facts import environment_facts
from memeval.packages.form import ANSWERS
from memeval.packages.levels import verify_package
from memeval.packages.rows import row_lines
from memeval.packages.write import Packed, on_disk, pack
from memeval.pipeline.verify.sound import FolderCheck, verify_run
from memeval.records import Role, Status, Usage
from memeval.results import AnswerRow, JudgeIdentity, RunSummary, is_same_judge
from memeval.results.fields import read_as
from memeval.results.hosts import host_digest
from memeval.results.run import Run

KEY = "sk-Canary7h1sKeyMustNotLeave0000"


def text_of(path: Path) -> str:
    """The whole content of a package, as one string."""
    with zipfile.ZipFile(path) as archive:
        return "\n".join(archive.read(name).decode() for name in archive.namelist())


def test_the_same_runs_give_the_same_bytes(
    packed: Packed, runs: list[memeval.FinishedRun], tmp_path: Path
) -> None:
    again = pack(runs[::-1], tmp_path / "again.memeval", who="the tests")
    assert again.path.read_bytes() == packed.path.read_bytes()
    assert again.id == packed.id


def test_corrected_accuracy_is_not_packed(
    packed: Packed, runs: list[memeval.FinishedRun], tmp_path: Path
) -> None:
    shown = []
    for run in runs:
        metrics = {**run.metrics, "accuracy_corrected": None, "accuracy_corrected_low": 0.4}
        shown.append(Run(run.folder, replace(run.summary, metrics=metrics)))

    again = pack(shown, tmp_path / "calibrated.memeval", who="the tests")
    assert again.path.read_bytes() == packed.path.read_bytes()


def test_package_is_read_like_a_home(packed: Packed, runs: list[memeval.FinishedRun]) -> None:
    with open_package(packed.path) as package:
        assert [run.key for run in package.runs] == sorted(run.key for run in runs)
        for run in package.runs:
            (own,) = [own for own in runs if own.key == run.key]
            assert run.metrics == own.metrics
            assert run.read_records() == own.read_records()
            assert run.context("demo-1/q0") == own.context("demo-1/q0")
            verified = verify_run(run.folder)
            assert (verified.problems, verified.unchecked) == ([], [])

        assert set(package.environment["runs"]) == {run.key for run in runs}


def test_package_contains_no_paths_or_times_of_the_machine(packed: Packed, home: Path) -> None:
    content = text_of(packed.path)
    assert str(home) not in content and str(Path.home()) + "/" not in content
    with zipfile.ZipFile(packed.path) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_paths_hosts_and_secrets_are_replaced_and_counted(
    monkeypatch: pytest.MonkeyPatch, runs: list[memeval.FinishedRun], tmp_path: Path
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "canary-machine.corp.example")
    cleaner = Cleaner({"llm.base_url": "http://llm.corp.example:8000/v1"})
    host = host_digest("llm.corp.example:8000")
    for given, expected in (
        ("http://llm.corp.example:8000/v1", f"http://{host}/v1"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("no route to llm.corp.example:8000", f"no route to {host}"),
        ("/secret/folder/answers.jsonl", "[path]/answers.jsonl"),
        ("see /secret/folder/answers.jsonl, line 3", "see [path]/answers.jsonl, line 3"),
        (r"C:\secret\answers.jsonl", "[path]/answers.jsonl"),
        ("at 10.1.2.3", f"at {host_digest('10.1.2.3')}"),
        ("on canary-machine", f"on {host_digest('canary-machine')}"),
        (f"Bearer {KEY}", "Bearer [redacted]"),
        ("3/4 of and/or 12:30", "3/4 of and/or 12:30"),
    ):
        assert cleaner.clean_own(given) == expected
    # A measured text keeps what only looks like a path.
    assert cleaner.text("it is in /etc/hosts") == "it is in /etc/hosts"
    assert cleaner.text("ask llm.corp.example") == f"ask {host_digest('llm.corp.example:8000')}"
    assert {"secret", "path", "host"} == set(cleaner.counts)
    command = cleaner.command(
        "python -m memeval evaluate '/my data/a b.jsonl' dataset.path=/x/y.json"
    )
    assert command == "python -m memeval evaluate '[path]/a b.jsonl' 'dataset.path=[path]/y.json'"
    # A sweep writes an address as Hydra quotes it.
    command = cleaner.command(r"python -m memeval 'llm.base_url=http\://gpu1\:8000/v1' 'note=a\:b'")
    digest = host_digest("gpu1:8000")
    assert command == rf"python -m memeval llm.base_url=http://{digest}/v1 'note=a\:b'"


def test_path_with_spaces_in_a_setting_is_replaced_in_each_text_alike() -> None:
    model = "/models/My Model/q4 k.gguf"
    cleaner = Cleaner({"llm.model": model})
    assert cleaner.clean_own([model, f"bm25 {model}"]) == [
        "[path]/q4 k.gguf",
        "bm25 [path]/q4 k.gguf",
    ]
    command = cleaner.command(f"python -m memeval \"llm.model='{model}'\"")
    assert "My Model" not in command and "[path]/q4 k.gguf" in command


def test_common_host_name_and_folders_are_not_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, folder in (("HOME", "/root"), ("MEMEVAL_HOME", "/x"), ("MEMEVAL_DATA_DIR", "/y")):
        monkeypatch.setenv(name, folder)

    monkeypatch.chdir("/")
    monkeypatch.setattr(socket, "gethostname", lambda: "box")
    cleaner = Cleaner({})
    assert cleaner.text("Tea, in a box.") == cleaner.clean_own("Tea, in a box.") == "Tea, in a box."
    assert not cleaner.counts


def test_found_canaries_are_compared_without_their_texts(
    monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path
) -> None:
    """Of the planted texts that a memory showed, a package without texts has only the digests."""
    run = memeval.run(
        "dataset=demo", "system=rag", "dataset.canaries=2", "dataset.limit_cases=2",
        "dataset.limit_questions=2", "tracking=none", progress=False,
    )  # fmt: skip
    assert run.metrics["breach_rate"]
    allowed = terms.terms_of(run.summary)
    monkeypatch.setattr(
        "memeval.packages.write.terms_of", lambda _: structs.replace(allowed, allows_texts=False)
    )
    path = pack([run], tmp_path / "withheld.memeval").path
    assert [level.problems for level in verify_package(path)] == [[]] * 6


def test_replacements_in_settings_that_yaml_quotes_leave_a_sound_package(
    home: Path, tmp_path: Path
) -> None:
    run = memeval.run(
        "dataset=demo", "system=no_memory", "dataset.limit_cases=1", "dataset.limit_questions=1",
        "tracking=none", label="a: /srv/x/notes, it's \"b\"", progress=False,
    )  # fmt: skip
    path = pack([run], tmp_path / "quoted.memeval").path
    assert [level.problems for level in verify_package(path)] == [[]] * 6
    with open_package(path) as package:
        assert package.runs[0].summary.params["label"] == 'a: [path]/notes, it\'s "b"'


def test_texts_enter_only_if_the_licence_allows_it(
    monkeypatch: pytest.MonkeyPatch, runs: list[memeval.FinishedRun], tmp_path: Path
) -> None:
    allowed = terms.terms_of(runs[0].summary)
    monkeypatch.setattr(
        "memeval.packages.write.terms_of", lambda _: structs.replace(allowed, allows_texts=False)
    )
    path = pack(runs, tmp_path / "withheld.memeval").path
    content = text_of(path)
    own = runs[0].read_records()
    long = [text for record in own for text in (record.question, *record.gold) if len(text) > 20]
    assert long and not any(json.dumps(text)[1:-1] in content for text in long)
    with open_package(path) as package:
        assert not package.manifest.data[0].texts
        for run in package.runs:
            records = run.read_records()
            assert all(is_withheld(record.question) for record in records)
            assert run.context(records[0].question_id) is None
            assert verify_run(run.folder).problems == []

            answers = [record.hypothesis for record in records]
            (own_run,) = [one for one in runs if one.key == run.key]
            assert answers == [record.hypothesis for record in own_run.read_records()]


def test_the_licence_of_an_installed_data_set_is_not_known_wherever_it_is_checked(
    monkeypatch: pytest.MonkeyPatch, runs: list[memeval.FinishedRun], tmp_path: Path
) -> None:
    code = """
from memeval.datasets.registry import DATASETS
from memeval.datasets.locomo.adapter import Locomo

class Mine(Locomo):
    info = DATASETS["demo"]
"""
    points = {"memeval.datasets": {"mine": "my_open_data:Mine"}}
    install(tmp_path, "my-open-data", points, files={"my_open_data.py": code})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert dataset_info("mine").licence == "CC0 1.0"
    summary = runs[0].summary
    summary = replace(summary, dataset="mine", params={**summary.params, "dataset": "mine"})
    assert terms.terms_of(summary).licence == terms.UNKNOWN


def test_a_run_without_its_rows_is_refused(
    runs: list[memeval.FinishedRun], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = tmp_path / "elsewhere" / runs[0].key
    shutil.copytree(runs[0].folder, copied)
    assert run_command(["pack", str(copied), "-o", str(tmp_path / "copied.memeval")]) == 2
    output = capsys.readouterr().err
    assert "can't be packed: answers/" in output and "is missing: the records can't be" in output


def test_stopped_or_invalid_run_is_packed_with_its_mark(
    runs: list[memeval.FinishedRun],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mark is set here without a stopped run: the test is whether it is carried over."""
    read = RunSummary.read.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        RunSummary,
        "read",
        classmethod(lambda cls, folder: replace(read(cls, folder), status="stopped", valid=False)),
    )
    monkeypatch.setattr(FolderCheck, "_check_members", lambda look, summary: None)
    target = tmp_path / "stopped.memeval"
    words = ["pack", runs[0].key, "-o", str(target), "--supersedes", "0123456789abcdef"]
    assert run_command(words) == 0
    monkeypatch.undo()
    assert "STOPPED" in capsys.readouterr().out
    with open_package(target) as package:
        assert package.runs[0].summary.is_stopped and not package.runs[0].valid
        assert package.manifest.supersedes == "0123456789abcdef"


def test_an_edited_run_is_not_packed(runs: list[memeval.FinishedRun], tmp_path: Path) -> None:
    run = runs[0]
    with pytest.raises(UserError, match="can't be packed"):
        pack(
            [Run(run.folder, replace(run.summary, run_key="other")), _edited(run, tmp_path)],
            tmp_path / "x.memeval",
        )


def _edited(run: memeval.FinishedRun, tmp_path: Path) -> Run:
    folder = tmp_path / "outputs" / "runs" / run.key
    folder.mkdir(parents=True)
    for path in run.folder.iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())

    (folder / "records.jsonl").write_bytes(b"")
    return Run(folder, run.summary)


@pytest.mark.parametrize(
    "words, message",
    [
        (["-o", "x.zip"], "does not end in .memeval"),
        (["-o", "x.memeval", "--supersedes", "y"], "16 hex digits"),
        (["no-such-run", "-o", "x.memeval"], "unknown run"),
        (["-o", "x.memeval", "--sign", "/no/key"], "argument --sign: there is no file '/no/key'"),
    ],
)
def test_user_error_is_one_line(
    words: list[str],
    message: str,
    runs: list[memeval.FinishedRun],
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = [] if "no-such-run" in words else [runs[0].key]
    assert run_command(["pack", *chosen, *words]) == 2
    output = capsys.readouterr().err
    assert message in output and "Traceback" not in output


def test_the_newest_runs_are_packed(runs: list[memeval.FinishedRun], tmp_path: Path) -> None:
    path = tmp_path / "newest.memeval"
    for last in (1, len(runs)):
        assert run_command(["pack", "--last", str(last), "-o", str(path)]) == 0
        with open_package(path) as package:
            assert len(package.runs) == last


def test_judge_at_a_private_endpoint_stays_the_same_judge_in_a_package() -> None:
    judge = JudgeIdentity(name="llm", model="m", address="http://10.1.2.3:8000/v1")
    packed = read_as(Cleaner({}).clean_own(judge.to_json()), JudgeIdentity)
    assert packed.address != judge.address
    assert is_same_judge(judge, packed) and is_same_judge(packed, judge)
    assert not is_same_judge(structs.replace(judge, address="http://10.1.2.3:8001/v1"), packed)
    assert not is_same_judge(structs.replace(judge, model="n"), packed)


def test_lines_of_rows_are_not_collected_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "LARGEST_SMALL", 2**20)
    ranking = array("I", range(1_000_000, 1_004_000))
    row = AnswerRow("q", Status.OK, hypothesis="7 May", ranking=ranking)
    rows = {(0, f"q{number}"): row for number in range(100)}
    keys = [{"answer": "0123456789abcdef", "seed": 0}]

    tracemalloc.start()
    try:
        content = on_disk(row_lines(keys, ANSWERS, rows, lambda _, row: row.to_json(), {}))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert bytes(content).count(b"\n") == 101
    assert peak < len(content) / 2


def test_nothing_to_write_is_an_empty_entry() -> None:
    assert on_disk([]) == b""


def test_short_entries_keep_no_file_open() -> None:
    with tempfile.TemporaryFile() as before:
        lowest_free = before.fileno()

    contents = [on_disk([b"first\n", b"second\n"]) for _ in range(3)]
    with tempfile.TemporaryFile() as after:
        assert after.fileno() == lowest_free
    assert contents == [b"first\nsecond\n"] * 3


def test_a_full_temporary_folder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageError, match=r"gone can't be written: No such file"):
        on_disk([b"line"])


def test_only_a_package_keeps_rows_and_records(runs: list[memeval.FinishedRun]) -> None:
    kept = []
    for keeps in (True, False):
        check = FolderCheck(runs[0].folder, keeps_rows=keeps)
        check.run()
        assert check.problems == []
        kept.append([bool(rows) for rows in (check.answers, check.verdicts, check.records)])

    assert kept == [[True] * 3, [False] * 3]


def test_environment_names_the_models_that_replies_named(runs: list[memeval.FinishedRun]) -> None:
    usage = Usage(Role.ANSWER, "m", "openai", 100, 10)
    row = AnswerRow(id="q", status=Status.OK, hypothesis="a", usage=(usage,))
    switched = structs.replace(row, notes={Role.ANSWER.models_note: ["m-2"]})
    (model,) = environment_facts(runs[0].summary, [row])["models"]
    assert "reported" not in model
    (model,) = environment_facts(runs[0].summary, [row, switched])["models"]
    assert model["reported"] == ["m-2"]


@pytest.mark.parametrize("limit", ["LARGEST_ENTRY", "LARGEST", "MAX_ENTRIES"])
def test_a_package_that_nobody_could_open_is_not_written(
    limit: str,
    runs: list[memeval.FinishedRun],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(form, limit, 10)
    with pytest.raises(UserError, match=r"too large to be opened: .* more than 10$"):
        pack(runs, tmp_path / "large.memeval")

    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_pack_left_is_removed_by_the_next_one(
    runs: list[memeval.FinishedRun], tmp_path: Path
) -> None:
    code = """
import os, signal, sys, zipfile
from pathlib import Path
from memeval.packages.write import _write
zipfile.ZipFile.writestr = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
_write(Path(sys.argv[1]), {"manifest.json": b"half"})
"""
    words = [sys.executable, "-c", code, str(tmp_path / "killed.memeval")]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1

    package = pack(runs, tmp_path / "own.memeval").path
    assert list(tmp_path.iterdir()) == [package]
