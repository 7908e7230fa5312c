from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from locomo_samples import sample

from memeval.datasets.contract import DatasetInfo, FileInfo
from memeval.datasets.fetch import fetch, file_digest, verify
from memeval.datasets.registry import DEMO, LOCOMO
from memeval.errors import UserError, WorldError

BODY = bytes(range(256)) * 4000


class Server:
    """A file server on loopback whose faults are set by the test."""

    def __init__(self) -> None:
        self.body = BODY
        self.cut_after: int | None = None
        self.ignores_range = False
        self.shifts_range = False
        self.status: int | None = None
        self.ranges: list[str | None] = []

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        asked = handler.headers.get("Range")
        self.ranges.append(asked)
        if self.status is not None:
            handler.send_error(self.status)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and not self.ignores_range else 0
        if start and start >= len(self.body):
            handler.send_error(416)
            return
        part = self.body[start:]
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start + self.shifts_range}-{len(self.body) - 1}/{len(self.body)}")
        handler.send_header("Content-Length", str(len(part)))
        handler.end_headers()
        handler.wfile.write(part[: self.cut_after])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, str]]:
    faults = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            faults.respond(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield faults, f"http://127.0.0.1:{httpd.server_port}/file.bin"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def info_for(url: str, body: bytes = BODY) -> DatasetInfo:
    digest = sha256(body).hexdigest()
    return replace(LOCOMO, name="toy", file="toy/file.bin", url=url, sha256=digest, size_bytes=len(body), variants={})


def test_a_download_lands_under_its_name_and_reports_progress(server: tuple[Server, str], tmp_path: Path) -> None:
    _, url = server
    seen: list[tuple[int, int | None]] = []
    path = fetch(info_for(url), tmp_path, lambda done, total: seen.append((done, total)))
    assert path == tmp_path / "toy/file.bin"
    assert path.read_bytes() == BODY
    assert seen == sorted(seen)
    assert seen[-1] == (len(BODY), len(BODY))
    assert [entry.name for entry in path.parent.iterdir()] == ["file.bin"]


def test_what_is_there_and_right_is_not_fetched_again(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    fetch(info_for(url), tmp_path)
    fetch(info_for(url), tmp_path)
    assert len(faults.ranges) == 1


def test_another_file_in_the_way_is_left_alone(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    path = tmp_path / "toy/file.bin"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    with pytest.raises(UserError, match="is there already, and is not the registered file"):
        fetch(info_for(url), tmp_path)
    assert path.read_bytes() == b"mine"
    assert faults.ranges == []


def test_a_truncated_body_is_kept_apart_and_continued(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    faults.cut_after = 300_000
    with pytest.raises(WorldError, match="broke off at 300,000 of 1,024,000 bytes"):
        fetch(info_for(url), tmp_path)
    assert not (tmp_path / "toy/file.bin").exists()
    faults.cut_after = None
    assert fetch(info_for(url), tmp_path).read_bytes() == BODY
    assert faults.ranges == [None, "bytes=300000-"]


def test_a_server_that_ignores_range_sends_it_all_again(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    part = tmp_path / "toy/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(BODY[:1000])
    faults.ignores_range = True
    assert fetch(info_for(url), tmp_path).read_bytes() == BODY
    assert faults.ranges == ["bytes=1000-"]


def test_a_server_that_sends_another_range_is_refused(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    part = tmp_path / "toy/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(BODY[:1000])
    faults.shifts_range = True
    with pytest.raises(WorldError, match="another range than the one asked for"):
        fetch(info_for(url), tmp_path)
    assert part.read_bytes() == BODY[:1000]


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(BODY), b"x" * (len(BODY) + 1)])
def test_a_beginning_of_another_file_is_thrown_away(server: tuple[Server, str], tmp_path: Path, left: bytes) -> None:
    _, url = server
    part = tmp_path / "toy/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(left)
    assert fetch(info_for(url), tmp_path).read_bytes() == BODY


def test_a_whole_part_of_unknown_size_needs_no_more_bytes(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    part = tmp_path / "toy/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(BODY)
    assert fetch(replace(info_for(url), size_bytes=None), tmp_path).read_bytes() == BODY
    assert faults.ranges == [f"bytes={len(BODY)}-"]


def test_a_wrong_hash_keeps_nothing(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    faults.body = b"<html>log in first</html>"
    with pytest.raises(WorldError, match="gave another file: its sha256 is"):
        fetch(info_for(url), tmp_path)
    assert list((tmp_path / "toy").iterdir()) == []
    variant = replace(info_for(url), variants={sha256(faults.body).hexdigest(): "the log-in page"})
    with pytest.raises(WorldError, match="the log-in page"):
        fetch(variant, tmp_path)


def test_an_error_of_the_server_is_named(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    faults.status = 404
    with pytest.raises(WorldError, match="answers 404 Not Found"):
        fetch(info_for(url), tmp_path)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(WorldError, match=r"can't be reached: .*put there by hand: .*toy/file\.bin$"):
        fetch(info_for("http://127.0.0.1:9/file.bin"), tmp_path)


def test_a_folder_that_can_not_be_written(server: tuple[Server, str], tmp_path: Path) -> None:
    (tmp_path / "toy").write_text("a file where the folder should be")
    with pytest.raises(WorldError, match="data set 'toy' can't be written to"):
        fetch(info_for(server[1]), tmp_path)


def test_a_set_that_ships_is_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="data set 'demo' ships with memeval"):
        fetch(DEMO, tmp_path)


def test_verify_tells_what_differs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not on this machine"):
        verify(LOCOMO, tmp_path)
    path = tmp_path / LOCOMO.file
    path.parent.mkdir()
    path.write_text(json.dumps([sample()]), encoding="utf-8")
    found = verify(LOCOMO, tmp_path)
    assert not found.right
    assert found.sha256 == file_digest(path)
    assert "an unknown file" in found.problems[0]
    assert found.problems[1:] == ("1 cases, not 10", "3 sessions, not 272", "4 turns, not 5882", "6 questions, not 1986")


def test_the_files_of_a_folder_are_fetched_each_with_its_own_address_and_hash(server: tuple[Server, str], tmp_path: Path) -> None:
    _, address = server
    file = FileInfo("test/a b.json", f"{address}/a%20b.json", sha256(BODY).hexdigest(), len(BODY))
    info = replace(LOCOMO, name="folder", file="folder", url=None, sha256=None, files=(file, replace(file, name="c.json")))
    assert fetch(info, tmp_path) == tmp_path / "folder"
    assert [(tmp_path / "folder" / name).read_bytes() for name in ("test/a b.json", "c.json")] == [BODY, BODY]
    (tmp_path / "folder/c.json").write_bytes(b"other")
    with pytest.raises(UserError, match=r"c\.json is there already, and is not the registered file"):
        fetch(info, tmp_path)
    (tmp_path / "folder/c.json").unlink()
    with pytest.raises(WorldError, match="gave another file"):
        fetch(replace(info, files=(file, replace(file, name="c.json", sha256="0" * 64))), tmp_path)


def test_what_must_be_got_by_hand_says_how(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be fetched as it is") as caught:
        fetch(replace(LOCOMO, url=None, by_hand="ask the publisher"), tmp_path)
    assert caught.value.hints == ("ask the publisher",)
