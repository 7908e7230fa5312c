"""Keeps secrets in the process: every text that leaves it (a file, MLflow, the terminal) passes
through here.

Known secrets (keys from the environment, values of headers, passwords of URLs) are removed from
everything. A string that only looks like a secret (see `memeval.text.secret_shapes`) is removed
from errors, notes, commands and settings. It stays in the texts of data and replies, which are
measured unchanged.
"""

import base64
import html
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from memeval.text.secret_shapes import REDACTED, without_shapes

SHORTEST = 8
"""Minimum characters of a secret; shorter values occur in ordinary text."""
TELLING = 12
"""Minimum leading characters of a secret that are recognised if the text ends inside it."""

# Values that tools ask people to type if there is no key: ordinary words, which also name models.
_PLACEHOLDERS = frozenset(
    "lm-studio not-needed not-required no-key-required sk-no-key-required placeholder anything "
    "whatever".split()
)
_HOLDS_SECRET = re.compile(
    r"(?:API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|ACCOUNT_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|"
    r"PASSPHRASE|CREDENTIALS?)$"
)

_forms: dict[str, set[str]] = {}
"""Every spelling of the known secrets, by its first characters."""

_SECRET_PARAMETER = re.compile(r"(?i)key|token|secret|pass|pwd|sig|auth|credential")


def keep_secret(value: str | None) -> None:
    """Remembers a secret of this process: a key, a password, a token."""
    for secret in _spellings(value or ""):
        if len(secret) < SHORTEST or secret.lower() in _PLACEHOLDERS:
            continue

        for form in _forms_of(secret):
            _forms.setdefault(form[:TELLING], set()).add(form)


def keep_address(address: str | None) -> None:
    """Remembers the secrets in a URL: its password, and secret values of its query."""
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
    """Remembers the secrets in the environment: variables with telling names, and URLs."""
    for name, value in os.environ.items():
        # A path, for example of a file with credentials, is not itself a secret.
        if _HOLDS_SECRET.search(name.upper()) and not value.startswith("/"):
            keep_secret(value)

        keep_address(value)


PATH = "[path]"
"""Replacement in a package for the folders of a path."""
_REPLACED = re.compile(rf"{re.escape(REDACTED)}|{re.escape(PATH)}|\bhost-[0-9a-f]{{8}}\b")


def holds_replacement(text: str) -> bool:
    """Whether a secret, a path or a host was replaced in text."""
    return _REPLACED.search(text) is not None


_NUMBERS = frozenset({int, float, bool, type(None)})
"""Types of JSON values that contain no string."""


def redacted(text: str) -> str:
    """`text` without the known secrets, and without what looks like one."""
    return without_shapes(without_known(text))


def without_known(text: str) -> str:
    """`text` without the known secrets in all their spellings, otherwise unchanged."""
    # Searched for by their first characters, which the spellings of a secret share: most texts
    # contain none of them, and are searched only for these.
    for beginning, forms in _forms.items():
        if beginning in text:
            text = _remove_forms(text, beginning, forms)

    return text


def without_known_in(value: Any) -> Any:
    """A JSON value (a row, a summary, a reply) without known secrets in its strings."""
    return map_strings(value, without_known) if _forms else value


def redacted_in(value: Any) -> Any:
    """A JSON value without anything in its strings that looks like a secret.

    For values without texts of the data.
    """
    return map_strings(value, redacted)


def looks_secret(text: str) -> bool:
    """Whether a string contains a known secret, or something that looks like one."""
    return redacted(text) != text


def without_userinfo(address: str) -> str:
    """A URL safe to show and store: without user, password and query."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return address

    location = rest.partition("?")[0].partition("#")[0]
    if "@" in location:
        location = location.rpartition("@")[2]

    return f"{scheme}://{location}"


def strings_in(value: Any) -> Iterator[str]:
    """The strings in a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from strings_in(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from strings_in(part)


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with each of its strings changed, including the names of members."""
    # Numbers are checked first: a row has a ranking of hundreds of them.
    if type(value) in _NUMBERS:
        return value

    if isinstance(value, str):
        return change(value)

    if isinstance(value, Mapping):
        return {
            (change(name) if isinstance(name, str) else name): map_strings(item, change)
            for name, item in value.items()
        }

    if isinstance(value, list | tuple):
        return [map_strings(item, change) for item in value]

    return value


def _spellings(value: str) -> Iterator[str]:
    """The secrets in a value: itself, and the token of a header's value, bare and decoded."""
    yield value
    yield value.strip()
    scheme, _, token = value.strip().partition(" ")

    if not token or scheme.lower() not in ("bearer", "basic", "token", "apikey", "key"):
        return

    yield token.strip()
    if scheme.lower() != "basic":
        return

    try:
        plain = base64.b64decode(token.strip(), validate=True).decode()
    except ValueError:
        return

    yield plain
    yield plain.partition(":")[2]


def _forms_of(secret: str) -> Iterator[str]:
    """The secret as written in JSON, Python, HTML, URLs, hexadecimal and base64."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield html.escape(secret)
    yield from (quote(secret), quote(secret, safe=""), quote_plus(secret))
    raw = secret.encode("utf-8", "surrogatepass")
    yield raw.hex()

    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        # The secret may begin at any of the three positions of a base64 group. Only the digits that
        # depend on the secret alone are searched for.
        for before in range(3):
            digits = encode(b"\0" * before + raw).decode().rstrip("=")
            certain = digits[-(-8 * before // 6) : len(digits) - ((before + len(raw)) % 3 > 0)]
            if len(certain) >= SHORTEST:
                yield certain


def _remove_forms(text: str, beginning: str, forms: Iterable[str]) -> str:
    """`text` without each occurrence of the secrets' `forms`, whole or cut short."""
    parts, done = [], 0
    while (start := text.find(beginning, done)) >= 0:
        end = max(_match_end(text, start, form) for form in forms)
        parts += [text[done:start], REDACTED]
        done = end

    return "".join([*parts, text[done:]])


def _match_end(text: str, start: int, form: str) -> int:
    """End of the part of the text, beginning at `start`, that matches `form`."""
    # A binary search: a secret may be long, and the text may match only its beginning.
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
