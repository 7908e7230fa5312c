from __future__ import annotations

import errno
import fcntl
import io
import json
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha1, sha256
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request

import pytest
from locomo_samples import sample

from memeval.cli.data import data
from memeval.datasets.contract import DatasetInfo, FileInfo
from memeval.datasets.fetch import fetch, verify
from memeval.datasets.locate import build, check_pin, git_blob, is_registered
from memeval.datasets.registry import DATASETS
from memeval.datasets.transfer import FetchLimits, SafeRedirects, unreachable
from memeval.errors import UserError, WorldError
from memeval.results.files import file_digest

BEAM = DATASETS["beam"]
DEMO = DATASETS["demo"]
LOCOMO = DATASETS["locomo"]

BODY = bytes(range(256)) * 4000


class Server:
    """A file server on loopback with faults that the test sets."""

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
        start = (
            int(asked.removeprefix("bytes=").removesuffix("-"))
            if asked and not self.ignores_range
            else 0
        )
        if start and start >= len(self.body):
            handler.send_error(416)
            return
        part = self.body[start:]
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header(
                "Content-Range",
                f"bytes {start + self.shifts_range}-{len(self.body) - 1}/{len(self.body)}",
            )
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


def interrupted(data: Path) -> Path:
    """The file of an interrupted download, with its first 1,000 bytes."""
    part = data / "toy/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(BODY[:1000])
    return part


def info_for(url: str, body: bytes = BODY) -> DatasetInfo:
    digest = sha256(body).hexdigest()
    return replace(
        LOCOMO,
        name="toy",
        file="toy/file.bin",
        url=url,
        sha256=digest,
        size_bytes=len(body),
        variants={},
    )


def test_a_download_lands_under_its_name_and_reports_progress(
    server: tuple[Server, str], tmp_path: Path
) -> None:
    _, url = server
    seen: list[tuple[int, int | None]] = []
    path = fetch(info_for(url), tmp_path, lambda done, total: seen.append((done, total)))
    assert path == tmp_path / "toy/file.bin"
    assert path.read_bytes() == BODY
    assert seen == sorted(seen)
    assert seen[-1] == (len(BODY), len(BODY))
    assert [entry.name for entry in path.parent.iterdir()] == ["file.bin"]


