"""The failure of one try of a call: its message, its kind, and the consequences of the kind."""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any

from msgspec import Struct

from memeval.llm.refusals import refuses_tools
from memeval.llm.reply.body import UnsoundReplyError, is_error_page
from memeval.llm.retry_after import retry_after
from memeval.text.redaction import redacted, without_userinfo
from memeval.text.shown import one_line
from memeval.text.typed import json_or_none


class FaultKind(Enum):
    """Kinds of failed tries; `POLICIES` lists their consequences."""

    LIMITED = auto()
    """The endpoint asks for fewer calls."""
    DOWN = auto()
    """The endpoint, or a gateway in front of it, failed and produced no reply."""
    LOST = auto()
    """No whole reply arrived, although the endpoint may have produced one."""
    UNSOUND = auto()
    """A reply without the requested content; other calls may succeed."""
    UNREACHABLE = auto()
    """Nothing listens there, no such host, or TLS fails; an outage if it has answered before."""
    DEAD = auto()
    """The URL, the key or the model is wrong, or the quota is used up."""
    REFUSED = auto()
    """The endpoint refused the request itself, such as a parameter of it."""
    FILTERED = auto()
    """The provider's filter refused the prompt."""
    DECLINED = auto()
    """Any other refusal."""


class Policy(Struct, frozen=True):
    """The consequences of a failed try."""

    billed: bool
    """Whether the provider may bill the try."""
    retried: bool
    """Whether another try may succeed."""
    outage: bool
    """Whether all callers pause if such failures continue."""
    ends_work: bool = False
    """Whether later calls will also fail, if none has succeeded so far."""


POLICIES = {
    FaultKind.LIMITED: Policy(billed=False, retried=True, outage=True),
    FaultKind.DOWN: Policy(billed=False, retried=True, outage=True),
    FaultKind.LOST: Policy(billed=True, retried=True, outage=True),
    FaultKind.UNSOUND: Policy(billed=True, retried=True, outage=False),
    FaultKind.UNREACHABLE: Policy(billed=False, retried=True, outage=True, ends_work=True),
    FaultKind.DEAD: Policy(billed=False, retried=False, outage=False, ends_work=True),
    FaultKind.REFUSED: Policy(billed=False, retried=False, outage=False),
    FaultKind.FILTERED: Policy(billed=False, retried=False, outage=False),
    FaultKind.DECLINED: Policy(billed=False, retried=False, outage=False),
}


class Setback(Struct, frozen=True):
    """A try that failed."""

    message: str
    kind: FaultKind
    retry_after_s: float | None = None
    parameter: str | None = None
    """The parameter that the endpoint names as the cause."""
    status: int | None = None
    """Status of the reply, if there was one."""

    @property
    def policy(self) -> Policy:
        return POLICIES[self.kind]


_KINDS = {
    # OpenAI's own client retries 408, 409 and 429; 425 means too early.
    408: FaultKind.LOST,
    409: FaultKind.DOWN,
    425: FaultKind.DOWN,
    429: FaultKind.LIMITED,
    # A gateway gave up waiting: the endpoint behind it may have replied.
    504: FaultKind.LOST,
    524: FaultKind.LOST,
    400: FaultKind.REFUSED,
    413: FaultKind.REFUSED,
    422: FaultKind.REFUSED,
    # 400 is not among these: another prompt may be accepted.
    401: FaultKind.DEAD,
    402: FaultKind.DEAD,
    403: FaultKind.DEAD,
    404: FaultKind.DEAD,
    407: FaultKind.DEAD,
}
"""By status. Any other status is DOWN if it is 500 or higher, else DECLINED."""
# An exhausted quota is also reported as 429, but waiting does not restore it.
_QUOTA = frozenset(
    "insufficient_quota billing_hard_limit_reached billing_not_active account_deactivated".split()
)
_REFUSED_WITH_500 = re.compile("--jinja|too large to process")
"""Matches what llama.cpp says of tools without a template, and of a text longer than its batch."""
_MEANINGS = {
    401: "the key was refused",
    402: "payment required",
    403: "access was refused",
    404: "unknown URL or model",
    407: "the proxy refused the login",
}


