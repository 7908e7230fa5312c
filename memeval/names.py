"""Names of files and folders. An id that comes from data, a reply or a user never names one: a digest of it does."""

from __future__ import annotations

import hashlib

DIGEST_LENGTH = 24
"""Hexadecimal digits: 96 bits, so that no two ids of one folder meet."""


def digest_name(identifier: str) -> str:
    """A name for the file or folder that belongs to `identifier`: the same for the same id, and safe on every file system."""
    return hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]
