"""Saved memories in a folder or an object store that several machines share, through fsspec.

A memory's files are uploaded one by one, and its manifest last: without it there is no memory. A
memory that is fetched is verified like one that was saved here.
"""

import asyncio
import json
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path, PurePosixPath
from threading import Timer
from typing import Any, TypeVar

from memeval.errors import StorageError, UserError
from memeval.process.leftovers import remove, temporary_name
from memeval.results.files import MANIFEST
from memeval.results.private import make_folder
from memeval.text.shown import one_line

T = TypeVar("T")
QUIET_S = 5.0
"""Seconds until the first message while a store is contacted."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 10.0
"""Seconds between two attempts to reach the store, at first and at most."""


class SharedMemories:
    """The memories at one URL. Key and case identify them, regardless of their system's name."""

    def __init__(
        self, url: str, patience_s: float, say: Callable[[str], None] | None = None
    ) -> None:
        """Raises `UserError` if the URL can't be used; `say` reports waits."""
        import fsspec  # type: ignore[import-untyped]

        self.url, self._patience_s, self._say = url, patience_s, say
        # A library may retry for a minute without any message.
        notice = Timer(QUIET_S, lambda: say and say(f"waiting for the memories at {url}"))
        notice.start()
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
            self._files.makedirs(self._root, exist_ok=True)
            # An object store has no folders, so only this call contacts it.
            self._files.exists(self._root)
        except Exception as error:
            # Each file system raises its own errors.
            raise UserError(
                f"store.memories={url} can't be used: {one_line(error, 300)}",
                "a folder:         store.memories=file:///shared/memories",
                "an object store:  store.memories=s3://bucket/memories",
                "its library:      pip install 'memeval-bench[s3]'",
            ) from error
        finally:
            notice.cancel()
            notice.join()

    async def fetch(self, folder: Path, key: str) -> bool:
        """Fetches a memory into `folder`; False if it does not exist. Raises `StorageError`."""
        address = self._address(folder, key)
        return await self._retry(lambda: self._fetch(folder, address))

    async def put(self, folder: Path, key: str) -> None:
        """Uploads the memory saved in `folder`. Raises `StorageError`."""
        address = self._address(folder, key)
        await self._retry(lambda: self._put(folder, address))

    async def manifest(self, folder: Path, key: str) -> bytes | None:
        """The manifest of a memory; None if it does not exist. Raises `StorageError`."""

        def read() -> bytes | None:
            try:
                return bytes(self._files.cat_file(f"{self._address(folder, key)}/{MANIFEST}"))
            except FileNotFoundError:
                return None

        return await self._retry(read)

    async def digests(self, folder: Path, key: str) -> dict[str, str]:
        """The sha256 of each file of a memory, by its name. Raises `StorageError`."""
        address = self._address(folder, key)

        def read() -> dict[str, str]:
            digests = {}
            for path in self._files.find(address):
                # Some file systems put a slash, or the protocol, in front of their paths.
                name = str(path)[str(path).index(address) + len(address) + 1 :]
                digests[name] = sha256(self._files.cat_file(path)).hexdigest()

            return digests

        return await self._retry(read)

    async def names(self) -> list[tuple[str, str]]:
        """Key and name of each memory. Raises `StorageError` if the store stays unreachable."""

        def read() -> list[tuple[str, str]]:
            # fsspec caches listings: it would miss what other machines have uploaded since.
            self._files.invalidate_cache()
            memories = set()
            for path in self._files.find(self._root):
                parts = str(path)[str(path).index(self._root) + len(self._root) :].split("/")
                # Of `/<key>/<case>/<file>`: shorter paths are other people's files.
                if len(parts) > 3:
                    memories.add((parts[1], parts[2]))

            return sorted(memories)

        return await self._retry(read)

    def _address(self, folder: Path, key: str) -> str:
        return f"{self._root.rstrip('/')}/{key}/{folder.name}"

    def _fetch(self, folder: Path, address: str) -> bool:
        try:
            content = self._files.cat_file(f"{address}/{MANIFEST}")
        except FileNotFoundError:
            return False

        names = _names_in(content)
        if names is None:
            return False

        temporary = temporary_name(folder, "fetched")
        try:
            make_folder(temporary)
            for name in names:
                make_folder((temporary / name).parent)
                self._files.get_file(f"{address}/{name}", str(temporary / name))

            # The manifest that named the files: the current one may belong to newer ones.
            (temporary / MANIFEST).write_bytes(content)
            temporary.replace(folder)
        except FileNotFoundError:
            return False  # it is being replaced by another machine
        finally:
            remove(temporary)

        return True

    def _put(self, folder: Path, address: str) -> None:
        names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
        # The manifest comes last: a reader that finds it finds all files.
        for name in sorted(names, key=lambda name: name.as_posix() == MANIFEST):
            target = f"{address}/{name.as_posix()}"
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._files.put_file(str(folder / name), target)

    async def _retry(self, work: Callable[[], T]) -> T:
        """The result of `work`, tried again while the store is unreachable."""
        began, wait_s = time.monotonic(), FIRST_WAIT_S
        has_said_so = False
        while True:
            try:
                return await asyncio.to_thread(work)
            except PermissionError as error:
                refusal = f"store.memories={self.url} refused: {one_line(error, 300)}"
                raise StorageError(refusal) from error
            except Exception as error:
                # Each file system raises its own errors; most don't say whether they are temporary.
                reason = one_line(error, 300)
                if time.monotonic() - began >= self._patience_s:
                    raise StorageError(
                        f"store.memories={self.url} was unreachable for {self._patience_s:g} s "
                        f"(store.patience_s): {reason}"
                    ) from error

            if self._say and not has_said_so:
                self._say(f"waiting for the memories at {self.url}: {reason}")

            has_said_so = True
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)


def _names_in(manifest: bytes) -> list[str] | None:
    """The files that a manifest names; None if it is damaged, or a file is not below its folder."""
    try:
        content: Any = json.loads(manifest)
        names = list(content["files"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None

    return names if all(map(_is_below, names)) else None


def _is_below(name: object) -> bool:
    # The manifest comes from elsewhere: its names must not lead out of the memory's folder.
    if not isinstance(name, str) or not name or "\\" in name or "\0" in name:
        return False

    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts
