"""Checks URLs, environment variable names and headers; above all, none may contain a secret.

Settings are written to config files, parameters, reports and tracking servers. So secrets come only
from the environment. The error for a setting that contains a secret names the setting, but does not
repeat its value.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from memeval.config.roles import OTHERS
from memeval.errors import UserError
from memeval.text.redaction import SHORTEST, keep_address, keep_secret, looks_secret
from memeval.text.shown import one_line

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_SETTING = re.compile(
    r"(?:^|[._])(?:api_?key|key|token|password|passwd|secret|authorization|credentials?)$"
)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LABEL = re.compile(r"[^\s.\x00-\x20\x7f\"'<>\\^`{|}%]{1,63}")
_ADDRESS_SETTING = re.compile(r"(?:^|[._])(?:url|uri|host|address|endpoint)$")
_OVERRIDE = re.compile(r"(?P<mark>~|\+{0,2})(?P<key>[^=\s+][^=\s]*)=(?P<value>.*)", re.DOTALL)
_PAIR = re.compile(r"[\"']?([^\s\"':,{}]+)[\"']?\s*:\s*[\"']?([^\"',{}]*)")

_ENDPOINT_GROUPS = ("llm.", "embedder.", "reranker.")
"""Settings of endpoints that are called."""

BY_HEADER = (
    "for a gateway's key, name its environment variable:  "
    "llm.headers={api-key: MY_GATEWAY_KEY} (or embedder.headers, reranker.headers)"
)
BY_VARIABLE = "for example:  export OPENAI_API_KEY=...  and {option}=OPENAI_API_KEY"
BY_LIBPQ = "for user and password:  export PGUSER=... PGPASSWORD=...  or ~/.pgpass"
BY_ENVIRONMENT = "for keys and endpoints:  environment variables such as AWS_ACCESS_KEY_ID"
BY_TRACKING = "for a password:  export MLFLOW_TRACKING_URI=...  and leave tracking.uri out"


def check_address(option: str, address: str, *hints: str) -> None:
    """Raises `UserError` unless it is an http(s) URL without user, password, query or fragment."""
    check_plain(option, address, *(hints or (BY_HEADER,)))
    example = "for example:  http://localhost:8000/v1"
    if not address.lower().startswith(("http://", "https://")):
        raise UserError(f"{option} must be a URL that begins with http:// or https://", example)

    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise UserError(f"{option} is not a URL: host or port can't be read", example) from None

    # An IPv6 address has no labels, and a host name may end in the dot of the root.
    is_host = ":" in host or all(map(_LABEL.fullmatch, host.removesuffix(".").split(".")))
    is_clean = address.isprintable() and " " not in address and "\\" not in address
    if not is_clean or len(host) > 253 or not is_host or port == 0:
        raise UserError(f"{option} is not a URL: host or port can't be read", example)


def check_plain(option: str, address: str, *hints: str) -> None:
    """Raises `UserError` for a URL with user, password or query, which would be published."""
    refused = {"@": "a user name or a password", "?": "a query", "#": "a fragment"}
    for mark, secret in refused.items():
        if mark in address:
            # After this, it is removed from all output.
            keep_address(address)
            raise UserError(
                f"{option} contains {secret}, but settings are published with the run", *hints
            )


def check_tracking(option: str, address: str) -> None:
    """Raises `UserError` if the URL of a store contains a user, a password or a query."""
    if "://" in address and not address.startswith(("sqlite:", "file:")):
        check_plain(option, address, BY_TRACKING)


def check_store(url: str | None, memories: str | None) -> None:
    """Raises `UserError` for an invalid URL of the store."""
    if url is not None:
        _check_database(url)
    if memories is None:
        return

    check_plain("store.memories", memories, BY_ENVIRONMENT)
    # The form of a URL that fsspec accepts.
    protocol, mark, path = memories.partition("://")
    is_url = mark and path and protocol.isalnum()
    if not is_url or not memories.isascii() or not memories.isprintable():
        raise UserError(
            "store.memories must be a URL such as file:///shared/memories or s3://bucket/memories"
        )


def _check_database(address: str) -> None:
    example = "for example:  postgresql://localhost:5432/memeval"
    check_plain("store.url", address, BY_LIBPQ)
    if not address.startswith("postgresql://"):
        raise UserError("the store's URL must begin with postgresql://", example)

    try:
        parts = urlsplit(address)
        sound = bool(parts.hostname) and parts.port != 0 and len(parts.path) > 1
    except ValueError:
        sound = False

    if not sound or not address.isascii() or not address.isprintable() or " " in address:
        raise UserError("the store's URL must name a host and a database", example)


def check_variable(option: str, name: Any) -> None:
    """Raises `UserError` unless this can be a variable's name. Not shown: it may be the key."""
    message = f"{option} must be the name of an environment variable, not the secret itself"
    message += " (a name in lower case must be set in the environment)"
    hint = BY_VARIABLE.format(option=option)
    if not isinstance(name, str) or not name.strip():
        raise UserError(f"{option} is empty: it must be the name of an environment variable", hint)
    if name in os.environ:
        return

    # `MY_KEY_2` is the name of a variable that is not set yet. A long string of capitals and digits
    # without an underscore is more likely a key.
    has_digit = any(map(str.isdigit, name))
    conventional = name.isupper() and ("_" in name or not has_digit or len(name) < 16)
    if (
        not _VARIABLE.fullmatch(name)
        or looks_secret(name)
        # The value is most likely the key itself, pasted in place of the variable's name.
        or name in os.environ.values()
        or not (conventional or len(name) < 8)
    ):
        # After this, it is removed from all output, including a traceback of this error.
        keep_secret(name)
        raise UserError(message, hint)


def check_headers(option: str, headers: Any) -> None:
    """Raises `UserError` for an invalid header name, or an invalid variable name."""
    if not isinstance(headers, Mapping):
        raise UserError(
            f"{option} must map header names to names of environment variables", BY_HEADER
        )

    for header, variable in headers.items():
        if not _HEADER.fullmatch(str(header)) or looks_secret(str(header)):
            keep_secret(str(variable))
            raise UserError(f"{option} has a key that is not a valid header name", BY_HEADER)

        check_variable(f"{option}.{header}", variable)


MAY_LACK_A_KEY = (*(f"{role}." for role in OTHERS), "embedder.", "system.api_key_env")
"""Settings that may lack a key: the URL may have one, or the service may need none."""


def check_secrets(leaves: Mapping[str, Any]) -> None:
    """Raises `UserError` for a setting of any group that contains a secret."""
    for path, value in leaves.items():
        # Checked first: the name of a header may end like a setting in the conditions below.
        option, mark, header = path.partition(".headers.")
        if mark:
            check_headers(f"{option}.headers", {header: value})
        elif path.endswith("_env"):
            if value is not None or not path.startswith(MAY_LACK_A_KEY):
                check_variable(path, value)
        elif path.endswith(".headers"):
            if value is not None:
                check_headers(path, value)
        elif path == "tracking.uri":
            check_tracking(path, str(value or ""))
        elif path == "store.url":
            check_plain(path, str(value or ""), BY_LIBPQ)
        elif path == "store.memories":
            check_plain(path, str(value or ""), BY_ENVIRONMENT)
        else:
            for text in _texts(value):
                _check_text(path, text)


def _check_text(path: str, text: str) -> None:
    hint = "put secrets into environment variables"
    if path.startswith(_ENDPOINT_GROUPS):
        hint = BY_HEADER

    if _SECRET_SETTING.search(path) and (
        len(text) >= SHORTEST or path.startswith((*_ENDPOINT_GROUPS, "tracking."))
    ):
        keep_secret(text)
        if path.startswith(_ENDPOINT_GROUPS):
            hint = BY_VARIABLE.format(option=f"{path.rpartition('.')[0]}.api_key_env")

        raise UserError(
            f"{path} must not contain a secret: name its environment variable instead", hint
        )

    if _ADDRESS_SETTING.search(path) and ("://" in text or "@" in text):
        check_plain(path, text, hint)

    if looks_secret(text):
        keep_address(text)
        raise UserError(
            f"{path} looks like a secret, but settings are published with the run", hint
        )


def check_overrides(words: list[str]) -> None:
    """Raises `UserError` for a word that contains a secret, before Hydra writes it anywhere, and
    for one without a name, or that Hydra only takes from a file.
    """
    for word in words:
        if word.lstrip("+").startswith("hydra.sweeper.params."):
            raise UserError(
                "hydra.sweeper.params works only in files",
                "on the command line, give several values:  python -m memeval -m top_k=5,10",
            )

        override = _OVERRIDE.fullmatch(word)
        if override is None:
            if not word.startswith("-") and looks_secret(word):
                keep_address(word)
                raise UserError(
                    "an argument on the command line looks like a secret",
                    "put secrets into environment variables",
                )
            if word.lstrip("+~").startswith("="):
                raise UserError(f"'{one_line(word)}' names no setting", "for example:  system=bm25")

            continue

        key, value = override["key"].partition("@")[0], override["value"]
        for path, text in _assignments(key, value):
            # An interpolation is checked once it is resolved.
            if "${" not in text:
                check_secrets({path: text})
            elif looks_secret(text):
                raise UserError(
                    f"{path} looks like a secret, but settings are published with the run",
                    BY_HEADER,
                )


def _assignments(key: str, value: str) -> Iterator[tuple[str, str]]:
    """Each value that an override sets, with the path of the setting."""
    inner = value.strip()
    if inner.startswith("{"):
        for name, part in _PAIR.findall(inner):
            yield f"{key}.{name}", part.strip()
    elif key.endswith("_env") or key.endswith(".headers") or ".headers." in key:
        for part in map(str.strip, inner.split(",")):
            if part not in ("null", ""):
                yield key, part.strip("'\"")

        if inner in ("", "''", '""'):
            yield key, ""
    elif inner not in ("null", ""):
        yield key, inner.strip("'\"[]()")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
