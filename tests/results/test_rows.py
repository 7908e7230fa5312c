"""Rows that parse as JSON but are invalid: skipped and counted, wherever they are read."""

from __future__ import annotations

import errno
import json
import os
import tracemalloc
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from msgspec.structs import replace

from memeval.errors import StorageError
from memeval.pipeline.execute.imported import read_hypotheses
from memeval.pipeline.execute.rows import answer_digest, is_about
from memeval.records import Status
from memeval.results import (
    AnswerRow,
    IngestRow,
    RunSummary,
    StepTimes,
    VerdictRow,
    as_json,
    sealed,
    unsealed,
    write_atomically,
)
from memeval.results.files import append_whole, memory_folders
from memeval.results.private import make_folder
from memeval.results.rows import answer_or_ingest
from memeval.results.store import RowStore, read_row_file, read_rows, sealed_line

HEADER = {"answer": "0123456789abcdef", "seed": 0}
USAGE = {
    "role": "answer",
    "model": "m",
    "provider": "offline",
    "prompt_tokens": 3,
    "completion_tokens": None,
}
ANSWER = {
    "id": "q",
    "status": "ok",
    "hypothesis": "7 May",
    "retrieved": [
        {
            "text": "0123456789abcdef",
            "turn_ids": ["D1:1"],
            "score": 0.5,
            "time": "2023-05-07T13:56:00",
        },
        {"text": "0123456789abcdef", "turn_ids": []},
    ],
    "ranking": [3, [4, 5], []],
    "context": "0123456789abcdef",
    "prompt": [{"role": "user", "text": "0123456789abcdef"}],
    "finish_reason": "stop",
    "context_tokens": 12,
    "usage": [USAGE],
    "times": {"answer_ms": None, "wait_s": 0.0},
    "origin": "run",
}
INGEST = {
    "id": "ingest c",
    "status": "ok",
    "chunks": 3,
    "compressions": 0,
    "usage": [],
    "origin": "run",
    "times": {"ingest_ms": 1.0},
}
VERDICT = {
    "id": "q",
    "status": "ok",
    "verdict": {"judge": "keyword", "label": "correct", "score": 1.0, "reason": "exact"},
    "usage": [],
    "times": {"judge_ms": None},
    "origin": "run",
    "judged": "0123456789abcdef",
}
NAN = float("nan")
ODD_ANSWERS = [
    {"status": "odd"},
    {"status": None},
    {"status": ["ok"]},
    {"status": {}},
    {"hypothesis": None},
    {"hypothesis": 7},
    {"hypothesis": ["7 May"]},
    {"ranking": 3},
    {"ranking": ["3"]},
    {"ranking": [-1]},
    {"ranking": [[3, None]]},
    {"ranking": [True]},
    {"retrieved": "D1:1"},
    {"retrieved": [["D1:1"], 3]},
    {"retrieved": [{"turn_ids": "D1:1"}]},
    {"retrieved": [{"turn_ids": [1]}]},
    {"retrieved": [{"turn_ids": [], "score": NAN}]},
    {"retrieved": [{"turn_ids": [], "score": True}]},
    {"retrieved": [{"turn_ids": [], "time": "yesterday"}]},
    {"context": 3},
    {"prompt": "hello"},
    {"prompt": [{"role": "user"}]},
    {"finish_reason": 3},
    {"context_tokens": "12"},
    {"context_tokens": -1},
    {"usage": None},
    {"usage": [7]},
    {"usage": [{**USAGE, "role": "king"}]},
    {"usage": [{**USAGE, "prompt_tokens": "7"}]},
    {"usage": [{**USAGE, "more": 1}]},
    {"usage": [{"role": "answer"}]},
    {"times": []},
    {"times": {"wait_s": "long"}},
    {"times": {"wait_s": NAN}},
    {"notes": "cut"},
    {"raw": 3},
    {"origin": 3},
    {"status": "answer_failed"},
]
ODD_VERDICTS: list[dict[str, Any]] = [
    {"status": "odd"},
    {"status": 3},
    {"verdict": None},
    {"verdict": "correct"},
    {"verdict": {}},
    {"verdict": {**VERDICT["verdict"], "label": "right"}},  # type: ignore[dict-item]
    {"verdict": {**VERDICT["verdict"], "label": ["correct"]}},  # type: ignore[dict-item]
    {"verdict": {**VERDICT["verdict"], "label": "unscored"}},  # type: ignore[dict-item]
    {"verdict": {**VERDICT["verdict"], "score": "1"}},  # type: ignore[dict-item]
    {"verdict": {**VERDICT["verdict"], "score": NAN}},  # type: ignore[dict-item]
    {"verdict": {**VERDICT["verdict"], "reason": 3}},  # type: ignore[dict-item]
    {"verdict": {**VERDICT["verdict"], "chosen": 1}},  # type: ignore[dict-item]
    {"verdict": {**VERDICT["verdict"], "chosen": ["1"]}},  # type: ignore[dict-item]
    {"judged": 3},
    {"status": "unparsed"},
    {"status": "judge_failed"},
]


