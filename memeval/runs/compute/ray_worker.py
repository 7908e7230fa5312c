"""A worker on a Ray cluster: the code that runs on the node.

This module is sent to the node by value, so it imports nothing of memeval before `begin` has set
the path.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

PATH_VARIABLES = ("MEMEVAL_HOME", "MEMEVAL_DATA_DIR")
"""Variables that set paths on a machine."""


@dataclass(frozen=True)
class BeginReply:
    """Reply of a worker to `begin`."""

    node: str
    host: str
    problem: str = ""
    """The reason why it can't compute; empty if it can."""
    clock_s: float = field(default_factory=time.perf_counter)
    """Time by the worker's clock, which differs from node to node."""


class Worker:
    """Computes units of a plan, several at once, on its own event loop.

    Ray's loop only passes messages on: the worker can be asked to stop even if a system blocks or
    breaks the loop that it runs on.
    """

    async def begin(
        self,
        cells: bytes,
        position: int,
        paths: Sequence[str],
        variables: Mapping[str, str],
        node: str,
    ) -> BeginReply:
        """Prepares the process: adds `paths` to the module search path and `variables`, keys
        included, to the environment; `cells` are those of the plan. `position` is the worker's
        index among those that share a limit. `node` is the node of the sweep's own process;
        other nodes may have another home.
        """
        is_elsewhere = _begin_reply().node != node
        own_paths = {
            name: os.environ[name] for name in PATH_VARIABLES if is_elsewhere and name in os.environ
        }
        os.environ.update({**variables, **own_paths})
        # After the node's own folders, which exist.
        sys.path += [path for path in paths if path not in sys.path]
        try:
            from memeval.runs.compute.ray_computing import Computer

            self._computer = Computer(cells, position)
        except ImportError as error:
            return _begin_reply(f"{type(error).__name__}: {error}")

        if problem := self._computer.problem():
            return _begin_reply(problem)

        self._tasks: dict[int, Future[Any]] = {}
        loops: Future[asyncio.AbstractEventLoop] = Future()
        thread = threading.Thread(target=self._computer.serve, args=(loops,), daemon=True)
        thread.start()
        self._loop = await asyncio.wrap_future(loops)

        return _begin_reply()

    async def compute(self, number: int, unit: Any) -> AsyncIterator[tuple[list[Any], Any]]:
        """Yields the messages of a unit as soon as it sends them, with the process's state; the
        last message is the unit's end.

        `number` identifies the unit for `stop`.
        """
        queue: asyncio.Queue[Any] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def send(content: Any) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, content)

        task = asyncio.run_coroutine_threadsafe(self._computer.work(unit, send), self._loop)
        self._tasks[number] = task
        try:
            is_over = False
            while not is_over:
                # Available items are sent together: for Ray each `yield` is a separate object.
                contents = [await queue.get()]
                while not queue.empty():
                    contents.append(queue.get_nowait())

                is_over = self._computer.is_end(contents[-1])
                yield contents, self._computer.state()
        finally:
            del self._tasks[number]

    async def stop(self, number: int) -> None:
        """Cancels a unit that is under way."""
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    async def state(self) -> Any:
        """The model calls of the process."""
        return self._computer.state()

    async def finish(self, most_s: float) -> Any:
        """Waits for model calls in progress; no new ones start. Returns the state after that."""
        await self._run(self._computer.finish(most_s))
        return self._computer.state()

    async def leave(self) -> None:
        """Releases the process's connections and leases of requests."""
        await self._run(self._computer.aclose())

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


def _begin_reply(problem: str = "") -> BeginReply:
    import socket

    import ray

    node = ray.get_runtime_context().get_node_id()
    return BeginReply(node=node, host=socket.gethostname(), problem=problem)
