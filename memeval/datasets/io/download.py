"""Opens a URL for a download: follows only safe redirects, and explains why it is unreachable."""

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

    None of these errors goes away on its own, so nothing is retried.
    """
    # `urllib` wraps the error of a refused certificate, an unknown host and the like.
    reason = error.reason if isinstance(error, URLError) else error
    return f"{url} can't be reached: {one_line(reason) or type(reason).__name__}."
