"""Workers on a Ray cluster, as the event loop of the sweep sees them.

Each unit is computed by one worker, which sends its rows as soon as they exist; this process stores
them like its own. So all records are written on one machine, and a dead worker loses only its open
calls.
"""

import asyncio
import atexit
import logging
import math
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, TypeVar

import ray as untyped_ray
from ray.exceptions import ActorDiedError, RayError

from memeval import __version__
from memeval.config.roles import lowest_limit
from memeval.errors import UserError, WorldError
from memeval.pipeline.execute.unit import Keeper, UnitDone, WorkUnit
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import Loads
from memeval.process import started
from memeval.runs.compute import ray_worker
from memeval.runs.compute.computing import State
from memeval.runs.compute.ray_computing import Start
from memeval.runs.compute.remote import DiedError, RemoteWorker, stop_workers
from memeval.runs.plan import PlannedCell
from memeval.text.shown import one_line

T = TypeVar("T")
ray: Any = untyped_ray
"""Untyped: only some of Ray's functions have annotations."""
TRIES = 4
"""Maximum workers that a unit is given to if one after the other dies, as nodes come and go."""
PATIENCE_S = 10.0
"""Seconds until a message reports that the sweep waits for the first worker."""
LOCAL_STORE = 2**28
"""Bytes of shared memory in a cluster that memeval starts."""
LONGEST_PARENT = 18
"""Maximum length of the path that the cluster's folder is in; else it is in /tmp, like Ray's own.
The path of a socket, 85 characters longer, may have 107, on macOS 103; its TMPDIR alone has 49.
"""


@dataclass(frozen=True)
class RaySettings:
    address: str | None
    """HOST:PORT of a running cluster, or `auto` for the one on this machine; None starts one."""
    workers: int | None
    """None: one per processor of the cluster."""
    cases: int | None
    """Open cases per worker; None spreads the sweep's open cases evenly."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment variables for each worker: paths and keys."""


class Cluster:
    """A connection to a Ray cluster, or to one that memeval starts on this machine."""

    def __init__(self, settings: RaySettings, cores: int) -> None:
        """Raises `UserError` if the cluster can't be used, `WorldError` if none can be started."""
        self._folder: Path | None = None
        # A program that is already connected keeps its connection and its settings.
        self._owns = not ray.is_initialized()
        if self._owns:
            self._start_ray(settings, cores)

        self.node: str = ray.get_runtime_context().get_node_id()

    def _start_ray(self, settings: RaySettings, cores: int) -> None:
        options: dict[str, Any] = {"address": settings.address}
        if settings.address is None:
            options = self._local_options(settings.workers or cores)

        # By default Ray logs its actions.
        logging.getLogger("ray").setLevel(logging.ERROR)
        on_sigterm = signal.getsignal(signal.SIGTERM)
        try:
            # The output of workers is in Ray's own logs: this terminal shows the sweep.
            ray.init(**options, log_to_driver=False, configure_logging=False, logging_level="ERROR")
        except (Exception, SystemExit) as error:
            # Ray raises many kinds of errors here, SystemExit included.
            self.close()
            if isinstance(error, SystemExit) and error.code == signal.SIGTERM:
                # Ray's own handler received the signal; memeval's stops the sweep.
                signal.signal(signal.SIGTERM, on_sigterm)
                signal.raise_signal(signal.SIGTERM)

            reason = f"{type(error).__name__}: {one_line(error, 300)}"
            if settings.address is None:
                raise WorldError(f"Ray could not be started on this machine: {reason}") from error

            raise UserError(
                f"the Ray cluster at {settings.address} can't be used: {reason}",
                "if it requires a token:  export RAY_AUTH_MODE=token  (~/.ray/auth_token)",
                "to start one:               ray start --head --port 6379",
            ) from error

        # Ray's own handler ends the process with a native stack trace.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_sigterm)

    def _local_options(self, cores: int) -> dict[str, Any]:
        """Ray's options for a cluster on this machine, in a new folder."""
        parent = tempfile.gettempdir()
        if len(parent) > LONGEST_PARENT:
            parent = "/tmp"

        self._folder = Path(tempfile.mkdtemp(prefix="memeval-ray-", dir=parent))
        # Ray's agents outlive a process that was killed. All of them refer to the folder.
        started.adopt_folder(self._folder)
        # Ctrl-C may arrive before the caller has this object and can close it.
        atexit.register(self.close)
        return {
            "address": "local",
            "num_cpus": cores,
            "include_dashboard": False,
            "object_store_memory": LOCAL_STORE,
            "_temp_dir": str(self._folder),
        }

    @property
    def nodes(self) -> int:
        return len([node for node in ray.nodes() if node["Alive"]])

    @property
    def processors(self) -> int:
        return int(ray.cluster_resources().get("CPU", 0))

    def close(self) -> None:
        """Disconnects, and ends a cluster that memeval started."""
        if self._owns and ray.is_initialized():
            ray.shutdown()

        atexit.unregister(self.close)
        if self._folder is not None:
            # Agents also outlive a cluster that was shut down.
            started.end_folder(self._folder)
            self._folder = None


