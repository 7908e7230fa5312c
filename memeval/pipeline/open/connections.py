"""Open endpoints (one per URL and key) and caches, shared by the cells of a command."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from memeval.config.paths import cache_dir, outputs_dir
from memeval.llm.breaker import Breaker
from memeval.llm.budget import Budget
from memeval.llm.cache_contract import ReplyCache
from memeval.llm.disk import Disk
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.llm.load import Load, sum_of
from memeval.llm.slots import slots_at, slots_of_process
from memeval.records import Usage
from memeval.store.contract import FileStore, Store

Loads = Mapping[tuple[object, ...], Load]
"""The load of each endpoint, by all settings that distinguish it from others."""


def free_slots(loads: Loads) -> None:
    """Stops counting the slots of a process that has ended."""
    for load in loads.values():
        load.slots = load.under_way = 0


class FailedMemory(Struct, frozen=True):
    """A memory that could not be built."""

    error: str
    usage: tuple[Usage, ...]
    """The calls of its ingest, added up by role and model."""
    origin: str
    """Key of the run that paid for them."""


class Connections:
    """Opens each requested connection once."""

    def __init__(
        self,
        say: Callable[[str], None] | None = None,
        store: Store | None = None,
        budget: Budget | None = None,
        processes: int = 1,
        loads_elsewhere: Callable[[], Iterable[Loads]] = tuple,
    ) -> None:
        """`say` gets messages for the user; `store` keeps replies and leases, by default in files.

        `budget` bounds all calls; `processes` share the limit of each endpoint, and
        `loads_elsewhere` returns the loads in other processes that make calls for this one.
        """
        self._say, self.budget = say, budget
        self._processes = processes
        self._position: int | None = None
        self.breaker = Breaker(Disk((cache_dir(), outputs_dir())))
        self.store = store or FileStore(cache_dir())
        self.failed_memories: dict[Path, FailedMemory] = {}
        """By folder: cells that share a memory don't pay for it again."""
        self._loads_elsewhere = loads_elsewhere
        self._endpoints: dict[tuple[object, ...], Endpoint] = {}
        self._limits: dict[tuple[object, ...], int] = {}
        """The lowest limit requested at each endpoint, over all processes."""
        self._caches: dict[str, ReplyCache] = {}

    def own_loads(self) -> Loads:
        """The loads of this process's endpoints."""
        # Copied: a display calls this from another thread.
        return {reach: endpoint.load for reach, endpoint in list(self._endpoints.items())}

    def loads(self) -> Sequence[Load]:
        """The load of each endpoint, over all processes that call it."""
        by_reach: dict[tuple[object, ...], list[Load]] = {}
        for loads in (self.own_loads(), *self._loads_elsewhere()):
            for reach, load in loads.items():
                by_reach.setdefault(reach, []).append(load)

        sums = list(map(sum_of, by_reach.values()))
        if len(sums) > 1:
            for load, (url, *_) in zip(sums, by_reach, strict=True):
                load.url = str(url)

        return sums

    def endpoint(self, settings: EndpointSettings) -> Endpoint:
        """The endpoint at a URL with a key and headers; the lowest requested limit applies.

        Raises `UserError` if this process's part of the limit is less than one request.
        """
        requested = settings.max_concurrency
        limit = self._part_of(requested, settings.base_url)
        settings = replace(settings, max_concurrency=limit)
        reach = (
            settings.base_url,
            settings.api_key,
            tuple(sorted(settings.headers.items())),
            settings.api_version,
            # Parts with different waiting times need separate clients, and share the slots below.
            settings.timeout_s,
            settings.patience_s,
            settings.max_retries,
        )
        self._limits[reach] = min(requested, self._limits.get(reach, requested))
        opened = self._endpoints.get(reach)
        if opened is None:
            opened = self._endpoints[reach] = Endpoint(
                settings,
                say=self._say,
                slots=slots_at(settings.base_url, settings.api_key),
                budget=self.budget,
                breaker=self.breaker,
            )
        elif limit < opened.settings.max_concurrency:
            opened.limit(limit)

        return opened

    def share(self, processes: int, position: int) -> None:
        """Lets this many processes share the limit of each endpoint from now on; `position` is the
        position of this process among them.
        """
        self._processes, self._position = processes, position
        for reach, endpoint in self._endpoints.items():
            endpoint.limit(self._part_of(self._limits[reach], endpoint.settings.base_url))

    def _part_of(self, limit: int, address: str) -> int:
        return slots_of_process(limit, self._processes, address, position=self._position)

    def cache(self, name: str) -> ReplyCache:
        if name not in self._caches:
            self._caches[name] = self.store.cache(name, self._say)

        return self._caches[name]

    async def aclose(self) -> None:
        for endpoint in self._endpoints.values():
            await endpoint.aclose()

        for cache in self._caches.values():
            cache.close()
