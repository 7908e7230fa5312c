"""Secrets stay in the process: every text that leaves it (a file, MLflow, the terminal) goes through `redacted` first."""

from __future__ import annotations

import re

REDACTED = "[redacted]"
"""What stands where a secret stood."""
SHORTEST = 8
"""Characters from which on a value is taken for a secret of its own; shorter ones occur in ordinary text."""

_known: set[str] = set()

# Shapes that keys of the usual providers have, tokens after "Bearer", and user names and passwords in addresses.
_KEY = r"(?:sk|pk|rk|hf|gsk|xai|nvapi|ghp|gho|ghs|glpat|xox[abpr])[-_][A-Za-z0-9_\-]{12,256}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_\-]{30,64}"
_LOOKS_SECRET = re.compile(
    rf"(?<![A-Za-z0-9])(?:{_KEY})"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/\-]{8,4096}=*"
    r"|(?<=://)[^\s/?#@\"']{1,512}(?=@)"
)


def keep_secret(value: str | None) -> None:
    """Remembers a secret of this process: a key, a password, a token."""
    if value and len(value) >= SHORTEST:
        _known.add(value)


def redacted(text: str) -> str:
    """`text` without the secrets that were remembered, and without what looks like one."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return _LOOKS_SECRET.sub(REDACTED, text)
