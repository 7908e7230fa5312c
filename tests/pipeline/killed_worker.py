"""Systems whose process is killed while it answers, as the kernel does if memory runs out, or that
are slow.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from memeval.records import Answer, MemoryChunk, Query
from memeval.systems.controls.no_memory import NoMemory


class KilledOnce(NoMemory):
    """Kills the first process that gets a question after two others (or KILLED_AFTER) were
    asked.
    """

    async def answer(self, query: Query) -> Answer:
        mark = Path(os.environ["KILLED_MARK"])
        asked = mark.with_suffix(".asked")
        with asked.open("a") as file:
            file.write("x")

        if asked.stat().st_size > int(os.environ.get("KILLED_AFTER", "2")):
            # Only one process can create the file.
            with suppress(FileExistsError):
                mark.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)

        return await super().answer(query)


class KilledAlways(NoMemory):
    """Kills its own process."""

    async def answer(self, query: Query) -> Answer:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("it is dead")


class KilledForker(NoMemory):
    """Kills its own process and the one that would replace it."""

    async def answer(self, query: Query) -> Answer:
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("it is dead")


class Hangs(NoMemory):
    """Blocks its whole process while the mark exists."""

    async def answer(self, query: Query) -> Answer:
        mark = Path(os.environ["KILLED_MARK"])
        while mark.exists():
            mark.with_suffix(".asked").touch()
            time.sleep(0.05)  # noqa: ASYNC251 - that is the fault

        return await super().answer(query)


class Slow(NoMemory):
    """Answers slowly while the mark exists."""

    async def answer(self, query: Query) -> Answer:
        mark = Path(os.environ["KILLED_MARK"])
        if mark.exists():
            mark.with_suffix(".asked").touch()
            await asyncio.sleep(0.2)

        return await super().answer(query)


class Noted(NoMemory):
    """Leaves a file for each process that it runs in, and answers slowly."""

    async def answer(self, query: Query) -> Answer:
        Path(os.environ["KILLED_MARK"], str(os.getpid())).touch()
        await asyncio.sleep(0.3)
        return await super().answer(query)


class Built(NoMemory):
    """Records how many memories are built concurrently."""

    building = 0

    async def ingest(self, chunk: MemoryChunk) -> None:
        Built.building += 1
        numbers = Path(os.environ["KILLED_MARK"])
        with numbers.open("a") as file:  # noqa: ASYNC230 - one line
            file.write(f"{Built.building}\n")

        await asyncio.sleep(0.005)
        Built.building -= 1