class _RayWorker(RemoteWorker):
    def __init__(self, actor: Any, position: int, ahead_s: float) -> None:
        """`position` is its index among those that share a limit; `ahead_s` is how far this
        process's clock is ahead of the worker's.
        """
        super().__init__()
        self.position = position
        self.death = ""
        """The reason why it is gone, unless it was asked to end."""
        self._actor, self._ahead_s = actor, ahead_s
        self._receiving = _task(self._receive())

    def send(self, command: Any) -> None:
        self._actor.enqueue.remote(command)

    def note(self, state: State) -> None:
        """Stores the worker's state, with times converted to this process's clock."""
        for load in state.loads.values():
            if load.began is not None:
                load.began, load.ended = load.began + self._ahead_s, load.ended + self._ahead_s

        super().note(state)

    async def _receive(self) -> None:
        death = "its stream ended early"
        try:
            async for reference in self._actor.messages.options(num_returns="streaming").remote():
                for message in await reference:
                    self.receive(*message)
        except Exception as error:  # noqa: BLE001 - Ray's, or one of reading a message
            death = _reason(error)

        if not self.is_ending:
            self.death = death

        self.close()

    def disconnect(self) -> None:
        self._receiving.cancel()
        # If only its connection broke, it would keep its processor and continue making calls.
        ray.kill(self._actor)


