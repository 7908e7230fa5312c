"""Secrets stay in the process: every text that leaves it (a file, MLflow, the terminal) goes
through here first.

Known secrets (keys read from the environment, values of headers, passwords of addresses) are taken
out of everything. What only looks like a secret is taken out of errors, notes, commands and
settings, and not out of the texts of data and replies, which are measured as they are.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

REDACTED = "[redacted]"
"""What stands where a secret stood."""
SHORTEST = 8
"""Characters from which on a value is taken for a secret of its own; shorter ones occur in ordinary
text.
"""
MOST_ADDRESSES = 100
"""Addresses without a blank between them that are looked at one by one; more of them are no text
that anybody wrote.
"""
TELLING = 12
"""Characters of the beginning of a secret that give it away: a text that was cut may end in the
middle of one.
"""

# What tools ask people to type where there is no key: ordinary words, which name models too.
_PLACEHOLDERS = frozenset(
    {
        "lm-studio",
        "not-needed",
        "not-required",
        "no-key-required",
        "sk-no-key-required",
        "placeholder",
        "anything",
        "whatever",
    }
)
_HOLDS_SECRET = re.compile(
    r"(?:API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|ACCOUNT_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|"
    r"PASSPHRASE|CREDENTIALS?)$"
)

_forms: dict[str, set[str]] = {}
"""Every way in which a known secret may be written, by what such a text begins with."""

# Shapes of secrets that are not known. Each pattern begins with a letter of a small set and
# consumes what it looks at, so the time is linear.
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
"""These two are looked for in lower case."""
_ADDRESS = re.compile(r"://[^\s\"'<>]+")
_PLACE = re.compile(r"[^/?#]*")
_SECRET_PARAMETER = re.compile(r"(?i)key|token|secret|pass|pwd|sig|auth|credential")


def keep_secret(value: str | None) -> None:
    """Remembers a secret of this process: a key, a password, a token."""
    for secret in _spellings(value or ""):
        if len(secret) < SHORTEST or secret.lower() in _PLACEHOLDERS:
            continue

        for form in _forms_of(secret):
            _remember(form)


def keep_address(address: str | None) -> None:
    """Remembers what an address holds besides the place: user and password, and the values of its
    query.
    """
    if not address or "://" not in address:
        return

    rest = address.split("://", 1)[1]
    if "@" in rest:
        _user, _, password = rest.rpartition("@")[0].partition(":")
        keep_secret(password)
        keep_secret(unquote(password))

    for pair in rest.partition("?")[2].partition("#")[0].split("&"):
        name, _, value = pair.partition("=")
        if _SECRET_PARAMETER.search(name):
            keep_secret(value)
            keep_secret(unquote(value))


def keep_environment() -> None:
    """Remembers the values of all variables of the environment that hold secrets by their names,
    and the passwords of addresses.
    """
    for name, value in os.environ.items():
        if _HOLDS_SECRET.search(name.upper()) and not value.startswith("/"):
            keep_secret(value)

        keep_address(value)


def redacted(text: str) -> str:
    """`text` without the secrets that were remembered, and without what looks like one."""
    text = without_known(text)
    if "://" in text:
        text = _ADDRESS.sub(_without_user, text)

    text = _cut(text, _KEY.finditer(text))
    for pattern in (_TOKEN, _VALUE):
        text = _cut(text, pattern.finditer(_lower(text)))

    return text


def without_known(text: str) -> str:
    """`text` without the secrets that were remembered, however they are written there.

    Nothing else is touched.
    """
    for beginning, forms in _forms.items():
        if beginning in text:
            text = _without(text, beginning, forms)

    return text


def without_known_in(value: Any) -> Any:
    """A value of JSON (a row, a summary, a reply) whose texts hold no known secret.

    One that holds none is returned as it is.
    """
    return _map_strings(value, without_known) if _forms else value


def redacted_in(value: Any) -> Any:
    """As `without_known_in`, for values that hold no texts of data: what looks like a secret goes
    too.
    """
    return _map_strings(value, redacted)


def looks_secret(text: str) -> bool:
    """Whether a text holds a known secret or what looks like one."""
    return redacted(text) != text


def without_userinfo(address: str) -> str:
    """An address as it may be shown and stored: without user, password and query."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return address

    place = rest.partition("?")[0].partition("#")[0]
    if "@" in place:
        place = place.rpartition("@")[2]

    return f"{scheme}://{place}"


def _map_strings(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)

    if isinstance(value, Mapping):
        return {
            (change(name) if isinstance(name, str) else name): _map_strings(item, change)
            for name, item in value.items()
        }

    if isinstance(value, list | tuple):
        return [_map_strings(item, change) for item in value]

    return value


