"""What went wrong with one try of a call, as a message, and whether another try may succeed."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memeval.llm.retry_after import retry_after
from memeval.redaction import place_of, redacted
from memeval.shown import one_line


@dataclass(frozen=True, slots=True)
class Setback:
    """A try that failed."""

    what: str
    passing: bool
    """Whether another try may succeed."""
    retry_after_s: float | None = None
    limited: bool = False
    """Whether the endpoint asks for fewer calls."""
    unsound: bool = False
    """Whether it answered, but with something that is not a reply; such a thing may last."""
    only_at_start: bool = False
    """Whether it is final as long as the endpoint never answered.

    Then it is a mistake in the address, and not an outage.
    """
    filtered: bool = False
    """Whether the provider's filter refused the prompt."""
    refused: bool = False
    """Whether the endpoint refused the request itself, such as a parameter of it."""
    parameter: str | None = None
    """The parameter that the endpoint names as the cause."""
    dead: bool = False
    """Whether no call will be answered, where none was so far: the address, the key or the model is
    wrong, or nothing listens there.
    """
    status: int | None = None
    """Of the reply, if there was one."""


_SLOW_DOWN = 429
# OpenAI's own client tries 408, 409 and 429 again; 425 means too early.
_PASSING = frozenset({408, 409, 425, _SLOW_DOWN})
_REFUSED = frozenset({400, 422})
# A quota that is used up comes as 429, too, but waiting does not fill it.
_QUOTA = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
    }
)
_MEANINGS = {
    401: "the key was refused",
    402: "a payment is due",
    403: "access was refused",
    404: "unknown address or model",
}


def of_status(status: int, headers: Mapping[str, str], content: bytes) -> Setback:
    """The setback that an HTTP status other than 2xx means."""
    if 300 <= status < 400:
        target = one_line(place_of(headers.get("location") or "") or "another path")
        return Setback(
            f"HTTP {status}: the endpoint redirects to {target}; prompts are not sent there",
            passing=False,
            dead=True,
            status=status,
        )

    error = _error_of(content)
    message = _message_of(error, content)
    code = error.get("code") or error.get("type")
    # A gateway's code may be a list or an object, which no set can hold.
    names = {error.get("code"), error.get("type")} if _hashable(error) else set()
    out_of_quota = bool(names & _QUOTA)
    passing = (status in _PASSING or status >= 500) and not out_of_quota
    what = f"HTTP {status}"

    if status in _MEANINGS:
        what += f", {_MEANINGS[status]}"
    elif out_of_quota:
        what += f", {one_line(code, 40)}"

    filtered = (
        status == 400 and "content_filter" in str(code)
    ) or "content_management_policy" in message
    retry_after_s = retry_after(headers, content) if passing else None

    return Setback(
        what=f"{what}: {message}" if message else what,
        passing=passing,
        retry_after_s=retry_after_s,
        limited=status == _SLOW_DOWN and passing,
        filtered=filtered,
        refused=status in _REFUSED,
        parameter=_parameter_of(error),
        # Not 400: another prompt may be accepted.
        dead=status in _MEANINGS or out_of_quota,
        status=status,
    )


def _parameter_of(error: Mapping[str, Any]) -> str | None:
    parameter = error.get("param")
    return parameter if isinstance(parameter, str) and parameter else None


def _hashable(error: Mapping[str, Any]) -> bool:
    return all(
        value is None or isinstance(value, str | int)
        for value in (error.get("code"), error.get("type"))
    )


