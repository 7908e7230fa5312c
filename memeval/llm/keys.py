"""The keys of addresses that are called."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from memeval.errors import UserError

NO_KEY = "none"
"""Sent to an endpoint on this very machine where no key is set."""


def key_of(variable: str, address: str, option: str, *hints: str) -> str:
    """The key in an environment variable. Raises `UserError` where it is unset, unless the address is on this very machine."""
    if key := os.environ.get(variable):
        return key
    if (urlsplit(address).hostname or "") in ("localhost", "127.0.0.1", "::1"):
        return NO_KEY
    raise UserError(
        f"{option} needs a key for {address}: the environment variable {variable} is not set", f"set it:      export {variable}=...", *hints
    )
