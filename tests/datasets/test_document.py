"""A user's own file keeps its layout, mode and meaning when it is changed in place."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

from memeval.datasets.json.document import OwnDocument, lock_file
from memeval.errors import UserError

CASE: dict[str, Any] = {
    "case_id": "c",
    "sessions": [{"turns": [{"speaker": "Ida", "text": "Hafen 7\u2028 עבר\n"}]}],
    "questions": [{"question": "Which?", "answer": 7}],
}
OTHER = {**CASE, "case_id": "d", "meta": {"half": "\ud800"}}


@pytest.mark.parametrize(
    "content",
    [
        {"name": "ports", "meta": [1], "cases": [CASE, OTHER]},
        [CASE, OTHER],
        CASE,
        {"cases": [CASE]},
    ],
)
def test_json_keeps_its_layout_and_mode(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    path.chmod(0o640)
    document = OwnDocument.read(path)
    document.write()
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == content
    escaped = text.encode("ascii", "backslashreplace").decode()
    assert escaped == json.dumps(content, indent=1) + "\n"
    assert path.stat().st_mode & 0o777 == 0o640

    document.replace(0, {**CASE, "meta": "new"})
    document.write()
    assert OwnDocument.read(path).cases[0]["meta"] == "new"
    assert OwnDocument.read(path).stamp == document.stamp


def test_json_lines_keep_their_header(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    rows = [{"name": "ports"}, CASE, {**CASE, "case_id": "d"}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    OwnDocument.read(path).write()
    text = path.read_text(encoding="utf-8")
    assert list(map(json.loads, text.split("\n")[:-1])) == rows


def test_lock_can_be_taken_again_after_a_write(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps(CASE), encoding="utf-8")
    with lock_file(path):
        OwnDocument.read(path).write()

    with lock_file(path):
        pass

    with pytest.raises(UserError, match="can't be read"), lock_file(tmp_path / "missing"):
        pass


def test_file_on_nfs_can_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lock_by_nfs(descriptor: int, operation: int) -> None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", lock_by_nfs)
    path = tmp_path / "own.json"
    path.write_text(json.dumps(CASE), encoding="utf-8")
    with lock_file(path):
        OwnDocument.read(path).write()


def test_file_system_without_locks_is_a_mistake_and_not_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "own.json"
    path.write_text(json.dumps(CASE), encoding="utf-8")
    with pytest.raises(UserError, match=r"own.json can't be read: No locks"), lock_file(path):
        pass