def test_valid_file_is_not_fetched_again(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    fetch(info_for(url), tmp_path)
    fetch(info_for(url), tmp_path)
    assert len(faults.ranges) == 1


def test_other_file_at_the_target_is_kept(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    path = tmp_path / "toy/file.bin"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    with pytest.raises(UserError, match="already exists, and is not the registered file"):
        fetch(info_for(url), tmp_path)
    assert path.read_bytes() == b"mine"
    assert faults.ranges == []


def test_a_truncated_body_is_kept_apart_and_continued(
    server: tuple[Server, str], tmp_path: Path
) -> None:
    faults, url = server
    faults.cut_after = 300_000
    with pytest.raises(WorldError, match="stopped at 300,000 of 1,024,000 bytes"):
        fetch(info_for(url), tmp_path)
    assert not (tmp_path / "toy/file.bin").exists()
    faults.cut_after = None
    assert fetch(info_for(url), tmp_path).read_bytes() == BODY
    assert faults.ranges == [None, "bytes=300000-"]


def test_server_that_ignores_range_restarts_the_download(
    server: tuple[Server, str], tmp_path: Path
) -> None:
    faults, url = server
    interrupted(tmp_path)
    faults.ignores_range = True
    assert fetch(info_for(url), tmp_path).read_bytes() == BODY
    assert faults.ranges == ["bytes=1000-"]


def test_wrong_range_from_the_server_is_refused(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    part = interrupted(tmp_path)
    faults.shifts_range = True
    with pytest.raises(WorldError, match="a different range than requested"):
        fetch(info_for(url), tmp_path)
    assert part.read_bytes() == BODY[:1000]


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(BODY), b"x" * (len(BODY) + 1)])
def test_part_of_another_file_is_discarded(
    server: tuple[Server, str], tmp_path: Path, left: bytes
) -> None:
    _, url = server
    part = tmp_path / "toy/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(left)
    assert fetch(info_for(url), tmp_path).read_bytes() == BODY


def test_complete_part_of_unknown_size_is_accepted(
    server: tuple[Server, str], tmp_path: Path
) -> None:
    faults, url = server
    part = tmp_path / "toy/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(BODY)
    assert fetch(replace(info_for(url), size_bytes=None), tmp_path).read_bytes() == BODY
    assert faults.ranges == [f"bytes={len(BODY)}-"]


def test_download_with_a_wrong_hash_is_deleted(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    faults.body = b"<html>log in first</html>"
    with pytest.raises(WorldError, match="returned a different file: its sha256 is"):
        fetch(info_for(url), tmp_path)
    assert list((tmp_path / "toy").iterdir()) == []
    variant = replace(info_for(url), variants={sha256(faults.body).hexdigest(): "the log-in page"})
    with pytest.raises(WorldError, match="the log-in page"):
        fetch(variant, tmp_path)


def test_an_error_of_the_server_is_named(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    faults.status = 404
    with pytest.raises(WorldError, match="returned 404 Not Found"):
        fetch(info_for(url), tmp_path)


def test_unreachable_server_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(
        WorldError, match=r"can't be reached: .*download the file by hand, to .*toy/file\.bin$"
    ):
        fetch(info_for("http://127.0.0.1:9/file.bin"), tmp_path)


def test_unwritable_folder_is_reported(server: tuple[Server, str], tmp_path: Path) -> None:
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
    assert found.problems[1:] == (
        "1 cases, not 10",
        "3 sessions, not 272",
        "4 turns, not 5882",
        "6 questions, not 1986",
    )


def test_each_file_of_a_folder_has_its_own_url_and_hash(
    server: tuple[Server, str], tmp_path: Path
) -> None:
    _, address = server
    file = FileInfo(
        name="test/a b.json",
        url=f"{address}/a%20b.json",
        sha256=sha256(BODY).hexdigest(),
        size_bytes=len(BODY),
    )
    info = replace(
        LOCOMO,
        name="folder",
        file="folder",
        url=None,
        sha256=None,
        files=(file, replace(file, name="c.json")),
    )
    assert fetch(info, tmp_path) == tmp_path / "folder"
    assert [(tmp_path / "folder" / name).read_bytes() for name in ("test/a b.json", "c.json")] == [
        BODY,
        BODY,
    ]
    (tmp_path / "folder/c.json").write_bytes(b"other")
    with pytest.raises(UserError, match=r"c\.json already exists, and is not the registered file"):
        fetch(info, tmp_path)
    other = sha256(b"other").hexdigest()
    problem = f"c.json: sha256 is {other}, not {file.sha256}"
    assert verify(info, tmp_path).problems == (problem,)
    (tmp_path / "folder/c.json").unlink()
    with pytest.raises(WorldError, match="returned a different file"):
        fetch(replace(info, files=(file, replace(file, name="c.json", sha256="0" * 64))), tmp_path)


def blob_of(body: bytes) -> str:
    return sha1(b"blob %d\0" % len(body) + body).hexdigest()


def blob_files(url: str) -> DatasetInfo:
    """A folder of two files that are pinned only by git blobs."""
    blob = blob_of(BODY)
    files = [FileInfo(name, url, sha256=None, size_bytes=None, git_blob=blob) for name in "ab"]
    return replace(LOCOMO, name="toy", file="toy", url=None, sha256=None, files=tuple(files))


def test_git_blob_pins_a_file_without_a_known_sha256(
    server: tuple[Server, str], tmp_path: Path
) -> None:
    faults, url = server
    info = blob_files(url)
    folder = fetch(info, tmp_path, files=info.files[:1])
    assert [path.name for path in folder.iterdir()] == ["a"]
    assert git_blob(folder / "a") == blob_of(BODY) and is_registered(info.files[0], folder / "a")

    fetch(info, tmp_path)
    assert (folder / "b").read_bytes() == BODY and len(faults.ranges) == 2
    assert verify(info, tmp_path).right

    (folder / "a").write_bytes(b"other")
    (folder / "b").unlink()
    assert verify(info, tmp_path).problems == (
        f"a: git blob is {blob_of(b'other')}, not {blob_of(BODY)}",
        "b is missing",
    )


def test_settings_select_which_files_are_fetched(
    server: tuple[Server, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, url = server
    places = ("100K/1/chat.json", "500K/1/chat.json", "500K/1/chat_trunecated.json")
    pin = FileInfo("", url, sha256=None, size_bytes=None, git_blob=blob_of(BODY))
    files = tuple(replace(pin, name=f"chats/{place}") for place in places)
    monkeypatch.setitem(DATASETS, "beam", replace(BEAM, files=files))  # type: ignore[arg-type]
    monkeypatch.setenv("MEMEVAL_DATA_DIR", str(tmp_path))

    assert data(["fetch", "beam", "dataset.tier=500k", "dataset.corpus=full"]) == 0
    fetched = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.json")]
    assert fetched == [Path("beam/chats/500K/1/chat.json")]
    assert "CC BY-SA 4.0" in capsys.readouterr().out

    with pytest.raises(UserError, match=r"has no parts to select with dataset\.split=dev"):
        data(["fetch", "locomo", "dataset.split=dev"])


def test_file_with_a_wrong_git_blob_is_deleted(server: tuple[Server, str], tmp_path: Path) -> None:
    faults, url = server
    faults.body = BODY[:-1]
    with pytest.raises(WorldError, match=f"its git blob is {blob_of(BODY[:-1])}, not"):
        fetch(blob_files(url), tmp_path)

    assert not list((tmp_path / "toy").iterdir())


def test_a_broken_download_under_a_git_blob_is_continued(
    server: tuple[Server, str], tmp_path: Path
) -> None:
    faults, url = server
    faults.cut_after = 1000
    with pytest.raises(WorldError):
        fetch(blob_files(url), tmp_path)

    faults.cut_after = None
    assert (fetch(blob_files(url), tmp_path) / "a").read_bytes() == BODY
    assert faults.ranges[1] == "bytes=1000-"


def test_manual_download_says_how(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be fetched directly") as caught:
        fetch(replace(LOCOMO, url=None, by_hand="ask the publisher"), tmp_path)
    assert caught.value.hints == ("ask the publisher",)


class Odd:
    """A misbehaving server: `answer` handles each request."""

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler], None]) -> None:
        self.seen: list[dict[str, str]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:
                self.seen.append(dict(handler.headers.items()))
                answer(handler)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_port}/file.bin"
        threading.Thread(
            target=self.httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def close(self) -> None:
        self.httpd.shutdown()
        self.httpd.server_close()


@pytest.fixture
def odd(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Callable[[BaseHTTPRequestHandler], None]], Odd]]:
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    servers: list[Odd] = []

    def serve(answer: Callable[[BaseHTTPRequestHandler], None]) -> Odd:
        servers.append(Odd(answer))
        return servers[-1]

    yield serve
    for server in servers:
        server.close()


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(BODY)
    except OSError:
        return


def redirecting(target: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", target)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


@pytest.mark.parametrize("limits", [FetchLimits(), FetchLimits(max_bytes=5000)])
def test_an_endless_body_stops_at_the_limit(odd: Any, tmp_path: Path, limits: FetchLimits) -> None:
    most: list[int] = []
    with pytest.raises(WorldError, match="sends too much: it goes on"):
        fetch(info_for(odd(endless).url), tmp_path, lambda done, _: most.append(done), limits)
    assert max(most, default=0) <= limits.most(info_for(""))
    assert list((tmp_path / "toy").iterdir()) == []


def test_body_announced_as_too_large_is_not_read(
    server: tuple[Server, str], tmp_path: Path
) -> None:
    faults, url = server
    faults.body = BODY + b"x" * 20_000
    with pytest.raises(
        WorldError, match=r"announces 1,044,000 bytes, but only 1,034,240 bytes are allowed"
    ):
        fetch(info_for(url), tmp_path)
    assert list((tmp_path / "toy").iterdir()) == []


def test_wait_for_another_download_is_told(
    server: tuple[Server, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def end_other(_: logging.LogRecord) -> bool:
        os.close(other)
        return True

    part = interrupted(tmp_path)
    other = os.open(part, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with caplog.filtering(end_other):
        fetch(info_for(server[1]), tmp_path)

    assert caplog.messages == ["waiting for another download of file.bin"]


def test_part_that_can_only_be_read_is_replaced(
    server: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = interrupted(tmp_path)
    really_open = os.open

    def open_as_other_user(path: Path, flags: int, *mode: int) -> int:
        if path == part and flags & os.O_RDWR and part.exists():
            raise PermissionError(errno.EACCES, "Permission denied")

        return really_open(path, flags, *mode)

    monkeypatch.setattr(os, "open", open_as_other_user)
    assert fetch(info_for(server[1]), tmp_path).read_bytes() == BODY
    assert server[0].ranges == [None]


def test_mount_that_shows_files_as_another_users_is_no_obstacle(
    server: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(tmp_path)
    # As exFAT and SMB do, which know no owners.
    others = iter([os.geteuid() + 1] * 20)
    monkeypatch.setattr(os, "geteuid", lambda: next(others))
    assert fetch(info_for(server[1]), tmp_path).read_bytes() == BODY
    assert server[0].ranges == [None], "what another user may have written is not continued"


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_links_in_the_target_are_not_followed(
    server: tuple[Server, str], tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    (tmp_path / "toy").mkdir()
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    link(tmp_path / "toy/file.bin.part", victim)
    assert fetch(info_for(server[1]), tmp_path).read_bytes() == BODY
    assert victim.read_bytes() == b"mine" and not (tmp_path / "toy/file.bin").is_symlink()


def test_concurrent_fetches_do_not_interfere(server: tuple[Server, str], tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        paths = [
            future.result()
            for future in [pool.submit(fetch, info_for(server[1]), tmp_path) for _ in range(4)]
        ]
    assert {path.read_bytes() for path in paths} == {BODY}
    assert [path.name for path in (tmp_path / "toy").iterdir()] == ["file.bin"]


def test_file_finished_by_another_fetch_is_accepted(
    server: tuple[Server, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = Path.exists

    def exists_soon_after(path: Path) -> bool:
        answer = exists(path)
        if path.name == "file.bin" and not answer:
            path.parent.mkdir()
            path.write_bytes(BODY)

        return answer

    monkeypatch.setattr(Path, "exists", exists_soon_after)
    assert fetch(info_for(server[1]), tmp_path).read_bytes() == BODY


def test_redirect_to_another_host_sends_only_harmless_headers(
    server: tuple[Server, str], odd: Any, tmp_path: Path
) -> None:
    first = odd(redirecting(server[1].replace("127.0.0.1", "localhost")))
    assert fetch(info_for(first.url), tmp_path).read_bytes() == BODY
    request = Request(
        first.url, headers={"Authorization": "Bearer x", "Cookie": "y", "User-Agent": "memeval"}
    )
    moved = SafeRedirects().redirect_request(
        request, io.BytesIO(), 302, "", HTTPMessage(), "http://other.test/"
    )
    assert moved is not None and set(moved.headers) == {"User-agent"}


@pytest.mark.parametrize("target", ["http://[bad/x", f"http://{'a' * 64}.test/x"])
def test_redirect_to_something_that_is_not_a_url_is_one_line(
    odd: Any, tmp_path: Path, target: str
) -> None:
    with pytest.raises(WorldError, match="can't be reached"):
        fetch(info_for(odd(redirecting(target)).url), tmp_path)


def test_login_page_does_not_replace_what_has_arrived(odd: Any, tmp_path: Path) -> None:
    def log_in(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html; charset=utf-8")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    part = interrupted(tmp_path)
    with pytest.raises(WorldError, match=r"returned a web page .*file\.bin\.part"):
        fetch(info_for(odd(log_in).url), tmp_path)

    assert part.read_bytes() == BODY[:1000]


@pytest.mark.parametrize("target", ["https://me@other.test/x", "https://:pw@other.test/x"])
def test_a_redirect_that_brings_a_login_is_not_followed(target: str) -> None:
    with pytest.raises(WorldError, match="redirects to a URL with a user name"):
        SafeRedirects().redirect_request(
            Request("https://h.test/"), io.BytesIO(), 302, "", HTTPMessage(), target
        )


@pytest.mark.parametrize(
    "target", ["http://other.test/x", "ftp://other.test/x", "file:///etc/passwd"]
)
def test_https_is_not_redirected_to_other_schemes(target: str) -> None:
    with pytest.raises(WorldError, match=r"redirects from https to .*: memeval does not follow it"):
        SafeRedirects().redirect_request(
            Request("https://h.test/"), io.BytesIO(), 302, "", HTTPMessage(), target
        )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (URLError(ssl.SSLCertVerificationError(1, "self-signed")), "self-signed"),
        (URLError(ssl.SSLError(1, "wrong version number")), "wrong version number"),
        (URLError(ConnectionRefusedError(111, "refused")), "refused"),
        (URLError(socket.gaierror(-2, "unknown host")), "unknown host"),
        (TimeoutError(), "TimeoutError"),
        (URLError(ConnectionResetError(104, "reset by peer")), "reset by peer"),
        (URLError("no host given"), "no host given"),
    ],
)
def test_each_network_error_has_its_message(error: Exception, expected: str) -> None:
    message = unreachable("https://h.test/file", error)
    assert message.startswith("https://h.test/file can't be reached: ") and expected in message


def test_without_a_registered_hash_a_given_hash_is_needed(
    server: tuple[Server, str], tmp_path: Path
) -> None:
    info = replace(info_for(server[1]), sha256=None)
    with pytest.raises(UserError, match="no sha256 is registered"):
        fetch(info, tmp_path)
    with pytest.raises(WorldError, match="returned a different file"):
        fetch(info, tmp_path, limits=FetchLimits(sha256="0" * 64))
    assert (
        fetch(info, tmp_path, limits=FetchLimits(sha256=sha256(BODY).hexdigest())).read_bytes()
        == BODY
    )
    assert not check_pin(
        info, tmp_path / "toy/file.bin", sha256(BODY).hexdigest(), allow_unpinned=True
    )


def test_another_file_under_a_shipped_name_is_unpinned(tmp_path: Path) -> None:
    assert build("demo", tmp_path).open().pinned
    other = tmp_path / "other.json"
    other.write_text(json.dumps([sample()]), encoding="utf-8")
    assert not build("demo", tmp_path, path=str(other)).open().pinned
