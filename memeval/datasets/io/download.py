"""Opens a URL for a download: follows only safe redirects, and explains why it is unreachable."""

import socket
import ssl
from http.client import HTTPMessage, HTTPResponse
from typing import IO, cast
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from memeval.errors import WorldError
from memeval.text.redaction import without_userinfo
from memeval.text.shown import one_line

TIMEOUT_S = 60.0
HARMLESS = ("User-agent", "Accept-encoding", "Range")
"""Headers that may be sent to another host."""


class SafeRedirects(HTTPRedirectHandler):
    """Follows redirects, but never from https to another scheme, and to another host only without
    headers that might contain a secret.
    """

    def redirect_request(  # noqa: PLR0917 - as urllib calls it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        allowed = ("https",) if before.scheme == "https" else ("http", "https")
        unsafe = ""
        if after.scheme not in allowed:
            unsafe = f"from {before.scheme} to {one_line(after.scheme)}"
        elif after.username or after.password:
            unsafe = "to a URL with a user name"

        if unsafe:
            fp.close()
            shown = without_userinfo(req.full_url)
            raise WorldError(f"{shown} redirects {unsafe}: memeval does not follow it.")

        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and before.netloc != after.netloc:
            request.headers = {
                name: value
                for name, value in request.headers.items()
                # urllib writes header names like this: `User-agent`.
                if name.capitalize() in HARMLESS
            }

        return request


def open_url(url: str, done: int) -> HTTPResponse:
    """The response to a request for everything after the first `done` bytes.

    Raises what `urlopen` raises, and `WorldError` for an unsafe redirect.
    """
    # `identity`, because a range counts the bytes as they are sent.
    headers = {"User-Agent": "memeval", "Accept-Encoding": "identity"}
    if done:
        headers["Range"] = f"bytes={done}-"

    opener = build_opener(SafeRedirects())
    return cast(HTTPResponse, opener.open(Request(url, headers=headers), timeout=TIMEOUT_S))


def unreachable(url: str, error: Exception) -> str:
    """Why a URL can't be reached, in one sentence.

    None of these reasons goes away on its own, so nothing is retried.
    """
    reason = error
    if isinstance(error, URLError) and isinstance(error.reason, Exception):
        reason = error.reason

    return f"{url} can't be reached: {_reason(reason, urlsplit(url).hostname or url)}."


def _reason(reason: Exception, host: str) -> str:
    # Checked before `SSLError`, its base class.
    if isinstance(reason, ssl.SSLCertVerificationError):
        what = one_line(getattr(reason, "verify_message", reason))
        return f"the certificate of {host} is not valid ({what})"
    if isinstance(reason, ssl.SSLError):
        what = one_line(getattr(reason, "reason", None) or reason)
        return f"no secure connection to {host} (TLS: {what})"
    if isinstance(reason, socket.gaierror):
        return f"host name {host} not found ({one_line(reason.strerror or reason)})"
    if isinstance(reason, ConnectionRefusedError):
        return f"{host} refused the connection"
    if isinstance(reason, TimeoutError):
        return f"no answer within {TIMEOUT_S:g} s"

    return one_line(reason) or type(reason).__name__
