"""Removes substrings that look like a secret: a key, a token, the password of a URL."""

import re
from collections.abc import Callable, Iterable
from functools import partial

REDACTED = "[redacted]"
"""The text that replaces a secret."""
MAX_ADDRESSES = 100
"""Maximum URLs without spaces between them that are checked one by one; real texts have fewer."""
# Shapes of unknown secrets. Each pattern begins with one of a few letters and consumes what it
# examines, so the time is linear.
_KEY = re.compile(
    r"(?:sk|pk|rk|hf|gsk|xai|nvapi|ghp|gho|ghs|ghu|github_pat|glpat|xox[abeprs]|pypi|npm|m0|jina|"
    r"tvly|pplx|r8|voyage|pa)"
    r"[-_](?P<key>[A-Za-z0-9_\-]{12,})"
    r"|A(?:KIA|SIA)(?P<amazon>[0-9A-Z]{16,})|AIza(?P<google>[0-9A-Za-z_\-]{30,})|"
    r"eyJ(?P<jwt>[A-Za-z0-9_\-]{12,}(?:\.[A-Za-z0-9_\-]*){0,4})"
)
_TOKEN = re.compile(r"(?:bearer|basic)[ \t]{1,8}(?P<token>[a-z0-9._~+/\-]{8,}=*)")
_VALUE = re.compile(
    r"(?:api[-_ ]?key|access[-_ ]?key|secret|password|passwd|token|credential)(?:[ "
    r"\t]{1,8}provided)?"
    r"[\"'\\]{0,3}[ \t]{0,8}[:=][ \t]{0,8}[\"'\\]{0,3}(?P<value>[^\s\"'\\,;&<>|]{6,})"
)
"""This and `_TOKEN` are searched for in the lower-cased text."""
_ADDRESS = re.compile(r"://[^\s\"'<>]+")
_HOST = re.compile(r"[^/?#]*")


def without_shapes(text: str, hide: Callable[[str], str] = lambda _: REDACTED) -> str:
    """`text` without what looks like a secret; `hide` returns the replacement."""
    if "://" in text:
        text = _ADDRESS.sub(partial(_without_user, hide=hide), text)

    text = _hide_secrets(text, _KEY.finditer(text), hide)
    # Lowered again for each: the first pattern may have changed the positions.
    for pattern in (_TOKEN, _VALUE):
        text = _hide_secrets(text, pattern.finditer(_lower(text)), hide)

    return text


def _lower(text: str) -> str:
    """`text` with the letters A to Z in lower case."""
    # `str.lower` changes the length of some letters, and positions must stay the same.
    return text.lower() if text.isascii() else text.translate(_SMALL)


_SMALL = {ord(letter): ord(letter.lower()) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def _hide_secrets(text: str, matches: Iterable[re.Match[str]], hide: Callable[[str], str]) -> str:
    parts, done = [], 0
    for match in matches:
        name = match.lastgroup or ""
        start, end = match.span()
        if not _is_secret(name, text[match.start(name) : end], text[start - 1 : start]):
            continue

        if name in ("token", "value"):
            start = match.start(name)

        parts += [text[done:start], hide(text[start:end])]
        done = end

    return "".join([*parts, text[done:]])


def _is_secret(name: str, secret: str, before: str) -> bool:
    """Whether a match is a secret and not ordinary words.

    `name` is the group that matched, `before` the character before the match.
    """
    if REDACTED in secret or (name != "value" and before.isalnum()):
        return False
    if name in ("amazon", "google", "jwt"):
        return name != "jwt" or "." in secret
    if name == "value" and secret.startswith(("$", "...", "…", "/", "{", "[")):
        return False

    return _is_random(secret) or (name != "key" and len(secret) >= 24)


def _without_user(match: re.Match[str], hide: Callable[[str], str]) -> str:
    """The URLs of a match without user names and passwords."""
    addresses = match[0].split("://")[1:]
    if len(addresses) > MAX_ADDRESSES and "@" in match[0]:
        return f"://{hide(match[0])}"

    return "://".join(["", *(_hide_user(address, hide) for address in addresses)])


def _hide_user(rest: str, hide: Callable[[str], str]) -> str:
    """The part of a URL after `://`, without user name and password."""
    if "@" not in rest:
        return rest

    host = _HOST.match(rest)[0]  # type: ignore[index]
    port = host.rpartition(":")[2]
    if "@" not in host and (":" not in host or port.isdigit()):
        return rest

    # Up to the last `@`: a password may contain a slash, though a URL should not.
    user, _, after = rest.rpartition("@")
    return f"{hide(user)}@{after}"


def _is_random(text: str) -> bool:
    """Whether a string is not made of words.

    It mixes digits and letters, or both cases within a word, or it is one very long run.
    """
    if _MIXED.search(text) or _LONG_RUN.search(text):
        return True

    return bool(_DIGIT.search(text) and _LETTER.search(text))


_MIXED = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_LONG_RUN = re.compile(r"[^-_.]{20}")
_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")