def _error_of(content: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return {}

    # Gemini wraps its errors in a list.
    if isinstance(body, list) and body:
        body = body[0]

    if not isinstance(body, dict):
        return {}

    error = body.get("error", body)

    return error if isinstance(error, dict) else {"message": error}


def _message_of(error: Mapping[str, Any], content: bytes) -> str:
    message = error.get("message") or error.get("detail") or error.get("msg")
    if not isinstance(message, str) or not message.strip():
        text = content[:2000].decode("utf-8", "replace").strip()
        if "<html" in text.lower() or "<!doctype" in text.lower():
            return "an HTML page"

        message = text

    return one_line(redacted(message), 300)


_RESET = "connection reset"
_BY_NAME = {
    "ServerDisconnectedError": Setback(_RESET, passing=True),
    **dict.fromkeys(
        (
            "ClientPayloadError",
            "ContentLengthError",
            "TransferEncodingError",
            "IncompleteReadError",
            "ReadError",
        ),
        Setback("the reply was cut off", passing=True),
    ),
    **dict.fromkeys(
        (
            "ClientResponseError",
            "BadStatusLine",
            "BadHttpMessage",
            "BadHttpMethod",
            "LineTooLong",
            "InvalidHeader",
            "DecodingError",
        ),
        Setback("the reply is not HTTP", passing=True, unsound=True),
    ),
    **dict.fromkeys(
        ("InvalidURL", "UnsupportedProtocol", "InvalidUrlClientError", "NonHttpUrlClientError"),
        Setback("the address can't be requested", passing=False, dead=True),
    ),
}
"""By the name of an exception's class, so that the HTTP libraries need not be imported."""


def of_connection(error: BaseException, host: str) -> Setback:
    """The setback behind a connection's error, looked for among the causes of the error."""
    causes = list(_causes(error))
    # TLS and names of hosts come first: their errors are also errors of the socket.
    for classify in (_of_tls_or_name, _of_socket, _of_name):
        for cause in causes:
            if (setback := classify(cause, host)) is not None:
                return setback

    for cause in causes:
        if isinstance(cause, OSError) and cause.strerror:
            return Setback(f"connection failed: {one_line(cause.strerror)}", passing=True)

    return Setback(
        f"connection failed: {one_line(causes[-1]) or type(causes[-1]).__name__}", passing=True
    )


def _of_tls_or_name(cause: BaseException, host: str) -> Setback | None:
    if isinstance(cause, socket.gaierror):
        # A name that was found before is still right: the look-up itself is down.
        return Setback(f"host name not found: {host}", passing=True, only_at_start=True, dead=True)

    if isinstance(cause, ssl.SSLCertVerificationError):
        reason = getattr(cause, "verify_message", None) or "it can't be verified"
        return Setback(
            f"TLS: the certificate of {host} is refused: {one_line(reason)}",
            passing=False,
            dead=True,
        )

    # Before `SSLError`, whose subclasses they are: a connection that breaks says nothing about the
    # certificate.
    if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return Setback("connection reset during the TLS handshake", passing=True)

    if isinstance(cause, ssl.SSLError):
        reason = (getattr(cause, "reason", None) or str(cause)).replace("_", " ").lower()
        return Setback(
            f"TLS: no secure connection to {host}: {one_line(reason)}", passing=False, dead=True
        )

    return None


def _of_socket(cause: BaseException, host: str) -> Setback | None:
    if isinstance(cause, ConnectionRefusedError):
        return Setback(f"connection refused by {host}", passing=True, only_at_start=True, dead=True)
    if isinstance(cause, ConnectionResetError | BrokenPipeError | ConnectionAbortedError):
        return Setback(_RESET, passing=True)

    return None


def _of_name(cause: BaseException, _host: str) -> Setback | None:
    return _BY_NAME.get(type(cause).__name__)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes, each once, the outermost first."""
    seen: set[int] = set()
    waiting = [error]

    while waiting:
        current = waiting.pop(0)
        if current is None or id(current) in seen:
            continue

        seen.add(id(current))
        yield current
        # aiohttp keeps the error of the system in an attribute, and not as a cause.
        inner = [getattr(current, name, None) for name in ("os_error", "certificate_error")]
        waiting += [cause for cause in inner if isinstance(cause, BaseException)]
        waiting += [current.__cause__, current.__context__]
