"""The interface of the reply cache for callers of models, whether it is a file or a database."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from msgspec import Struct

from memeval.llm.leases import Leases

T = TypeVar("T")

_log = logging.getLogger(__name__)


class CachedEntry(Struct, frozen=True):
    """A stored value and the run that paid for it."""

    value: bytes
    origin: str
    tokens: int | None = None
    """The entry's share of reported tokens; None if none were reported or the value has them."""


class Damage:
    """Reports damaged entries of a cache: the first immediately, their number at the end."""

    def __init__(self, name: str, say: Callable[[str], None] | None) -> None:
        """`name` is that of the cache. Without `say` the messages are logged."""
        self._name, self.say = name, say or _log.warning
        self._keys: set[str] = set()

    def note(self, key: str) -> None:
        """Notes a damaged entry; each key counts once."""
        if not self._keys:
            self.say(
                f"{self._name} had a damaged entry ({key[:12]}…): it was dropped and will be "
                "requested again"
            )

        self._keys.add(key)

    def close(self) -> None:
        """Reports the number of damaged entries if there were several."""
        if len(self._keys) > 1:
            self.say(
                f"{self._name} had {len(self._keys)} damaged entries: they were dropped and "
                "requested again"
            )

        self._keys.clear()


class ReplyCache(Protocol):
    """A cache that several processes share. Its methods raise `StorageError`."""

    async def call(self, work: Callable[[], T]) -> T:
        """The result of `work`, which uses the cache and must not block the event loop."""

    def get_all(self, keys: Iterable[str]) -> dict[str, CachedEntry]:
        """The sound entries under `keys`."""

    def keys(self) -> set[str]:
        """All keys."""

    def put_all(
        self, values: Mapping[str, bytes], origin: str, tokens: Mapping[str, int] | None = None
    ) -> None:
        """Stores all of `values` or none, each with its share of the reported `tokens`.

        The first writer of a key wins.
        """

    def delete(self, key: str) -> None:
        """Removes the entry under `key`."""

    def note_unsound(self, key: str) -> None:
        """Notes an entry that its reader can't use; its request will be paid for again."""

    def forget(self, key: str) -> None:
        """Removes the entry under `key` before it is next read, without blocking the caller."""

    def leases(self) -> Leases:
        """The leases of requests, shared by all users of this cache."""

    def close(self) -> None:
        """Closes the cache's open resources."""
