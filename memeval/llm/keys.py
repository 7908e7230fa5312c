"""The API keys for the URLs that are called."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from memeval.errors import UserError
from memeval.text.redaction import keep_secret

NO_KEY = "none"
"""Sent to an endpoint on this machine if no key is set."""

OFFLINE = "or offline:  llm=extractive embedder=tfidf"
OFFLINE_BY_OPTION = {
    "llm.judge": "or offline:  judge=keyword",
    "reranker=endpoint": "or offline:  reranker=lexical",
}
"""Hints for a command without a key, or without that of one option."""


def key_of(variable: str, address: str, option: str, *hints: str) -> str:
    """The key in a variable. Raises `UserError` if unset, unless the URL is on this machine."""
    if os.environ.get(variable):
        return value_of(variable, option)

    if urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1"):
        return NO_KEY

    raise UserError(
        f"{option} needs a key for {address}: the environment variable {variable} is not set",
        f"set it:      export {variable}=...",
        *hints,
    )


def key_for(variable: str, address: str, option: str, headers: Mapping[str, str] | None) -> str:
    """The key for a URL; `headers` may contain a gateway's key instead."""
    if headers and not os.environ.get(variable):
        return NO_KEY

    return key_of(variable, address, option, OFFLINE_BY_OPTION.get(option, OFFLINE))


def headers_of(variables: Mapping[str, str] | None, option: str) -> dict[str, str]:
    """Headers with their values from the environment. Raises `UserError` for an unset variable."""
    headers = {}
    for header, variable in (variables or {}).items():
        headers[header] = value_of(variable, f"{option}.{header}")

    return headers


def value_of(variable: str, option: str) -> str:
    """The value of a variable. Raises `UserError` if it is unset or can't be sent in a header; the
    message does not show the value.
    """
    value = os.environ.get(variable)
    if not value:
        raise UserError(
            f"{option}: the environment variable {variable} is not set",
            f"set it:      export {variable}=...",
        )

    # Done first: this removes the value from every text that leaves the process.
    keep_secret(value)
    stripped = value.strip()
    if not stripped.isascii() or not stripped.isprintable():
        raise UserError(
            f"the environment variable {variable} contains characters that are not allowed in a "
            "header: was something else copied with the key?"
        )

    return stripped