def is_taken(row: Mapping[str, Any], parse: Callable[[Mapping[str, Any]], Any]) -> bool:
    found = read_rows(BytesIO(sealed_line(HEADER, row)), HEADER, parse)
    assert len(found.rows) + found.dropped == 1
    return bool(found.rows)


def test_valid_rows_are_read() -> None:
    assert (
        is_taken(ANSWER, answer_or_ingest)
        and is_taken(INGEST, answer_or_ingest)
        and is_taken(VERDICT, VerdictRow.from_json)
    )
    assert is_taken({"id": "q", "status": "answer_failed", "error": "no reply"}, answer_or_ingest)
    assert is_taken(
        {"id": "q", "status": "judge_failed", "error": "no reply"}, VerdictRow.from_json
    )


@pytest.mark.parametrize("change", ODD_ANSWERS, ids=repr)
def test_invalid_answers_are_skipped_and_counted(change: dict[str, Any]) -> None:
    assert not is_taken({**ANSWER, **change}, answer_or_ingest)


@pytest.mark.parametrize("change", ODD_VERDICTS, ids=repr)
def test_invalid_verdicts_are_skipped_and_counted(change: dict[str, Any]) -> None:
    assert not is_taken({**VERDICT, **change}, VerdictRow.from_json)


def test_row_with_a_huge_number_is_invalid() -> None:
    assert not is_taken({**ANSWER, "times": {"wait_s": 10**400}}, answer_or_ingest)
    assert not is_taken({**ANSWER, "context_tokens": 10**14}, answer_or_ingest)


def test_a_refusal_names_the_path_of_the_member() -> None:
    odd = {**ANSWER, "usage": [{**USAGE, "calls": -1}]}
    with pytest.raises(ValueError, match=r"Expected `int` >= 0 - at `\$\.usage\[0\]\.calls`"):
        answer_or_ingest(odd)


@pytest.mark.parametrize("name", ["id", "status", "hypothesis"])
def test_row_without_a_required_field_is_invalid(name: str) -> None:
    assert not is_taken(
        {key: value for key, value in ANSWER.items() if key != name}, answer_or_ingest
    )