def status_setback(
    status: int, headers: Mapping[str, str], content: bytes, proxy: str | None = None
) -> Setback:
    """The setback for an HTTP status other than 2xx; over plain HTTP, `proxy` may have sent it."""
    if 300 <= status < 400:
        # With scheme and path: often nothing else differs.
        location = (headers.get("location") or "").partition("?")[0]
        target = one_line(redacted(without_userinfo(location)), 200) or "another URL"
        message = f"HTTP {status}: the endpoint redirects to {target}; nothing is sent there"
        return Setback(message, FaultKind.DEAD, status=status)

    page = is_error_page(content, headers.get("content-type", ""))
    if proxy is not None and page and status in (500, 502, 503):
        message = f"HTTP {status} through the proxy {one_line(proxy, 80)}"
        return Setback(message, FaultKind.UNREACHABLE, status=status)

    return _of_error(status, f"HTTP {status}", headers, content)


def unsound_setback(
    error: UnsoundReplyError, headers: Mapping[str, str], content: bytes, *, final: bool = False
) -> Setback:
    """The setback for a 2xx reply without the requested content. An HTML page or an empty body is
    taken for a gateway's and retried, unless it is `final`.
    """
    if is_error_page(content, headers.get("content-type", "")):
        kind = FaultKind.DECLINED if final else FaultKind.DOWN
        return Setback(str(error), kind)

    body = _object_of(content)
    if not body.get("error") or body.get("choices"):
        return Setback(str(error), FaultKind.UNSOUND)

    status = _error_of(content).get("code")
    if not isinstance(status, int) or not 400 <= status < 600:
        status = 503

    return _of_error(status, "HTTP 200 with an error", headers, content)


def _of_error(status: int, summary: str, headers: Mapping[str, str], content: bytes) -> Setback:
    error = _error_of(content)
    message = _message_of(error, content)
    kind = _kind_of(status, error, message)
    if kind is FaultKind.DEAD:
        code = one_line(error.get("code") or error.get("type"), 40)
        summary += f", {_MEANINGS.get(status, code)}"
    if message:
        summary += f": {message}"

    retry_after_s = None
    if POLICIES[kind].retried:
        retry_after_s = retry_after(headers, content)

    parameter = error.get("param")
    if not isinstance(parameter, str) or not parameter:
        parameter = None

    return Setback(
        message=summary,
        kind=kind,
        retry_after_s=retry_after_s,
        parameter=parameter,
        status=status,
    )


def _kind_of(status: int, error: Mapping[str, Any], message: str) -> FaultKind:
    code = error.get("code") or error.get("type")
    # Compared as strings: a gateway's code may be a list or an object, which a set can't contain.
    if {str(error.get("code")), str(error.get("type"))} & _QUOTA:
        return FaultKind.DEAD

    if (status == 400 and "content_filter" in str(code)) or "content_management_policy" in message:
        return FaultKind.FILTERED
    # If a model does not support tools, OpenRouter replies 404. Requests without tools may be
    # accepted.
    if status == 404 and refuses_tools(message):
        return FaultKind.REFUSED
    if status == 500 and _REFUSED_WITH_500.search(message):
        return FaultKind.REFUSED

    other = FaultKind.DOWN if status >= 500 else FaultKind.DECLINED
    return _KINDS.get(status, other)


def _object_of(content: bytes) -> Mapping[str, Any]:
    body = json_or_none(content)
    # Gemini wraps its errors in a list.
    if isinstance(body, list) and body:
        body = body[0]

    return body if isinstance(body, dict) else {}


def _error_of(content: bytes) -> Mapping[str, Any]:
    body = _object_of(content)
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
    "ServerDisconnectedError": Setback(_RESET, FaultKind.LOST),
    **dict.fromkeys(
        "ClientPayloadError ContentLengthError TransferEncodingError IncompleteReadError".split(),
        Setback("the reply was cut off", FaultKind.LOST),
    ),
    **dict.fromkeys(
        "ClientResponseError BadStatusLine BadHttpMessage BadHttpMethod LineTooLong "
        "InvalidHeader".split(),
        Setback("the reply is not valid HTTP", FaultKind.UNSOUND),
    ),
    **dict.fromkeys(
        "InvalidURL InvalidUrlClientError NonHttpUrlClientError".split(),
        Setback("the URL is not valid", FaultKind.DEAD),
    ),
}
"""By the name of an exception's class, so that the HTTP libraries need not be imported."""


