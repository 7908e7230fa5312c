"""The form of a package: its entries, their order, their limits, and the manifest."""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from memeval.records import Count
from memeval.results import CONFIG_FILE, RECORDS_FILE, RUN_FILE, as_json
from memeval.results.fields import as_plain
from memeval.text.names import text_digest

FORMAT = 1
SUFFIX = ".memeval"
NAMESPACE = "memeval"
"""Namespace of the signatures, so that a signature made for another purpose is not valid here."""
MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
ENVIRONMENT, REGISTER, TEXTS = "environment.json", "register.json", "texts.jsonl"
ANSWERS, VERDICTS, INGESTS = "answers.jsonl", "verdicts.jsonl", "ingest.jsonl"
OF_RUN = (RUN_FILE, CONFIG_FILE, RECORDS_FILE, ANSWERS, VERDICTS, INGESTS)
"""The entries of each run, in their order."""

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of each entry, so that the same runs give the same bytes."""
UNIX, PRIVATE = 3, 0o600 << 16
"""The operating system that an entry states as its origin, and its permissions there."""
ZIP_VERSION = 20
"""Version of the zip format, of the writer and required of the reader."""

MAX_ENTRIES = 3_000
LARGEST_SMALL = 16 * 2**20
"""Maximum bytes of an entry that is read as one JSON object."""
LARGEST_ENTRY = 2**30
LARGEST = 4 * 2**30
"""Maximum bytes of all entries together."""
LARGEST_CONFIG, DEEPEST_CONFIG = 2**20, 50
"""Maximum bytes and levels of a config.yaml."""

_WITHHELD = re.compile(r"sha256:[0-9a-f]{64}")
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Line = Annotated[str, Meta(max_length=1_000)]
PackedKey = Annotated[str, Meta(pattern=r"^(?!\.)[A-Za-z0-9._-]{1,100}\Z")]
"""The key of a run, which names a folder: it must not lead elsewhere."""


class PackageEntry(Struct, frozen=True, forbid_unknown_fields=True):
    sha256: Digest
    size: Count
    """Bytes, unpacked."""


class PackedData(Struct, frozen=True, forbid_unknown_fields=True):
    """A data set that runs of a package asked about."""

    name: Line
    sha256: Line
    licence: Line
    texts: bool
    """Whether its texts are in the package; otherwise only their digests are."""


class PackageManifest(Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    memeval: Line
    """The version that packed it."""
    code: Line
    """Digest of the code that made the figures."""
    who: Line
    """Author of the package, in their own words."""
    licence: Line
    """Licence of the rows, in the author's words."""
    supersedes: Line
    """Id of the package that this one replaces; empty for none."""
    runs: tuple[PackedKey, ...]
    data: tuple[PackedData, ...]
    protocols: Mapping[str, Mapping[str, Any]]
    """Conditions that two runs must share to be compared, by run key."""
    replaced: Mapping[str, Count]
    """Numbers of replaced secrets, paths and hosts, by kind."""
    entries: Mapping[str, PackageEntry]
    """All entries except the manifest and its signature, in order."""


def entry_of(key: str, name: str) -> str:
    return f"runs/{key}/{name}"


def withheld(text: str) -> str:
    """Placeholder in a package for a text that may not be redistributed."""
    return f"sha256:{text_digest(text)}"


def is_withheld(text: str) -> bool:
    """Whether text is replaced by its digest."""
    return _WITHHELD.fullmatch(text) is not None


def manifest_bytes(manifest: PackageManifest) -> bytes:
    """The entry of a manifest, as `pack` writes it."""
    return (as_json(as_plain(manifest), indent=1) + "\n").encode()


def package_id(manifest: bytes) -> str:
    """Sixteen hex digits of the manifest's digest, which identify the package and all entries."""
    return hashlib.sha256(manifest).hexdigest()[:16]


def is_package_id(text: str) -> bool:
    """Whether a string could be the id of a package."""
    return re.fullmatch(r"[0-9a-f]{16}", text) is not None