STORED_ANSWER = (
    b'{"id":"q","status":"ok","hypothesis":"7 May","error":"e","raw":"May","finish_reason":"stop",'
    b'"context":"0123456789abcdef","context_tokens":12,"retrieved":[{"text":"0123456789abcdef",'
    b'"turn_ids":["D1:1"],"score":0.5,"time":"2023-05-07T13:56:00"},{"text":"0123456789abcdef",'
    b'"turn_ids":[]}],"ranking":[3,[4,5],[]],"prompt":[{"role":"user","text":"0123456789abcdef"}],'
    b'"notes":{"cut":1},"usage":[{"role":"answer","model":"m","provider":"offline",'
    b'"prompt_tokens":3,"completion_tokens":null,"cached_tokens":0,"calls":1,"estimated":false,'
    b'"cached":false}],"times":{"wait_s":0.0},"origin":"run","seal":"74738d51bdfc402c"}'
)
STORED_INGEST = (
    b'{"id":"ingest c","status":"ok","chunks":3,"compressions":0,"health":{"asked":3,"stored":2,'
    b'"lost":1},"notes":{"a":1},"usage":[],"times":{"ingest_ms":1.0},"origin":"run",'
    b'"seal":"faf1da692a36c67f"}'
)
STORED_VERDICT = (
    b'{"id":"q","status":"ok","verdict":{"judge":"keyword","label":"correct","score":1.0,'
    b'"reason":"exact","chosen":[1],"votes":["correct"],"tries":1,"graded":true,'
    b'"parts":{"items":[1.0,0.5]}},"error":"e","judged":"0123456789abcdef","notes":{"a":1},'
    b'"usage":[],"times":{},"origin":"run","seal":"87cf8bc4c3de07b1"}'
)


@pytest.mark.parametrize(
    ("line", "parse"),
    [
        (STORED_ANSWER, answer_or_ingest),
        (STORED_INGEST, answer_or_ingest),
        (STORED_VERDICT, VerdictRow.from_json),
    ],
)
def test_stored_line_is_rewritten_byte_for_byte(line: bytes, parse: Any) -> None:
    """Seals cover bytes: another order of members would invalidate all stored rows."""
    content = sealed_line(HEADER, {"header": HEADER}) + line + b"\n"
    (row,) = read_rows(BytesIO(content), HEADER, parse).rows.values()
    assert sealed_line(HEADER, row.to_json()) == line + b"\n"


@pytest.mark.parametrize("time", ["2023-05-07T13:56:00+00:00", "2023-05-07T13:56:00.125000-05:30"])
def test_time_with_an_offset_is_written_in_pythons_iso_format(time: str) -> None:
    chunk = {"text": None, "turn_ids": [], "time": time}
    row = answer_or_ingest({**ANSWER, "retrieved": [chunk]})
    assert row.to_json()["retrieved"] == [chunk]


@pytest.mark.parametrize("row", [ANSWER, INGEST])
def test_row_survives_a_round_trip(row: dict[str, Any]) -> None:
    typed = answer_or_ingest(row)
    assert answer_or_ingest(typed.to_json()) == typed
    assert isinstance(typed, AnswerRow | IngestRow)


def test_verdict_survives_a_round_trip() -> None:
    typed = VerdictRow.from_json(VERDICT)
    assert VerdictRow.from_json(typed.to_json()) == typed


@pytest.mark.parametrize(
    "odd",
    [
        {"notes": {"x": object()}},
        {"context_tokens": object()},
        {"hypothesis": b"x"},
        {"times": StepTimes(answer_ms=NAN)},
    ],
)
def test_values_that_json_cannot_represent_are_refused(tmp_path: Path, odd: dict[str, Any]) -> None:
    row = replace(AnswerRow(id="q", status=Status.OK, hypothesis="7 May"), **odd)
    with answers_at(tmp_path / "rows.jsonl") as store:
        with pytest.raises(ValueError, match="can't be stored"):
            store.append(row)
        assert not store.rows


def test_every_single_flipped_bit_in_a_row_is_detected() -> None:
    line = sealed_line(HEADER, VERDICT)
    for place in range(len(line)):
        for bit in (1, 2, 32):
            damaged = bytearray(sealed_line(HEADER, {"header": HEADER}) + line)
            damaged[-len(line) + place] ^= bit
            assert not read_rows(BytesIO(bytes(damaged)), HEADER, VerdictRow.from_json).rows, (
                place,
                bit,
            )


def test_rows_of_another_key_are_skipped() -> None:
    other = {**HEADER, "answer": "fedcba9876543210"}
    theirs = sealed_line(other, {"header": other}) + sealed_line(other, ANSWER)
    assert read_rows(BytesIO(theirs), HEADER, answer_or_ingest).dropped == 2


