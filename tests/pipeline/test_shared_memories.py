"""Memories that several homes share through fsspec."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from conftest_pipeline import Command, records, without_times
from fsspec import register_implementation  # type: ignore[import-untyped]
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped]

from memeval.errors import StorageError, UserError
from memeval.results.files import MANIFEST
from memeval.store.memories import SharedMemories

CELL = ("dataset=demo", "dataset.limit_cases=1", "dataset.limit_questions=3", "system=rag")


@pytest.mark.slow
def test_a_memory_is_built_once_for_two_homes(memeval: Command, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    words = (*CELL, f"store.memories=file://{shared}")
    one, other, alone = (tmp_path / name for name in ("one", "other", "alone"))
    assert "1 built" in memeval("prepare", *words, home=one).stdout
    assert "1 found" in memeval("prepare", *words, home=other).stdout

    memeval(*words, "tracking=none", home=other)
    memeval(*CELL, "tracking=none", home=alone)
    assert without_times(records(other)) == without_times(records(alone))
    assert "problems: 0" in memeval("store", "verify", home=other).stdout


def test_damaged_shared_memory_is_built_again_and_replaced(
    memeval: Command, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    words = (*CELL, f"store.memories=file://{shared}")
    memeval("prepare", *words, home=tmp_path / "one")
    sound = {path: path.read_bytes() for path in shared.rglob("*") if path.is_file()}
    victim = next(path for path in sound if path.name not in (MANIFEST, "meta.json"))
    victim.write_bytes(b"damaged")
    assert "1 built" in memeval("prepare", *words, home=tmp_path / "other").stdout
    assert "1 found" in memeval("prepare", *words, home=tmp_path / "third").stdout


def test_memory_that_was_not_uploaded_is_uploaded_when_it_is_used(
    memeval: Command, tmp_path: Path
) -> None:
    memeval("prepare", *CELL, home=tmp_path / "one")
    words = (*CELL, f"store.memories=file://{tmp_path}/shared")
    assert "1 found" in memeval("prepare", *words, home=tmp_path / "one").stdout
    assert "1 found" in memeval("prepare", *words, home=tmp_path / "other").stdout


def test_checkpoint_of_another_home_is_continued(memeval: Command, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    words = ("dataset=demo_lifecycle", "dataset.limit_cases=1", "system=bm25")
    words = (*words, f"store.memories=file://{shared}")
    memeval("prepare", *words, home=tmp_path / "one")
    manifests = {path: json.loads(path.read_text()) for path in shared.rglob(MANIFEST)}
    last, whole = next(
        (path, content)
        for path, content in manifests.items()
        if content["case_id"].endswith("@end")
    )
    shutil.rmtree(last.parent)

    asked = "dataset.question_ids=[lifecycle-1/q28]"  # at the end
    assert "1 built" in memeval("prepare", *words, asked, home=tmp_path / "other").stdout
    # Only what comes after the checkpoint before it is ingested.
    assert json.loads(last.read_text())["chunks"] == whole["chunks"]


def test_memory_is_fetched_from_an_object_store_as_it_was_put(tmp_path: Path) -> None:
    shared = SharedMemories("memory://memories-of-a-test", 0)
    folder = tmp_path / "one" / "case"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a").write_bytes(b"\0\1")
    (folder / MANIFEST).write_text(json.dumps({"files": {"deep/a": "digest"}}))
    fetched = tmp_path / "other" / "case"
    fetched.parent.mkdir()

    assert not asyncio.run(shared.fetch(fetched, "key"))
    asyncio.run(shared.put(folder, "key"))
    assert asyncio.run(shared.fetch(fetched, "key"))
    assert (fetched / "deep" / "a").read_bytes() == b"\0\1"
    assert [path.name for path in fetched.parent.iterdir()] == ["case"]


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside", "", "a\\b", 1])
def test_manifest_that_names_files_outside_is_ignored(tmp_path: Path, name: object) -> None:
    (tmp_path / "shared" / "key" / "case").mkdir(parents=True)
    (tmp_path / "shared" / "outside").write_text("secret")
    (tmp_path / "shared" / "key" / "case" / MANIFEST).write_text(json.dumps({"files": [name]}))
    shared = SharedMemories(f"file://{tmp_path}/shared", 0)
    assert not asyncio.run(shared.fetch(tmp_path / "home" / "case", "key"))
    assert not (tmp_path / "home").exists()


def test_the_manifest_is_uploaded_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reader that finds it finds all files."""
    sent: list[str] = []

    def note(self: object, local: str, target: str, **_: Any) -> None:
        sent.append(target.rpartition("/")[2])

    monkeypatch.setattr(MemoryFileSystem, "put_file", note)
    for name in ("a.json", MANIFEST, "z.json"):
        (tmp_path / name).write_text("{}")

    asyncio.run(SharedMemories("memory://uploaded-last", 0).put(tmp_path, "key"))

    assert sorted(sent) == ["a.json", MANIFEST, "z.json"] and sent[-1] == MANIFEST


def test_unreachable_store_is_named(tmp_path: Path) -> None:
    shared = SharedMemories(f"file://{tmp_path}/shared", 0)
    (tmp_path / "shared").rmdir()
    (tmp_path / "shared").write_text("in the way")
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / MANIFEST).write_text("{}")
    with pytest.raises(StorageError, match=r"store\.memories=file://.*was unreachable for 0 s"):
        asyncio.run(shared.put(folder, "key"))


class ReadOnlyFiles(MemoryFileSystem):
    """An object store whose key may only read."""

    protocol = ("readonly",)

    def put_file(self, *_: Any, **__: Any) -> None:
        raise PermissionError("Access Denied")


def test_refused_upload_is_not_tried_again(tmp_path: Path) -> None:
    register_implementation("readonly", ReadOnlyFiles, clobber=True)
    (tmp_path / MANIFEST).write_text("{}")
    shared = SharedMemories("readonly://memories", patience_s=60)
    with pytest.raises(StorageError, match=r"store\.memories=readonly.*refused: Access Denied"):
        asyncio.run(shared.put(tmp_path, "key"))


class BusyFiles(MemoryFileSystem):
    """An object store that is busy until the wait for it is reported."""

    protocol = ("busy",)
    reported = Event()

    def exists(self, *_: Any, **__: Any) -> bool:
        return self.reported.wait(timeout=9)


def test_wait_for_a_busy_store_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []

    def say(message: str) -> None:
        messages.append(message)
        BusyFiles.reported.set()

    monkeypatch.setattr("memeval.store.memories.QUIET_S", 0)
    register_implementation("busy", BusyFiles, clobber=True)
    SharedMemories("busy://memories", 0, say)
    assert messages == ["waiting for the memories at busy://memories"]


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize("url", ["nothing://here", "s3:/", "/a/folder", "s3://key:secret@host/a"])
def test_invalid_memories_url_is_reported_in_one_line(memeval: Command, url: str) -> None:
    done = memeval(*CELL, "tracking=none", f"store.memories={url}", check=False)
    assert done.returncode == 2 and "store.memories" in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr and "secret" not in done.stderr


def test_unwritable_memories_url_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="can't be used") as refused:
        SharedMemories(f"file://{tmp_path}/file/below", 0)

    assert "pip install 'memeval-bench[s3]'" in refused.value.line
