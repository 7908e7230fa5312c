"""Copies saved memories between a home and the URL that machines share."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from memeval.results.files import MANIFEST, file_digests, memory_folders
from memeval.results.private import make_folder
from memeval.store.inventory import Copied, CopyDirection, Home, StoredItem, StoredKind, digest_of
from memeval.store.memories import SharedMemories

COPIED = "copied"
"""Folder of memories from elsewhere: only the key identifies a memory."""
_KEY = re.compile(r"[0-9a-f]{8,64}")
_CASE = re.compile(r"[\w.-]{1,200}")


def copy_memories(
    home: Home,
    items: Sequence[StoredItem],
    shared: SharedMemories,
    direction: CopyDirection,
    *,
    do_it: bool,
) -> Iterator[Copied]:
    """Copies saved memories to or from a shared URL. Raises `StorageError`."""
    if direction is CopyDirection.TO_DATABASE:
        for item in items:
            if item.kind is StoredKind.MEMORIES and (item.paths[0] / MANIFEST).is_file():
                yield asyncio.run(_put_memory(item.paths[0], item.key, shared, do_it=do_it))
    else:
        for key, case in asyncio.run(shared.names()):
            # The names come from elsewhere: none of them may lead out of the home.
            if _KEY.fullmatch(key) and _CASE.fullmatch(case) and case not in (".", ".."):
                yield asyncio.run(_fetch_memory(home, key, case, shared, do_it=do_it))


async def _put_memory(folder: Path, key: str, shared: SharedMemories, *, do_it: bool) -> Copied:
    digests = file_digests(folder)
    name = f"{key}/{folder.name}"
    shared_manifest = await shared.manifest(folder, key)
    if shared_manifest == (folder / MANIFEST).read_bytes():
        return Copied(StoredKind.MEMORIES, name, new=0, present=len(digests))
    if shared_manifest is not None:
        # Another machine built it: memories with one key are interchangeable; the first one stays.
        return Copied(StoredKind.MEMORIES, name, new=0, present=1)
    if not do_it:
        return Copied(StoredKind.MEMORIES, name, new=len(digests), present=0)

    await shared.put(folder, key)
    return _compare(name, digests, await shared.digests(folder, key))


async def _fetch_memory(
    home: Home, key: str, case: str, shared: SharedMemories, *, do_it: bool
) -> Copied:
    name = f"{key}/{case}"
    folders = [*memory_folders(home.prepared, key), home.prepared / COPIED / f"memory-{key}"]
    folder = folders[0] / case
    if (folder / MANIFEST).is_file():
        return Copied(StoredKind.MEMORIES, name, new=0, present=1)

    remote = await shared.digests(folder, key)
    if MANIFEST not in remote:
        return Copied(StoredKind.MEMORIES, name, new=0, present=0)
    if not do_it:
        return Copied(StoredKind.MEMORIES, name, new=len(remote), present=0)

    make_folder(folder.parent)
    if not await shared.fetch(folder, key):
        return Copied(StoredKind.MEMORIES, name, new=0, present=0, problem="it can't be fetched")

    return _compare(name, remote, file_digests(folder))


def _compare(name: str, source: dict[str, str], target: dict[str, str]) -> Copied:
    """The result of copying a memory. Additional files in the target are not compared."""
    problem = ""
    if not source.items() <= target.items():
        problem = "the copy can't be read back"

    return Copied(
        StoredKind.MEMORIES,
        name,
        new=len(source),
        present=0,
        digest=digest_of(f"{file} {source[file]} ".encode() for file in sorted(source)),
        problem=problem,
    )