def test_rows_without_seals_are_skipped_and_counted() -> None:
    header = json.dumps({"header": HEADER}).encode() + b"\n"
    row = json.dumps(ANSWER).encode() + b"\n"
    read = read_rows(BytesIO(header + row), HEADER, answer_or_ingest)
    assert (list(read.rows), read.has_header, read.dropped) == ([], False, 2)
    later = sealed_line(HEADER, {"header": HEADER}) + sealed_line(HEADER, ANSWER) + row
    assert read_rows(BytesIO(later), HEADER, answer_or_ingest).dropped == 1


def answers_at(path: Path, header: Mapping[str, Any] = HEADER) -> RowStore[AnswerRow | IngestRow]:
    return RowStore(path, header, answer_or_ingest)


def answer(text: str, question_id: str = "q") -> AnswerRow:
    return AnswerRow(id=question_id, status=Status.OK, hypothesis=text)


def test_rows_of_two_keys_in_one_file_are_read_under_their_own_header(tmp_path: Path) -> None:
    path, other = tmp_path / "rows.jsonl", {"answer": "other", "seed": 1}
    with answers_at(path, other) as store:
        store.append(answer("7 May"))
    with answers_at(path) as store:
        assert not store.rows and store.dropped == 2
        store.append(answer("mine"))
    with answers_at(path) as store:
        assert store.rows["q"] == answer("mine")
    with answers_at(path, other) as store:
        assert store.rows["q"] == answer("7 May")


@pytest.mark.parametrize(
    "mark", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\r"]
)
def test_only_a_newline_ends_a_row(tmp_path: Path, mark: str) -> None:
    with answers_at(tmp_path / "rows.jsonl") as store:
        store.append(answer(mark, f"a{mark}b"))
    with answers_at(tmp_path / "rows.jsonl") as store:
        assert list(store.rows) == [f"a{mark}b"] and not store.dropped
    answers = tmp_path / "answers.jsonl"
    line = json.dumps({"question_id": "q", "hypothesis": f"a{mark}b"}, ensure_ascii=False)
    answers.write_bytes(line.encode() + b"\r\n")
    assert read_hypotheses(answers).rows["q"].hypothesis == f"a{mark}b"


def test_lone_surrogate_is_stored_as_a_replacement_character(tmp_path: Path) -> None:
    with answers_at(tmp_path / "rows.jsonl") as store:
        store.append(answer("\ud800"))
    with answers_at(tmp_path / "rows.jsonl") as store:
        assert store.rows["q"] == answer("\ufffd")
    assert as_json({"text": "\ud800ü"}).encode()


class FullDisk(RowStore[AnswerRow | IngestRow]):
    """A file of rows on a disk that is full."""

    def _write(self, row: Mapping[str, Any]) -> str:
        raise StorageError("the disk is full")


