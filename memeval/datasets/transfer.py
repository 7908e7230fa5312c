"""Downloads a file into a partial file, and continues an earlier download that broke off. Only safe
redirects are followed.
"""

from collections.abc import Callable
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, NoReturn, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from msgspec import Struct

from memeval.datasets.contract import DatasetInfo
from memeval.datasets.io.part_file import PartFile
from memeval.errors import WorldError
from memeval.text.redaction import without_userinfo
from memeval.text.shown import one_line

Progress = Callable[[int, int | None], None]
"""Called with the number of bytes received so far and, if known, the total number."""

BLOCK = 1 << 18
SPARE = 1.01
"""Maximum ratio of the received bytes to the registered size: a server may announce slightly more
than it sends.
"""
MAX_BYTES = 8 << 30
"""Maximum number of bytes that may arrive if no size is registered or given."""
TIMEOUT_S = 60.0
HARMLESS = ("User-agent", "Accept-encoding", "Range")
"""Headers that may be sent to another host."""


class FetchLimits(Struct, frozen=True):
    """The user's limits, and expected values for a file without registered ones."""

    max_bytes: int | None = None
    """Maximum number of bytes; None allows the registered size and 1 % more."""
    sha256: str | None = None
    """Expected sha256 if none is registered."""

    def most(self, info: DatasetInfo) -> int:
        """Maximum number of bytes that may arrive for a file."""
        if self.max_bytes is not None:
            return self.max_bytes

        return MAX_BYTES if info.size_bytes is None else int(info.size_bytes * SPARE)


class Transfer(Struct, frozen=True):
    """A download of a data set's file into a part."""

    info: DatasetInfo
    part: PartFile
    limits: FetchLimits
    progress: Progress | None = None

    def run(self) -> bool:
        """Completes the partial file; returns whether an earlier download was continued."""
        done, size, url = self.part.size(), self.info.size_bytes, self.info.url or ""
        if size is not None and done >= size:
            return True

        try:
            response = open_url(url, done)
        except HTTPError as error:
            error.close()
            # The existing content is whole, or the beginning of another file.
            if error.code == 416 and done:
                return True

            raise WorldError(f"{url} returned {error.code} {one_line(error.reason)}.") from error
        # ValueError: the server redirects to something that is not a URL.
        except (OSError, HTTPException, ValueError) as error:
            raise WorldError(
                f"{unreachable(url, error)} You can also download the file by hand, to "
                f"{self.part.target}"
            ) from error

        with response:
            given = response.headers.get("Content-Range", "")
            if response.status == 206 and not given.startswith(f"bytes {done}-"):
                raise WorldError(
                    f"{url} returned a different range than requested; remove "
                    f"{self.part.path}, then fetch again."
                )

            # A server that ignores Range sends the whole file with status 200.
            if response.status != 206:
                # So does the login page of a network, which must not replace hours of work.
                if done and response.headers.get_content_type() == "text/html":
                    raise WorldError(
                        f"{url} returned a web page instead of the file. What has arrived before "
                        f"is kept: {self.part.path}"
                    )

                done = 0

            # Needed even if nothing is cut: it sets the position for writing.
            self.part.cut(done)
            self._copy(response, done)

        return done > 0

    def _copy(self, response: HTTPResponse, done: int) -> None:
        # This header may contain any text; a number of 20 or more digits is not a size.
        length = response.headers.get("Content-Length", "")
        announced = None
        if length.isdecimal() and len(length) < 20:
            announced = done + int(length)

        total, most = announced or self.info.size_bytes, self.limits.most(self.info)
        # Refused before the first byte: a wrong URL could fill the disk.
        if announced is not None and announced > most:
            self._refuse(f"it announces {announced:,} bytes", most)

        # A server may send more than it announces: each block is counted.
        while block := self._read(response):
            done += len(block)
            if done > most:
                self._refuse("it goes on", most)

            self.part.write(block)
            if self.progress:
                self.progress(done, total)

        self.part.flush()
        if total is not None and done < total:
            raise WorldError(
                f"the download of {self.info.url} stopped at {done:,} of {total:,} bytes. The "
                "same command continues it."
            )

    def _refuse(self, excess: str, most: int) -> NoReturn:
        """Discards the part, and raises `WorldError`: the server sends too much."""
        self.part.discard()
        size = self.info.size_bytes
        registered = f"{size:,} bytes are registered" if size else "no size is registered"
        raise WorldError(
            f"{self.info.url} sends too much: {excess}, but only {most:,} bytes are allowed "
            f"({registered}). The download was discarded; to allow more: --max-bytes N"
        )

    def _read(self, response: HTTPResponse) -> bytes:
        try:
            return response.read1(BLOCK)
        except (OSError, HTTPException) as error:
            reason = one_line(error) or type(error).__name__
            raise WorldError(
                f"the download of {self.info.url} stopped: {reason}. The same command continues it."
            ) from error


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
