"""A worker on a Ray cluster: the code that runs on the node.

This module is sent to the node by value, so it imports nothing of memeval before `begin` has set
the path.
"""

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PATH_VARIABLES = ("MEMEVAL_HOME", "MEMEVAL_DATA_DIR")
"""Variables that set paths on a machine."""


@dataclass(frozen=True)
class BeginReply:
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
        messages: asyncio.Queue[Any] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def send(message: Any) -> None:
            loop.call_soon_threadsafe(messages.put_nowait, message)

        self._messages = messages
        try:
            from memeval.runs.compute.ray_computing import Computer

            self._computer = Computer(cells, position, send)
        except ImportError as error:
            return _begin_reply(f"{type(error).__name__}: {error}")

        if problem := self._computer.problem():
            return _begin_reply(problem)

        threading.Thread(target=self._computer.serve, daemon=True).start()
        return _begin_reply()

    async def enqueue(self, command: Any) -> None:
        """Passes on a command of the sweep's process."""
        self._computer.server.enqueue(command)

    async def messages(self) -> AsyncIterator[list[Any]]:
        """Yields the messages to the sweep's process as soon as there are any, until it ends."""
        is_over = False
        while not is_over:
            # Available items are sent together: for Ray each `yield` is a separate object.
            available = [await self._messages.get()]
            while not self._messages.empty():
                available.append(self._messages.get_nowait())

            is_over = available[-1] is None
            yield list(filter(None, available))


def _begin_reply(problem: str = "") -> BeginReply:
    import ray

    node = ray.get_runtime_context().get_node_id()
    return BeginReply(node=node, host=socket.gethostname(), problem=problem)