def test_file_whose_header_cannot_be_written_is_closed_and_unlocked(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    full = FullDisk(path, HEADER, answer_or_ingest)
    with pytest.raises(StorageError, match="the disk is full"):
        full.__enter__()

    # It would be refused as busy if the lock were still held.
    with answers_at(path):
        pass


def test_lock_that_cannot_be_released_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a network file system whose lock service has failed."""
    release = FileLock.release

    def refuse(lock: FileLock, force: bool = False) -> None:
        release(lock, force)
        # A lock that is garbage-collected is released by force.
        if not force:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(FileLock, "release", refuse)
    with (
        pytest.raises(StorageError, match=r"answers\.jsonl can't be closed: No locks"),
        answers_at(tmp_path / "answers.jsonl") as store,
    ):
        store.append(answer("an answer"))


def test_verdict_applies_only_to_the_answer_it_judged() -> None:
    verdict = VerdictRow(id="q", status=Status.OK, judged=answer_digest("7 May"))
    assert is_about(verdict, answer("7 May")) and not is_about(verdict, answer("8 May"))
    assert not is_about(VerdictRow(id="q", status=Status.OK), answer("x"))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        "{}",
        '{"categories": 5}',
        "[" * 100_000,
        '{"run_key": ["x"]}',
        "\x00",
        "\ufeff{}",
        '{"digest": "x"}',
    ],
)
def test_damaged_summary_always_raises_value_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError):
        RunSummary.read(tmp_path)


def test_seal_survives_json_and_detects_changes() -> None:
    content = {"a": [1, 2.5, None, "ü\ud800"], "b": {"c": True}}
    assert unsealed(json.loads(json.dumps(sealed(content)))) == content
    for other in ({**sealed(content), "a": []}, {"a": 1}, [], None):
        with pytest.raises(ValueError, match=r"it was edited|not a JSON object"):
            unsealed(other)


def test_created_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "theirs").mkdir(mode=0o755)
        make_folder(tmp_path / "theirs" / "ours" / "deep")
        write_atomically(tmp_path / "theirs" / "ours" / "run.json", "{}")
        with answers_at(tmp_path / "theirs" / "ours" / "rows" / "a.jsonl"):
            pass
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "theirs").rglob("*")}
    assert {
        mode
        for name, mode in modes.items()
        if (tmp_path / "theirs" / "ours" / name).is_dir() or name == "ours"
    } == {0o700}
    assert modes["run.json"] == modes["a.jsonl"] == modes["a.jsonl.lock"] == 0o600
    assert (tmp_path / "theirs").stat().st_mode & 0o777 == 0o755


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """Nor is /dev/null: `table -o /dev/null`, run as root, replaced it with a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, "a table")
        assert pipe.is_fifo() and os.read(reader, 100) == b"a table"
    finally:
        os.close(reader)


def test_failed_write_keeps_the_old_file_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / (255 * "a")  # the longest name
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert list(tmp_path.iterdir()) == [path] and path.read_text() == "old"


def test_a_file_of_rankings_is_read_without_a_copy_of_it(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    ranking = list(range(1_000_000, 1_004_000))
    lines = [sealed_line(HEADER, {**ANSWER, "id": f"q{i}", "ranking": ranking}) for i in range(100)]
    file.write_bytes(b"".join([sealed_line(HEADER, {"header": HEADER}), *lines]))
    del lines

    tracemalloc.start()
    try:
        rows = read_row_file(file, HEADER, answer_or_ingest)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(rows.rows) == 100
    assert peak < file.stat().st_size


def test_the_reason_for_half_a_line_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.jsonl"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    write, lines = os.write, [b"a line\n", b"another\n"]
    append_whole(descriptor, lines[0], file)

    def write_to_limit(number: int, line: bytes) -> int:
        if line != lines[1]:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

        return write(number, line[:4])

    monkeypatch.setattr(os, "write", write_to_limit)
    with pytest.raises(StorageError, match="File too large"):
        append_whole(descriptor, lines[1], file)

    os.close(descriptor)
    assert file.read_bytes() == lines[0]


def test_a_file_can_be_written_piece_by_piece_from_its_old_content(tmp_path: Path) -> None:
    """Restores the records of a package, which may not fit in memory at once."""
    path = tmp_path / "records.jsonl"
    path.write_text("a\nb\n", encoding="utf-8")
    with path.open(encoding="utf-8") as lines:
        write_atomically(path, (f"{line.strip()}!\n" for line in lines))

    assert path.read_text(encoding="utf-8") == "a!\nb!\n"


def test_only_the_memories_of_a_key_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`verify` looks for the memories of each run, and a home may have a thousand."""
    folders = [tmp_path / "demo" / f"bm25-{key}" for key in ("own", "other")]
    for folder in folders:
        folder.mkdir(parents=True)

    asked: list[Path] = []
    is_dir = Path.is_dir

    def note(path: Path) -> bool:
        asked.append(path)
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", note)
    assert memory_folders(tmp_path, "own") == folders[:1]
    assert folders[1] not in asked