class RayWorkers:
    def __init__(
        self,
        cluster: Cluster,
        cells: Mapping[int, Cell],
        settings: RaySettings,
        *,
        calls_here: bool,
    ) -> None:
        """`calls_here` says whether this process calls endpoints as well."""
        limits = [lowest_limit(cell.config) for cell in cells.values()]
        # Each worker has its part of an endpoint's limit: a worker without one would wait forever.
        most = min((limit for limit in limits if limit is not None), default=None)
        self.processes = settings.workers or max(1, cluster.processors)
        if most is not None:
            self.processes = min(self.processes, max(1, most - calls_here))

        self.say: Callable[[str], None] = lambda _: None
        self._cluster, self._settings = cluster, settings
        self._shares_store = next(iter(cells.values())).config.store.url is not None
        self.callers = self.processes + calls_here
        start = Start(version=__version__, cells=dict(cells), processes=self.callers)
        # Stored in Ray once: as an argument, all cells would be sent again to each worker.
        self._cells = ray.put(pickle.dumps(start, pickle.HIGHEST_PROTOCOL))
        # By value: a node can import memeval only after `begin` has set the path.
        ray.cloudpickle.register_pickle_by_value(ray_worker)
        self._class = ray.remote(num_cpus=1)(ray_worker.Worker)
        self._workers: list[_RayWorker] = []
        """Includes those that are gone: their retries still count."""
        self._positions = list(range(self.processes))
        """Those that no worker has: the first ones have the larger parts of a limit."""
        self._starting: set[asyncio.Task[None]] = set()
        self._waiting = 0
        """Units that wait for a worker."""
        self._change = asyncio.Event()
        self._failed_starts = 0
        """Workers in a row that died before they were ready."""
        self._error: Exception | None = None

    def takes(self, planned: PlannedCell) -> bool:
        """Whether a cell's units are computed by workers."""
        return planned.may_compute_elsewhere

    def loads(self) -> Iterable[Loads]:
        """The load of each worker on the endpoints."""
        return [worker.loads for worker in self._workers]

    @property
    def _active(self) -> list[_RayWorker]:
        return [worker for worker in self._workers if not worker.is_ending]

    async def compute(
        self, unit: Callable[[], WorkUnit], keeper: Keeper, is_last: Callable[[], bool]
    ) -> UnitDone:
        """The result of a unit, which is given to another worker if one dies.

        Raises `WorldError` if that happens too often, and `UserError` or `WorldError` if no worker
        can be started.
        """
        for tried in range(TRIES):
            worker = await self._free_worker()
            if tried:
                keeper.begin_again()

            try:
                with suppress(DiedError):
                    return await worker.compute(unit(), keeper)
            finally:
                self._wake()

        raise WorldError(f"{TRIES} workers died while computing the case: out of memory?")

    async def _free_worker(self) -> _RayWorker:
        """Waits for a worker that may take a unit: of several, the one with the fewest units."""
        while True:
            self._start_missing()
            if active := self._active:
                worker = min(active, key=lambda worker: worker.open_count)
                if worker.open_count < (self._settings.cases or self._even_share()):
                    return worker
            elif self._error is not None and not self._starting:
                raise self._error

            self._waiting += 1
            try:
                await self._change.wait()
            finally:
                self._waiting -= 1

    def _even_share(self) -> int:
        """Units that a worker may have open, so that some are left for those that are starting."""
        units = 1 + self._waiting + sum(worker.open_count for worker in self._active)
        return math.ceil(units / (len(self._active) + len(self._starting)))

    def _start_missing(self) -> None:
        # The reason why one worker can't start, such as a different version, affects all others as
        # well.
        if self._error is not None:
            return

        for _ in range(len(self._positions)):
            task = asyncio.create_task(self._start(heappop(self._positions)))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)
            task.add_done_callback(lambda _: self._wake())

    async def _start(self, position: int) -> None:
        """Starts a worker, as soon as the cluster has a processor for it."""
        actor = self._class.remote()
        variables = dict(self._settings.variables)
        # Both calls return immediately: the cluster may have no free processor for a long time.
        beginning = actor.begin.remote(
            self._cells, position, sys.path, variables, self._cluster.node
        )
        ready = _task(_value(beginning))
        try:
            await asyncio.wait({ready}, timeout=PATIENCE_S)
            if not ready.done() and not self._active:
                self.say("waiting for the first worker of the Ray cluster")

            reply = await ready
            self._check(reply)
        except asyncio.CancelledError:
            ray.kill(actor)  # else it would keep waiting for a processor
            raise
        except RayError as error:
            ray.kill(actor)
            heappush(self._positions, position)
            self._failed_starts += 1
            if self._failed_starts >= TRIES:
                self._error = WorldError(f"a Ray worker could not be started: {_reason(error)}")
        except UserError as error:
            ray.kill(actor)
            self._error = error
        else:
            # Processes of one machine share a clock.
            is_here = reply.node == self._cluster.node
            ahead_s = 0.0 if is_here else time.perf_counter() - reply.clock_s
            self._failed_starts = 0
            worker = _RayWorker(actor, position, ahead_s)
            worker.gone.add_done_callback(lambda _: self._lose(worker))
            self._workers.append(worker)

    def _check(self, reply: ray_worker.BeginReply) -> None:
        """Raises `UserError` for a worker that can't compute for this sweep."""
        if reply.problem:
            raise UserError(
                f"a Ray worker on {reply.host} can't be used: {one_line(reply.problem, 300)}",
                "on every node, install the same memeval and everything that the settings need",
            )
        if reply.node != self._cluster.node and not self._shares_store:
            raise several_nodes()

    def _lose(self, worker: _RayWorker) -> None:
        heappush(self._positions, worker.position)
        if worker.death:
            self.say(f"a Ray worker died ({worker.death}): other workers take over its open cases")

        self._wake()

    def _wake(self) -> None:
        """Has the tasks that wait for a worker look again."""
        self._change.set()
        self._change.clear()

    async def stop(self) -> None:
        """Stops the workers: they first release what they hold."""
        # With a shared store, a killed worker's requests stay leased until their leases expire.
        await stop_workers(self._workers, list(self._starting))

    def close(self) -> None:
        self._cluster.close()


def several_nodes() -> UserError:
    """The error for a cluster of several nodes whose workers have no shared store."""
    return UserError(
        "the Ray cluster has several nodes, but files are not shared between machines",
        "use:  store.url=postgresql://HOST/DATABASE  (and store.memories=..., reachable from "
        "all nodes)",
    )


def _task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task whose error is not reported if it is never awaited."""
    task = asyncio.ensure_future(work)
    # asyncio logs exceptions that were never retrieved.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def _value(reference: Any) -> Any:
    return await reference


def _reason(error: Exception) -> str:
    if isinstance(error, ActorDiedError):
        return "its process ended"

    return f"{type(error).__name__}: {one_line(error, 300)}"
