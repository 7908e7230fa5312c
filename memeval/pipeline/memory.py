"""Builds the memory of one case, once: loaded where it was saved, else ingested, compressed at its turn, and saved."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from filelock import FileLock, Timeout

from memeval.llm.metering import Ledger, metered
from memeval.pipeline.cell import Cell
from memeval.pipeline.rows import usage_rows
from memeval.records import EvalCase, MemoryChunk
from memeval.results import write_atomically
from memeval.systems.contract import MemorySystem

ROLLING_TURNS = 40
"""`compression_turn=rolling` compresses after every so many units."""
MANIFEST = "memory.json"
WAIT_S = 0.05
"""Between two looks whether another builder of the same memory is done."""


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
    """Wall time of the ingest, waits at endpoints included; that of the first build where it was loaded."""
    origin: str
    """Key of the run that built it."""
    found: bool = False
    """True where it was loaded."""
    saved: bool = False
    """True where it lies on disk, whole."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What a reader should know of the replies that it rests on."""


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
    async with _building(folder):
        return await _load(folder, fresh) or await _build(cell, chunks, fresh(), folder)


async def _build(cell: Cell, chunks: Sequence[MemoryChunk], system: MemorySystem, folder: Path) -> Memory:
    """Ingests a case, and saves what came of it."""
    ledger, started = Ledger(), time.perf_counter()
    points = compression_points(cell.config.compression_turn, len(chunks))
    try:
        with metered(ledger):
            await ingest(system, chunks, points, cell.config.retain_recent)
    except BaseException:
        system.close()
        raise
    seconds = time.perf_counter() - started
    memory = Memory(system, len(chunks), len(points), usage_rows(ledger.usages), seconds, cell.run_key, notes=_notes(ledger))
    return replace(memory, saved=await _save(memory, folder))


def _notes(ledger: Ledger) -> dict[str, str]:
    """What the ingest's replies call for: some were cut or withheld, something was mended in them."""
    notes = dict(ledger.notes)
    if ledger.cut_calls:
        notes["cut_replies"] = f"{ledger.cut_calls} of {ledger.calls} replies were cut at their limit of tokens"
    if ledger.filtered_calls:
        notes["filtered_replies"] = f"{ledger.filtered_calls} of {ledger.calls} replies were withheld by the provider's filter"
    return notes


@asynccontextmanager
async def _building(folder: Path) -> AsyncIterator[None]:
    """One builder per memory, in this process and in others: who comes second finds it saved."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{folder}.lock", thread_local=False, is_singleton=False)
    while True:
        try:
            lock.acquire(timeout=0)
            break
        except Timeout:
            await asyncio.sleep(WAIT_S)
    try:
        yield
    finally:
        lock.release()


async def ingest(system: MemorySystem, chunks: Sequence[MemoryChunk], points: Sequence[int], retain: int) -> None:
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
        if manifest["files"] != await asyncio.to_thread(_digests, folder):
            raise ValueError("a file is damaged")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    system = fresh()
    try:
        await called(system, system.load, folder)
        told = {name: manifest[name] for name in ("chunks", "compressions", "usage", "seconds", "origin")}
        return Memory(system, found=True, saved=True, notes=manifest.get("notes", {}), **told)
    except Exception:  # noqa: BLE001 - a system of the user's own may fail in any way on a memory that it can't read; it is built again
        system.close()
        return None


async def _save(memory: Memory, folder: Path) -> bool:
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
            "notes": dict(memory.notes),
            "files": await asyncio.to_thread(_digests, beside),
        }
        write_atomically(beside / MANIFEST, json.dumps(manifest))
        shutil.rmtree(folder, ignore_errors=True)
        beside.replace(folder)
        return True
    except (NotImplementedError, OSError):
        return False
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _digests(folder: Path) -> dict[str, str]:
    """sha256 of each file of a saved memory but its manifest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