def _spellings(value: str) -> Iterator[str]:
    """The value itself; without the blanks around it; of a header's value the token alone, and what
    basic authentication wraps.
    """
    yield value
    yield value.strip()
    scheme, _, token = value.strip().partition(" ")

    if token and scheme.lower() in ("bearer", "basic", "token", "apikey", "key"):
        yield token.strip()
        if scheme.lower() == "basic":
            yield from _unwrap(token.strip())


def _unwrap(token: str) -> Iterator[str]:
    try:
        plain = base64.b64decode(token, validate=True).decode()
    except ValueError:
        return

    yield plain
    yield plain.partition(":")[2]


def _forms_of(secret: str) -> Iterator[str]:
    """The secret as texts, JSON, addresses, Python, HTML and basic authentication write it."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield html.escape(secret)
    yield from (quote(secret), quote(secret, safe=""), quote_plus(secret))
    raw = secret.encode("utf-8", "surrogatepass")
    yield raw.hex()

    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        # The secret may begin at any of the three places of a group of base64: the digits that it
        # alone decides are the same each time.
        for before in range(3):
            digits = encode(b"\0" * before + raw).decode().rstrip("=")
            certain = digits[-(-8 * before // 6) : len(digits) - ((before + len(raw)) % 3 > 0)]
            if len(certain) >= SHORTEST:
                yield certain


def _remember(form: str) -> None:
    _forms.setdefault(form[:TELLING], set()).add(form)


def _without(text: str, beginning: str, forms: Iterable[str]) -> str:
    """`text` without each passage that begins as a secret does and goes on like it, to its end or
    to where the passage was cut.
    """
    parts, done = [], 0
    while (start := text.find(beginning, done)) >= 0:
        end = max(_end(text, start, form) for form in forms)
        parts += [text[done:start], REDACTED]
        done = end

    return "".join([*parts, text[done:]])


def _end(text: str, start: int, form: str) -> int:
    """Where what stands at `start` ceases to be `form`."""
    if text.startswith(form, start):
        return start + len(form)

    low, high = 0, len(form)
    while high - low > 1:
        middle = (low + high) // 2
        if text.startswith(form[low:middle], start + low):
            low = middle
        else:
            high = middle

    return start + low


def _lower(text: str) -> str:
    """`text` with the letters A to Z as small ones, each character in its place."""
    return text.lower() if text.isascii() else text.translate(_SMALL)


_SMALL = {ord(letter): ord(letter.lower()) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def _cut(text: str, matches: Iterable[re.Match[str]]) -> str:
    """`text` without what was found that is a secret."""
    parts, done = [], 0
    for match in matches:
        name = match.lastgroup or ""
        if not _plausible(
            name, text[match.start(name) : match.end()], text[match.start() - 1 : match.start()]
        ):
            continue

        start = match.start(name) if name in ("token", "value") else match.start()
        parts += [text[done:start], REDACTED]
        done = match.end()

    return "".join([*parts, text[done:]]) if parts else text


def _plausible(name: str, secret: str, before: str) -> bool:
    """Whether what has the place or the beginning of a secret is one, and not words that people
    write.
    """
    if REDACTED in secret or (name != "value" and before.isalnum()):
        return False
    if name in ("amazon", "google", "jwt"):
        return name != "jwt" or "." in secret
    if name == "value" and secret.startswith(("$", "...", "…", "/", "{", "[")):
        return False

    return _random(secret) or (name != "key" and len(secret) >= 24)


def _without_user(match: re.Match[str]) -> str:
    """Addresses that stand in a text, without user names and passwords."""
    places = match[0].split("://")[1:]
    if len(places) > MOST_ADDRESSES and "@" in match[0]:
        return f"://{REDACTED}"

    return "://".join(["", *map(_place_of, places)])


def _place_of(rest: str) -> str:
    """What follows `://`, less what stands before its last `@`: a password may hold a slash, though
    an address should not.
    """
    if "@" not in rest:
        return rest

    place = _PLACE.match(rest)[0]  # type: ignore[index]
    port = place.rpartition(":")[2]
    if "@" not in place and (":" not in place or port.isdigit()):
        return rest

    return f"{REDACTED}@{rest.rpartition('@')[2]}"


def _random(text: str) -> bool:
    """Whether a text is not made of words: digits among letters, letters of both cases within a
    word, or a very long run.
    """
    if _MIXED.search(text) or _LONG_RUN.search(text):
        return True

    return bool(_DIGIT.search(text) and _LETTER.search(text))


_MIXED = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_LONG_RUN = re.compile(r"[^-_.]{20}")
_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")


def place_of(address: str) -> str:
    """Host and port of an address, for messages; empty where it has none."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""

    return parts.netloc.rpartition("@")[2]