def connection_setback(error: BaseException, host: str) -> Setback:
    """The setback for a connection error, found by searching the error and its causes."""
    causes = list(_causes(error))
    names = [type(cause).__name__ for cause in causes]
    if "ClientProxyConnectionError" in names:
        host = f"the proxy {getattr(error, 'host', '')}"

    # TLS and host name errors come first, because they are also socket errors.
    for classify in (_of_proxy, _of_tls_or_name, _of_socket):
        for cause in causes:
            if (setback := classify(cause, host)) is not None:
                return setback

    # Checked first: aiohttp raises the same outer error for a reply that was cut off.
    if "ContentEncodingError" in names:
        message = "the reply can't be decoded as its header Content-Encoding says"
        return Setback(message, FaultKind.UNSOUND)

    for name in names:
        if name in _BY_NAME:
            return _BY_NAME[name]

    for cause in causes:
        if isinstance(cause, OSError) and cause.strerror:
            return Setback(f"connection failed: {one_line(cause.strerror)}", FaultKind.DOWN)

    reason = one_line(causes[-1]) or type(causes[-1]).__name__
    return Setback(f"connection failed: {reason}", FaultKind.LOST)


def _of_proxy(cause: BaseException, host: str) -> Setback | None:
    if type(cause).__name__ != "ClientHttpProxyError":
        return None

    # Its reply to CONNECT: the endpoint got no request.
    status, reason = getattr(cause, "status", 0), one_line(getattr(cause, "message", ""))
    if status >= 500:
        message = f"the proxy can't connect to {host}: {status} {reason}"
        return Setback(message, FaultKind.UNREACHABLE)

    return Setback(f"the proxy replied {status}: {reason}", _kind_of(status, {}, ""))


def _of_tls_or_name(cause: BaseException, host: str) -> Setback | None:
    if isinstance(cause, socket.gaierror):
        # If the name was found before, it is still right, and the look-up itself is failing.
        return Setback(f"host name not found: {host}", FaultKind.UNREACHABLE)

    if isinstance(cause, ssl.SSLCertVerificationError):
        # aiohttp's own error of this type only wraps the one that has the message.
        wrapped = getattr(cause, "certificate_error", cause)
        reason = getattr(wrapped, "verify_message", None) or "it can't be verified"
        # A certificate may expire, or be exchanged, during a run.
        message = f"TLS: the certificate of {host} was refused: {one_line(reason)}"
        return Setback(message, FaultKind.UNREACHABLE)

    # Before `SSLError`, whose subclasses they are: a broken connection is not a certificate error.
    if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return Setback("connection reset during the TLS handshake", FaultKind.DOWN)

    if isinstance(cause, ssl.SSLError):
        # aiohttp's own error has no reason, only the one that it wraps.
        wrapped = getattr(cause, "os_error", cause)
        reason = (getattr(wrapped, "reason", None) or str(wrapped)).replace("_", " ").lower()
        message = f"TLS: no secure connection to {host}: {one_line(reason)}"
        return Setback(message, FaultKind.UNREACHABLE)

    return None


def _of_socket(cause: BaseException, host: str) -> Setback | None:
    if isinstance(cause, ConnectionRefusedError):
        return Setback(f"connection refused by {host}", FaultKind.UNREACHABLE)
    if isinstance(cause, ConnectionResetError | BrokenPipeError | ConnectionAbortedError):
        return Setback(_RESET, FaultKind.LOST)

    return None


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
        # aiohttp keeps the operating system's error in an attribute instead of as a cause.
        for name in ("os_error", "certificate_error"):
            inner = getattr(current, name, None)
            if isinstance(inner, BaseException):
                waiting.append(inner)

        waiting += [current.__cause__, current.__context__]
