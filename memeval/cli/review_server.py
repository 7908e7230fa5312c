"""Serves the page of a review on loopback, for one reviewer, until Ctrl-C."""

import hmac
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from memeval.datasets.json.review import ReviewChange, ReviewFile, StaleError
from memeval.errors import UserError
from memeval.records import EvalCase
from memeval.report.page.write import review_page
from memeval.text.shown import one_line
from memeval.text.typed import decoder

HOST = "127.0.0.1"
LARGEST_BODY = 1 << 20
"""Maximum size of a request's body in bytes."""
IDLE_S = 30.0
"""Maximum silence of a connection."""
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class SaveRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A change of a question, and the version of the question that the page showed."""

    name: str
    version: str
    change: ReviewChange


class ReviewServer(ThreadingHTTPServer):
    """Answers only requests from its own page to its URL, which contains a secret."""

    daemon_threads = True

    def __init__(self, review: ReviewFile) -> None:
        super().__init__((HOST, 0), _Handler)
        self.review = review
        # Hexadecimal digits don't look like a key, which would be redacted on the terminal.
        self.token = secrets.token_hex(32)
        self.lock = threading.Lock()
        """Held while a request uses the review."""
        self.page, self.policy = review_page(review.path, review.reviewer)

    @property
    def origin(self) -> str:
        return f"http://{HOST}:{self.server_port}"

    @property
    def address(self) -> str:
        return f"{self.origin}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a page that was closed in the meantime, which is not an error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def content(self, resource: str) -> Any:
        """Content requested by the page. Raises `UserError`; `KeyError` for an unknown request."""
        if resource == "questions":
            return self.review.questions()

        kind, _, number = resource.partition("/")
        if kind != "case" or not (number.isascii() and number.isdigit() and len(number) < 10):
            raise KeyError(resource)

        return sessions_shown(self.review.case(int(number)))

    def change(self, resource: str, body: bytes) -> Any:
        """Saves or undoes. Raises as `content`, and `msgspec.MsgspecError` for an invalid body."""
        if resource == "save":
            asked = decoder(SaveRequest).decode(body)
            return self.review.save(asked.name, asked.version, asked.change)
        if resource == "undo":
            return {"question": self.review.undo()}

        raise KeyError(resource)


def sessions_shown(case: EvalCase) -> list[dict[str, Any]]:
    """A conversation as the page shows it."""
    shown = []
    for session in case.sessions:
        turns = []
        for turn in session.turns:
            time = _time_shown(turn.time)
            turns.append({"speaker": turn.speaker, "time": time, "text": turn.text})

        shown.append({"time": _time_shown(session.started_at), "turns": turns})

    return shown


def _time_shown(time: datetime | None) -> str:
    return "" if time is None else time.isoformat(" ")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server: ReviewServer

    def do_GET(self) -> None:
        resource = self._path()
        if resource is None:
            return

        if resource == "":
            page = self.server.page.encode("utf-8", "replace")
            policy = {"Content-Security-Policy": self.server.policy}
            self._send(HTTPStatus.OK, page, "text/html; charset=utf-8", policy)
        else:
            self._answer(lambda: self.server.content(resource))

    def do_POST(self) -> None:
        resource = self._path()
        if resource is None:
            return

        length = self.headers.get("Content-Length", "")
        is_ours = self.headers.get("Origin") == self.server.origin
        if not is_ours or self.headers.get_content_type() != "application/json":
            self._refuse(HTTPStatus.FORBIDDEN, "only the review page may save")
        elif not (length.isascii() and length.isdigit()):
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "the request has no Content-Length")
        elif len(length) > 9 or int(length) > LARGEST_BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is larger than 1 MiB")
        else:
            body = self.rfile.read(int(length))
            self._answer(lambda: self.server.change(resource, body))

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: the URL contains the secret."""

    def _path(self) -> str | None:
        """Part of the path after the secret; None if the request was refused."""
        token, _, resource = self.path.removeprefix("/").partition("/")
        # A request to another host name of this machine comes from another page: DNS rebinding.
        is_here = self.headers.get("Host") == f"{HOST}:{self.server.server_port}"
        is_own = self.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")
        is_known = hmac.compare_digest(token.encode(), self.server.token.encode())
        if is_here and is_own and is_known and "/" in self.path[1:]:
            return resource

        self._refuse(HTTPStatus.NOT_FOUND, "not found: use the whole URL that was printed")
        return None

    def _answer(self, find: Callable[[], Any]) -> None:
        try:
            with self.server.lock:
                content = find()
        except StaleError as error:
            content = {"error": error.message, "question": error.shown}
            self._send_json(HTTPStatus.CONFLICT, content)
        except KeyError:
            self._refuse(HTTPStatus.NOT_FOUND, "not found")
        except (UserError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, f"Not saved: {one_line(error, 1000)}")
        else:
            self._send_json(HTTPStatus.OK, content)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        # The rest of the request is not read.
        self.close_connection = True
        self._send_json(status, {"error": why})

    def _send_json(self, status: HTTPStatus, content: Any) -> None:
        self._send(status, msgspec.json.encode(content), "application/json", {})

    def _send(self, status: HTTPStatus, body: bytes, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response_only(status)
        body_headers = {"Content-Type": kind, "Content-Length": str(len(body))}
        if self.close_connection:
            body_headers["Connection"] = "close"

        for name, value in {**body_headers, **HEADERS, **headers}.items():
            self.send_header(name, value)

        self.end_headers()
        self.wfile.write(body)
