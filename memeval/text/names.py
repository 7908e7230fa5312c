"""Names of files and folders.

An id from data, a reply or a user is never a file name itself: its digest is.
"""

import hashlib
import re

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_DEVICES = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]")

DIGEST_LENGTH = 24
"""Hexadecimal digits: 96 bits, so that no two ids in one folder collide."""


def digest_name(identifier: str) -> str:
    """A name for the file or folder that belongs to `identifier`: the same for the same id, and
    safe on every file system.
    """
    return text_digest(identifier)[:DIGEST_LENGTH]


def text_digest(text: str) -> str:
    """sha256 of a string in hexadecimal. Data may contain halves of surrogate pairs, which strict
    UTF-8 refuses.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_name(name: str) -> str:
    """A name safe for a path: `name` if it is plain, otherwise its digest.

    For names that users choose, such as a data set's.
    """
    # Windows takes `con` or `nul` for a device, in any folder.
    plain = _PLAIN.fullmatch(name) and not _DEVICES.fullmatch(name)
    return name if plain else digest_name(name)
