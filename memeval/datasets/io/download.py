"""Opens an address for a download: follows only safe redirects, and has a message for each way in
which the address can't be reached.
"""

from __future__ import annotations

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
"""Headers that another host may see."""


class SafeRedirects(HTTPRedirectHandler):
    """Follows redirects, but never from https to another scheme, and to another host only without
    headers that might hold a secret.
    """

    def redirect_request(  # noqa: PLR0917 - as urllib calls it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        if after.scheme not in ("http", "https") or (
            before.scheme == "https" and after.scheme != "https"
        ):
            fp.close()
            schemes = f"from {before.scheme} to {one_line(after.scheme)}"
            raise WorldError(
                f"{without_userinfo(req.full_url)} redirects {schemes}: it is not followed."
            )

        if after.username or after.password:
            fp.close()
            raise WorldError(
                f"{without_userinfo(req.full_url)} redirects to an address with a user name: it "
                "is not followed."
            )

        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and before.netloc != after.netloc:
            request.headers = {
                name: value
                for name, value in request.headers.items()
                # urllib writes names of headers so: `User-agent`.
                if name.capitalize() in HARMLESS
            }

        return request


def open_url(url: str, done: int) -> HTTPResponse:
    """The reply to a request for what follows the first `done` bytes.

    Raises what `urlopen` raises, `WorldError` for an unsafe redirect.
    """
    # `identity`, because a range counts the bytes as they are sent.
    headers = {"User-Agent": "memeval", "Accept-Encoding": "identity"} | (
        {"Range": f"bytes={done}-"} if done else {}
    )
    return cast(
        HTTPResponse,
        build_opener(SafeRedirects()).open(Request(url, headers=headers), timeout=TIMEOUT_S),
    )


def unreachable(url: str, error: Exception) -> str:
    """Why an address can't be reached, in a sentence.

    No such reason passes by itself, so nothing is tried again.
    """
    reason = (
        error.reason
        if isinstance(error, URLError) and isinstance(error.reason, Exception)
        else error
    )
    host = urlsplit(url).hostname or url
    # Before `SSLError`, of which it is a subclass.
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"{url} can't be reached: the certificate of {host} is not valid "
            f"({one_line(getattr(reason, 'verify_message', reason))})."
        )

    if isinstance(reason, ssl.SSLError):
        return (
            f"{url} can't be reached: no secure connection to {host} (TLS: "
            f"{one_line(getattr(reason, 'reason', None) or reason)})."
        )

    if isinstance(reason, socket.gaierror):
        return (
            f"{url} can't be reached: the name {host} is not found "
            f"({one_line(reason.strerror or reason)})."
        )

    if isinstance(reason, ConnectionRefusedError):
        return f"{url} can't be reached: {host} refuses the connection."
    if isinstance(reason, TimeoutError):
        return f"{url} can't be reached: no answer within {TIMEOUT_S:g} s."

    return f"{url} can't be reached: {one_line(reason) or type(reason).__name__}."
