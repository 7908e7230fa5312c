"""Builds the memory of one case, once: loaded where it was saved, else ingested, compressed at its turn, and saved."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memeval.llm.metering import Ledger, metered
from memeval.pipeline.cell import Cell
from memeval.pipeline.rows import usage_rows
from memeval.records import EvalCase, MemoryChunk
from memeval.results import write_atomically
from memeval.systems.contract import MemorySystem

ROLLING_TURNS = 40
"""`compression_turn=rolling` compresses after every so many units."""
MANIFEST = "memory.json"


@dataclass(frozen=True)
class Memory:
    """A case's memory, ready for questions."""

    system: MemorySystem
    chunks: int
    """Units that were ingested."""
    compressions: int
    """How often the window was cut."""
    usage: list[dict[str, Any]]
    seconds: float
    """Wall time of the ingest, waits at endpoints left out; that of the first build where it was loaded."""
    origin: str
    """Key of the run that built it."""


def compression_points(turn: int | str, chunks: int) -> list[int]:
    """After how many of `chunks` units the window is cut; empty where it never is (`never`, or a turn past the end)."""
    if turn == "never":
        return []
    if turn == "rolling":
        return list(range(ROLLING_TURNS, chunks + 1, ROLLING_TURNS))
    point = chunks // 2 if turn == "middle" else int(turn)
    return [point] if 1 <= point <= chunks else []


async def build_memory(cell: Cell, case: EvalCase, chunks: Sequence[MemoryChunk], fresh: Callable[[], MemorySystem], seed: int) -> Memory:
    """The memory of a case: loaded where one with the same key was saved whole, else built and saved where the system can be."""
    folder = cell.memory_folder(seed) / quote(case.case_id, safe="")
    loaded = await _load(folder, fresh)
    if loaded is not None:
        return loaded
    system = fresh()
    ledger, started = Ledger(), time.perf_counter()
    points = compression_points(cell.config.compression_turn, len(chunks))
    with metered(ledger):
        await _ingest(system, chunks, points, cell.config.retain_recent)
    seconds = time.perf_counter() - started - ledger.idle_s + ledger.replayed_s
    memory = Memory(system, len(chunks), len(points), usage_rows(ledger.usages), seconds, cell.run_key)
    await _save(memory, folder)
    return memory


async def _ingest(system: MemorySystem, chunks: Sequence[MemoryChunk], points: Sequence[int], retain: int) -> None:
    """Plain methods of a system that asks for it run in one worker thread, all else on the event loop."""
    methods = (system.reset, system.ingest, system.compress, system.consolidate)
    if system.in_thread and not any(map(inspect.iscoroutinefunction, methods)):
        await asyncio.to_thread(_ingest_plain, system, chunks, points, retain)
        return
    await called(system, system.reset)
    for count, chunk in enumerate(chunks, start=1):
        await called(system, system.ingest, chunk)
        if count in points:
            await called(system, system.compress, _window(chunks, count, retain))
    await called(system, system.consolidate)


def _ingest_plain(system: MemorySystem, chunks: Sequence[MemoryChunk], points: Sequence[int], retain: int) -> None:
    system.reset()
    for count, chunk in enumerate(chunks, start=1):
        system.ingest(chunk)
        if count in points:
            system.compress(_window(chunks, count, retain))
    system.consolidate()


def _window(chunks: Sequence[MemoryChunk], count: int, retain: int) -> Sequence[MemoryChunk]:
    return tuple(chunks[max(0, count - retain) : count])


async def awaited(value: Any) -> Any:
    """The value, or what it comes to."""
    return await value if isinstance(value, Awaitable) else value


async def called(system: MemorySystem, method: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a method of a system where it wants to be called: on the event loop, or in a worker thread."""
    if system.in_thread and not inspect.iscoroutinefunction(method):
        return await awaited(await asyncio.to_thread(method, *arguments))
    return await awaited(method(*arguments))


async def _load(folder: Path, fresh: Callable[[], MemorySystem]) -> Memory | None:
    """None where nothing was saved, or where what was saved is damaged: it is then built again."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["files"] != _digests(folder):
            raise ValueError("a file is damaged")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    system = fresh()
    try:
        await called(system, system.load, folder)
        return Memory(system, manifest["chunks"], manifest["compressions"], manifest["usage"], manifest["seconds"], manifest["origin"])
    except Exception:  # noqa: BLE001 - a system of the user's own may fail in any way on a memory that it can't read; it is built again
        system.close()
        return None


async def _save(memory: Memory, folder: Path) -> None:
    """Saves whole or not at all: written beside, renamed. A memory that can't be saved is built again next time; nothing is lost by it."""
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.{id(memory)}.tmp")
    try:
        beside.mkdir(parents=True)
        await called(memory.system, memory.system.save, beside)
        manifest = {
            "chunks": memory.chunks,
            "compressions": memory.compressions,
            "usage": memory.usage,
            "seconds": memory.seconds,
            "origin": memory.origin,
            "files": _digests(beside),
        }
        write_atomically(beside / MANIFEST, json.dumps(manifest))
        shutil.rmtree(folder, ignore_errors=True)
        beside.replace(folder)
    except (NotImplementedError, OSError):
        pass
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _digests(folder: Path) -> dict[str, str]:
    """sha256 of each file of a saved memory but its manifest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
