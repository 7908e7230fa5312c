"""The review over HTTP, and its page in a real browser, by keyboard only."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_page_in_browser import AXE, CHROMIUM, Seen, chromium

from memeval.cli.review_server import LARGEST_BODY, ReviewServer
from memeval.datasets.json.review import ReviewChange, ReviewFile

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["chromium"]
HOSTILE = (
    "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
    "\u202e{{7*7}}\ufeff\r\n\rend"
)
LONG_WORD = "w" * 300


def question(name: str, **changes: Any) -> dict[str, Any]:
    plain = {
        "id": name,
        "question": f"Which port is {name}?",
        "answer": ["7", "port 7"],
        "category": "update",
        "evidence": ["t30"],
        "status": "drafted",
        "stale": ["6"],
    }
    return plain | changes


def own_file(folder: Path) -> Path:
    turns = [
        {"id": f"t{number}", "role": "user", "content": f"Turn {number} of port 7. " * 5}
        for number in range(40)
    ]
    hostile = {
        "case_id": HOSTILE,
        "sessions": [{"turns": [{"id": HOSTILE, "role": HOSTILE, "content": HOSTILE}]}],
        "questions": [
            question(
                HOSTILE,
                question=HOSTILE,
                answer=[HOSTILE + LONG_WORD],
                evidence=[HOSTILE],
                stale=[HOSTILE],
                reviews=[{"reviewer": "Ana", "decision": "rejected", "reason": HOSTILE}],
            )
        ],
    }
    case = {"case_id": "c", "sessions": [{"time": "2026-05-01", "turns": turns}]}
    questions = [question("q0"), question("q1", category="temporal"), question("q2")]
    path = folder / "mine.json"
    path.write_text(json.dumps([{**case, "questions": questions}, hostile]), encoding="utf-8")
    return path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReviewServer]:
    with ReviewServer(ReviewFile(own_file(tmp_path), "Ana")) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def written(server: ReviewServer, number: int) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(server.review.path.read_text())[0]["questions"][number]
    return value


def ask(
    server: ReviewServer, what: str, body: Any = None, **headers: str | None
) -> tuple[int, Any, http.client.HTTPResponse]:
    """The server's reply to the page, or to a client whose headers differ from the page's."""
    sent = {"Host": f"127.0.0.1:{server.server_port}"}
    if body is not None:
        sent |= {"Origin": server.origin, "Content-Type": "application/json"}

    sent |= {name.replace("_", "-"): value for name, value in headers.items()}  # type: ignore[misc]
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(
        "GET" if body is None else "POST",
        what if what.startswith("/") else f"/{server.token}/{what}",
        body=None if body is None else content,
        headers={name: value for name, value in sent.items() if value is not None},
    )
    reply = connection.getresponse()
    read = reply.read()
    connection.close()
    is_json = reply.headers.get_content_type() == "application/json"
    return reply.status, json.loads(read) if is_json else read.decode(), reply


def test_review_over_http_saves_undoes_and_refuses_changes(server: ReviewServer) -> None:
    status, page, reply = ask(server, "")
    policy = reply.headers["Content-Security-Policy"]
    assert status == 200 and "mine.json" in page and "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src 'self'; frame-ancestors 'none'" in policy

    _, questions, _ = ask(server, "questions")
    assert [one["state"] for one in questions] == ["open", "open", "open", "rejected"]
    _, sessions, _ = ask(server, "case/0")
    assert len(sessions[0]["turns"]) == 40 and sessions[0]["time"] == "2026-05-01 00:00:00"

    first = questions[0]
    change = {"decision": "rejected", "reason": "vague", "seconds": 2.5}
    request = {"name": first["name"], "version": first["version"], "change": change}
    status, saved, _ = ask(server, "save", request)
    assert (status, saved["state"], saved["reason"]) == (200, "rejected", "vague")
    assert written(server, 0)["status"] == "rejected"

    # Another tab still shows the question as it was.
    status, refused, _ = ask(server, "save", {**request, "change": {"question": "Other?"}})
    assert status == 409 and refused["question"] == saved
    assert "changed elsewhere" in refused["error"]
    status, undone, _ = ask(server, "undo", {})
    assert (status, undone["question"]) == (200, first)
    assert ask(server, "undo", {})[1] == {"question": None}

    before = server.review.path.read_bytes()
    for body, message in (
        ({**request, "change": {"answers": [" "]}}, "field 'answer' is empty"),
        ({**request, "change": {"decision": "maybe"}}, "Invalid enum value"),
        ({**request, "change": {"decison": "accepted"}}, "unknown field `decison`"),
        ({**request, "change": {"seconds": -1}}, ">= 0.0"),
        ({**request, "name": "c/q9"}, "is no longer in"),
        (b'{"name": "\\ud800"', "Not saved"),
        (b"\xff", "Not saved"),
    ):
        status, refused, _ = ask(server, "save", body)
        assert status == 422 and message in refused["error"], refused

    assert server.review.path.read_bytes() == before


def test_requests_from_elsewhere_are_refused(server: ReviewServer) -> None:
    port = server.server_port
    for what in ("/", "/questions", f"/{server.token}", "/wrong/", f"/{server.token}x/"):
        status, content, _ = ask(server, what)
        assert status == 404 and server.token not in json.dumps(content)

    for headers in ({"Host": f"evil.example:{port}"}, {"Sec_Fetch_Site": "cross-site"}):
        assert ask(server, "questions", **headers)[0] == 404

    for other in (None, "null", "http://evil.example", f"http://127.0.0.1:{port + 1}"):
        assert ask(server, "undo", {}, Origin=other)[0] == 403

    assert ask(server, "undo", {}, Content_Type="text/plain")[0] == 403
    assert ask(server, "undo", {}, Content_Length=str(LARGEST_BODY + 1))[0] == 413
    assert ask(server, "undo", {}, Content_Length="x")[0] == 411
    for what in ("case/9", "case/-1", "case/x", "other", "../etc"):
        assert ask(server, what)[0] in (404, 422)


@pytest.mark.slow
def test_the_command_serves_until_ctrl_c(tmp_path: Path) -> None:
    path = own_file(tmp_path)
    command = [sys.executable, "-m", "memeval", "data", "review", str(path), "--reviewer", "Ana"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[1]
        with urllib.request.urlopen(address, timeout=30) as reply:
            assert b"Review of mine.json by Ana" in reply.read()

        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert process.wait(30) == 0

    assert said.endswith("mine.json: Ana has decided 1 of 4 questions\n")


def found_by_axe(page: Page) -> list[Any]:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return [
        (violation["id"], [node["html"] for node in violation["nodes"]][:3])
        for violation in page.evaluate("axe.run().then((result) => result.violations)")
    ]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"no Chromium at {CHROMIUM}")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("width", [1280, 380])
def test_a_review_by_keyboard_alone(chromium: Browser, server: ReviewServer, width: int) -> None:
    seen = Seen(chromium, viewport={"width": width, "height": 800})
    page, keyboard = seen.page, seen.page.keyboard

    def shows(name: str) -> None:
        page.locator("#facts span").first.get_by_text(name, exact=True).wait_for()

    page.goto(server.address)
    shows("c/q0")
    assert page.locator("#progress").inner_text() == (
        "1 of 4 decided · 0 accepted · 1 rejected · 3 left"
    )
    evidence = page.locator("#conversation input:checked")
    evidence.wait_for()
    box, pane = evidence.bounding_box(), page.locator("#conversation").bounding_box()
    assert box and pane and pane["y"] <= box["y"] < pane["y"] + pane["height"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert found_by_axe(page) == []

    # An edit is saved when its field is left; then the key of a decision works.
    keyboard.press("e")
    keyboard.press("End")
    keyboard.type(" aruj?")
    keyboard.press("Escape")
    keyboard.press("a")
    shows("c/q1")
    assert written(server, 0)["question"] == "Which port is q0? aruj?"
    assert written(server, 0)["status"] == "accepted"

    assert not page.locator("#reason").is_visible()
    keyboard.press("r")
    assert found_by_axe(page) == []
    keyboard.type("two answers")
    keyboard.press("Enter")
    shows("c/q2")
    assert written(server, 1)["reviews"][0]["reason"] == "two answers"
    assert "2 left" not in page.locator("#progress").inner_text()

    keyboard.press("u")
    shows("c/q1")
    assert written(server, 1)["status"] == "drafted"
    keyboard.press("j")
    shows("c/q2")

    # The evidence: Tab reaches its turn, arrows reach the others, Space changes them.
    page.locator("#scroll").focus()
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    keyboard.press("Space")
    page.locator("#evidence").get_by_text("Evidence: 2 turns").wait_for()
    keyboard.press("k")
    shows("c/q1")
    assert written(server, 2)["evidence"] == ["t30", "t31"]

    # A change by another tab is shown, and the text typed here is kept.
    ben = ReviewFile(server.review.path, "Ben")
    version = next(one.version for one in ben.questions() if one.name == "c/q1")
    ben.save("c/q1", version, ReviewChange(question="Edited by Ben?"))
    keyboard.press("e")
    keyboard.type(" Mine")
    keyboard.press("Escape")
    page.locator("#notice").get_by_text("changed elsewhere").wait_for()
    assert page.locator("#text").input_value() == "Edited by Ben?"
    assert "Mine" in page.locator("#refused").inner_text()
    page.get_by_role("button", name="Use yours").press("Enter")
    page.locator("#list .text", has_text="Mine").wait_for()
    assert "Mine" in written(server, 1)["question"]

    # Texts of the file are shown as text.
    for _ in range(2):
        keyboard.press("j")

    page.locator("#conversation .text", has_text="window.hit").wait_for()
    assert page.locator("#text").input_value().startswith("</script>")
    assert "\\u202e" in page.locator("#conversation .text").inner_text()
    assert page.evaluate("window.hit") is None and page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == width
    before = server.review.path.read_bytes()
    keyboard.press("k")
    shows("c/q2")
    assert server.review.path.read_bytes() == before
    assert all(address.startswith(server.origin) for address in seen.requests)
    assert [text for text in seen.complaints if "409" not in text] == []
    page.close()
