"""Builds the memory of one case, once: loaded where it was saved, else ingested, compressed at its
turn, and saved.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from memeval import __version__
from memeval.config.schema import PREPARE
from memeval.errors import IngestLossError, MemevalError, StorageError, SystemFaultError
from memeval.granularity import Granularity
from memeval.granularity import chunks as cut
from memeval.leftovers import own_name
from memeval.llm.metering import Ledger, metered, totals
from memeval.names import digest_name
from memeval.pipeline.cell import Cell
from memeval.pipeline.places import place_of_method
from memeval.pipeline.returned import plain_notes
from memeval.pipeline.watch import Watched
from memeval.private import FILE_MODE, make_folder
from memeval.records import EvalCase, IngestHealth, MemoryChunk, Usage
from memeval.redaction import without_known_in
from memeval.results import is_sealed, json_line, sealed, write_atomically
from memeval.results.fields import Fields, usage_json
from memeval.results.files import as_json, dump_file
from memeval.results.rows import health_from, health_json
from memeval.shown import one_line
from memeval.systems.base import MemorySystem

CUT_REPLIES = "cut_replies"
"""Note of an ingest of which replies were cut."""
ROLLING_TURNS = 40
"""`compression_turn=rolling` compresses each time this many more turn pairs were ingested."""
MANIFEST = "memory.json"
META = "meta.json"
"""What made a memory, for people to read."""
IN_MANIFEST = ("chunks", "compressions", "usage", "seconds", "origin", "notes", "health")
"""What a manifest says of the ingest, by the names of `Memory`."""
WAIT_S = 0.05
"""Between two looks whether another builder of the same memory is done."""


@dataclass(frozen=True)
class Memory:
    """A case's memory, ready for questions."""

    watched: Watched
    chunks: int
    """Units that were ingested."""
    compressions: int
    """How often the window was cut."""
    usage: tuple[Usage, ...]
    """Added up by role, model and kind."""
    seconds: float
    """Wall time of the ingest, waits at endpoints included; that of the first build where it was
    loaded.
    """
    origin: str
    """Key of the run that built it."""
    health: IngestHealth
    """What became of the units."""
    found: bool = False
    """True where it was loaded."""
    saved: bool = False
    """True where it lies on disk, whole."""
    unsaved: str | None = None
    """Why it could not be saved, where its system tried to."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What a reader should know of the replies that it rests on."""

    @property
    def system(self) -> MemorySystem:
        """The system that holds it."""
        return self.watched.system

    async def close(self) -> str | None:
        """Gives back what the system holds; what went wrong with that, if anything."""
        return await self.watched.closed()


def compression_points(turn: int | str, units: int) -> list[int]:
    """After how many of the turn pairs, or chunks, the window is cut.

    `rolling` cuts once more at the end, before the questions. Empty where the window is never cut:
    for `never`, and for a turn past the end.
    """
    if turn == "never":
        return []
    if turn == "rolling":
        return [*range(ROLLING_TURNS, units, ROLLING_TURNS), units] if units else []

    point = units // 2 if turn == "middle" else int(turn)
    return [point] if 1 <= point <= units else []


def compression_chunks(
    turn: int | str, unit: str, case: EvalCase, chunks: Sequence[MemoryChunk]
) -> list[int]:
    """After how many of the chunks the window is cut.

    With `unit=pairs` that is after the chunk that completes the turn pair.
    """
    if unit == "chunks":
        return compression_points(turn, len(chunks))

    ends = _ends_of_pairs(case, chunks)
    return sorted({ends[point - 1] for point in compression_points(turn, len(ends))})


def _ends_of_pairs(case: EvalCase, chunks: Sequence[MemoryChunk]) -> list[int]:
    """After how many chunks each turn pair is complete.

    A pair is a round, as `granularity=round` has it. Where nobody replies, each turn is one.
    """
    speakers = {turn.speaker for session in case.sessions for turn in session.turns}
    name = "round" if len(speakers) > 1 else "turn"
    counts = {turn: count for count, chunk in enumerate(chunks, start=1) for turn in chunk.turn_ids}

    ends: list[int] = []
    reached = 0
    for pair in cut(case, Granularity(name)):
        reached = max([reached, *(counts.get(turn, 0) for turn in pair.turn_ids)])
        if reached:
            ends.append(reached)

    return ends


async def build_memory(
    cell: Cell,
    case: EvalCase,
    chunks: Sequence[MemoryChunk],
    fresh: Callable[[], Watched],
    seed: int,
) -> Memory:
    """The memory of a case: loaded where one with the same key was saved whole, else built and
    saved where the system can be.

    Raises `IngestLossError` where more was lost than the config allows: such a memory is not saved,
    and not asked.
    """
    # The id comes from the data: `..` or `a/b` would lead elsewhere. A digest names the folder, the
    # manifest and `meta.json` tell the id.
    folder = cell.memory_folder(seed) / digest_name(case.case_id)
    identity = {"case_id": case.case_id, "key": cell.keys(seed).prepare}

    async with _building(folder):
        found = None if _is_due(cell, folder) else await _load(cell, folder, identity, fresh)
        return found or await _build(cell, case, chunks, fresh(), folder=folder, identity=identity)


_made_again: set[Path] = set()
"""Folders of memories that this process built again under `fresh=prepare`: cells of a sweep share
one.
"""


def _is_due(cell: Cell, folder: Path) -> bool:
    """Whether a memory is to be built again although it is there."""
    if cell.config.fresh != PREPARE or folder in _made_again:
        return False

    _made_again.add(folder)
    return True


async def _build(
    cell: Cell,
    case: EvalCase,
    chunks: Sequence[MemoryChunk],
    watched: Watched,
    *,
    folder: Path,
    identity: Mapping[str, str],
) -> Memory:
    """Ingests a case, and saves what came of it."""
    ledger, started = Ledger(), time.perf_counter()
    points = compression_chunks(
        cell.config.compression_turn, cell.config.compression_unit, case, chunks
    )
    try:
        with metered(ledger):
            await fill(watched, chunks, points, cell.config.retain_recent)
            health = await _health(watched, len(chunks), ledger)

        _check_loss(health, cell.config.max_ingest_loss, ledger)
    except BaseException:
        await watched.closed()
        raise

    memory = Memory(
        watched=watched,
        chunks=len(chunks),
        compressions=len(points),
        usage=totals(ledger.usages),
        seconds=time.perf_counter() - started,
        origin=cell.run_key,
        health=health,
        notes=_notes(ledger),
    )
    saved, unsaved = await _save(memory, folder, identity, _meta(cell, identity))
    trouble = await _dump(watched, dump_file(folder))
    if trouble:
        memory = replace(memory, notes={**memory.notes, "dump": trouble})

    return replace(memory, saved=saved, unsaved=unsaved)


async def _dump(watched: Watched, path: Path) -> str | None:
    """Lists what a memory extracted or wrote, for a reader to look at.

    What kept it from that, if anything: no answer rests on it.
    """
    if not hasattr(watched.system, "dump"):  # a class that follows the contract by shape alone
        return None

    try:
        items = await watched.call("dump")
        lines = [json_line(without_known_in(plain_notes(item))) for item in items or ()]
        if lines:
            write_atomically(path, "".join(lines))
        else:
            path.unlink(missing_ok=True)
    except (MemevalError, OSError, TypeError, ValueError) as error:
        return f"what the memory holds could not be listed: {one_line(error, 400)}"

    return None


async def _health(watched: Watched, units: int, ledger: Ledger) -> IngestHealth:
    """What the system says of its ingest, else what the calls tell: one that failed or was cut
    is a lost chunk.
    """
    health = await watched.call("health")
    if health is None:
        lost = min(units, ledger.failed + ledger.cut_calls + ledger.filtered_calls)
        return IngestHealth(asked=units, stored=units - lost, lost=lost)

    if not isinstance(health, IngestHealth):
        place = place_of_method(watched.system, "health", watched.source)
        raise SystemFaultError(
            f"{place}: it must return an IngestHealth, but returned {type(health).__name__}"
        )

    counts = [health.asked, health.stored, health.lost]
    if (
        any(isinstance(count, bool) or not isinstance(count, int) or count < 0 for count in counts)
        or health.lost > health.asked
    ):
        place = place_of_method(watched.system, "health", watched.source)
        raise SystemFaultError(
            f"{place}: asked, stored and lost must be whole numbers from 0 on, lost at most "
            f"asked: {one_line(counts)}"
        )

    return health


def _check_loss(health: IngestHealth, most: float, ledger: Ledger | None = None) -> None:
    """Raises `IngestLossError`, which names replies that were cut, where too much was lost."""
    if health.lost_share <= most:
        return

    message = f"{health.summary}, and max_ingest_loss allows {most:.1%}".replace("%", " %")
    if ledger is not None and ledger.cut_calls:
        message += f"; {_cut_replies(ledger)} (llm.ingest.max_tokens)"

    raise IngestLossError(message)


def _cut_replies(ledger: Ledger) -> str:
    """How many replies were cut in the end, and of how many."""
    return f"{ledger.cut_calls} of {ledger.calls} replies were cut at their limit of tokens"


def _notes(ledger: Ledger) -> dict[str, str]:
    """What a reader should know of the ingest's replies: that some were cut, withheld or mended."""
    notes = dict(ledger.notes)
    if ledger.cut_calls:
        notes[CUT_REPLIES] = _cut_replies(ledger)

    if ledger.filtered_calls:
        notes["filtered_replies"] = (
            f"the provider's filter withheld {ledger.filtered_calls} of {ledger.calls} replies"
        )

    return notes


@asynccontextmanager
async def _building(folder: Path) -> AsyncIterator[None]:
    """One builder per memory, in this process and in others: who comes second finds it saved."""
    lock = FileLock(f"{folder}.lock", mode=FILE_MODE, thread_local=False, is_singleton=False)
    while True:
        try:
            make_folder(folder.parent)
            lock.acquire(timeout=0)
            break
        except Timeout:
            await asyncio.sleep(WAIT_S)
        except OSError as error:
            raise StorageError(
                f"{folder}.lock can't be opened: {error.strerror or error}"
            ) from error

    try:
        yield
    finally:
        lock.release()


async def ingest(
    system: MemorySystem, chunks: Sequence[MemoryChunk], points: Sequence[int], retain: int
) -> None:
    """Fills a system that nothing else is known of."""
    await fill(Watched(system), chunks, points, retain)


async def fill(
    watched: Watched, chunks: Sequence[MemoryChunk], points: Sequence[int], retain: int
) -> None:
    """Plain methods of a system that asks for it run in one worker thread, all else on the event
    loop.
    """
    calls = _calls(chunks, points, retain)
    methods = [
        watched.attribute(name, name) for name in ("reset", "ingest", "compress", "consolidate")
    ]
    if not watched.attribute("in_thread", "ingest") or any(
        map(inspect.iscoroutinefunction, methods)
    ):
        for name, arguments in calls:
            await watched.call(name, *arguments)

        return

    await watched.run(calls)


def _calls(
    chunks: Sequence[MemoryChunk], points: Sequence[int], retain: int
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The calls that make a memory, in order: each method's name and what it is given."""
    yield "reset", ()
    for count, chunk in enumerate(chunks, start=1):
        yield "ingest", (chunk,)
        if count in points:
            yield "compress", (_window(chunks, count, retain),)

    yield "consolidate", ()


def _window(chunks: Sequence[MemoryChunk], count: int, retain: int) -> Sequence[MemoryChunk]:
    return tuple(chunks[max(0, count - retain) : count])


async def awaited(value: Any) -> Any:
    """The value, or what it comes to."""
    return await value if isinstance(value, Awaitable) else value


async def called(system: MemorySystem, method: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a method of a system where it wants to be called: on the event loop, or in a worker
    thread.
    """
    if system.in_thread and not inspect.iscoroutinefunction(method):
        return await awaited(await asyncio.to_thread(method, *arguments))

    return await awaited(method(*arguments))


async def _load(
    cell: Cell, folder: Path, identity: Mapping[str, str], fresh: Callable[[], Watched]
) -> Memory | None:
    """None where nothing was saved, or where what was saved is damaged or another's: it is then
    built again.
    """
    if not folder.exists():
        return None

    try:
        manifest = Fields(await asyncio.to_thread(read_manifest, folder))
        health = _health_of(manifest)
        _check_loss(health, cell.config.max_ingest_loss)
        own = all(manifest.string(name) == value for name, value in identity.items())
    except (ValueError, IngestLossError):
        return None

    if not own:
        return None

    watched = fresh()
    try:
        await watched.call("load", folder)
        return Memory(
            watched=watched,
            chunks=manifest.count("chunks"),
            compressions=manifest.count("compressions"),
            usage=manifest.usages("usage"),
            seconds=manifest.number_or_none("seconds") or 0.0,
            origin=manifest.string("origin"),
            health=health,
            found=True,
            saved=True,
            notes=manifest.mapping("notes"),
        )
    except Exception:  # noqa: BLE001 - a system of the user's own may fail in any way on a memory that it can't read; it is built again
        await watched.closed()
        return None
    except BaseException:
        await watched.closed()
        raise


def _health_of(manifest: Fields) -> IngestHealth:
    members = manifest.member("health")
    if members is None:
        raise manifest.wrong("health")

    return health_from(members)


def _meta(cell: Cell, identity: Mapping[str, str]) -> dict[str, Any]:
    """What made a memory, for people to read: nothing is loaded by it.

    Cells that differ only in other things share the memory; the first one is named.
    """
    config = cell.config
    meta = {
        **identity,
        "dataset": config.dataset,
        "data_sha256": cell.loaded.sha256,
        "system": config.system,
        "granularity": asdict(config.granularity),
        "compression_turn": config.compression_turn,
        "retain_recent": config.retain_recent,
        "embedder": {"name": config.embedder.name, "model": config.embedder.model},
        "memeval": __version__,
    }
    if cell.identity.uses_llm_at_ingest:
        meta["llm"] = {"name": config.llm.name, "model": config.llm.model}

    plain: dict[str, Any] = without_known_in(meta)
    return plain


async def _save(
    memory: Memory, folder: Path, identity: Mapping[str, str], meta: Mapping[str, Any]
) -> tuple[bool, str | None]:
    """Saves whole or not at all: written beside, renamed.

    Whether it was saved, and what kept a system from it that can be.

    A memory that can't be saved is built again next time; nothing is lost by it.
    """
    beside = own_name(folder, str(id(memory)))
    try:
        make_folder(beside)
        await memory.watched.call("save", beside)
        # A system of the user's own may have saved a file of that name.
        if not (beside / META).exists():
            write_atomically(beside / META, as_json(meta, indent=2) + "\n")

        manifest = {
            **identity,
            "chunks": memory.chunks,
            "compressions": memory.compressions,
            "usage": list(map(usage_json, memory.usage)),
            "seconds": memory.seconds,
            "origin": memory.origin,
            "health": health_json(memory.health),
            "notes": dict(memory.notes),
            "files": await asyncio.to_thread(_digests, beside),
        }
        write_atomically(beside / MANIFEST, json.dumps(sealed(manifest)))
        _remove(folder)
        beside.replace(folder)
        return True, None
    except OSError as error:
        return False, one_line(error)
    except MemevalError as error:
        expected = isinstance(error.__cause__, NotImplementedError)
        return False, None if expected else one_line(error, 400)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _remove(folder: Path) -> None:
    """Makes room for a memory: removes its old folder, or what has taken its place.

    Never follows a link.
    """
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder.unlink(missing_ok=True)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a saved memory, whose files all match it.

    Raises `ValueError` naming what does not fit.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{MANIFEST} can't be read") from error

    if not isinstance(manifest, dict) or not is_sealed(manifest):
        raise ValueError(f"{MANIFEST} is damaged or was edited")

    lacking = [name for name in ("case_id", "key", "files", *IN_MANIFEST) if name not in manifest]
    if lacking:
        raise ValueError(f"{MANIFEST} lacks {', '.join(lacking)}")

    try:
        files = _digests(folder)
    except OSError as error:
        raise ValueError(f"a file can't be read: {error.strerror or error}") from error

    if manifest["files"] != files:
        raise ValueError("its files differ from those that were saved")

    return manifest


def _digests(folder: Path) -> dict[str, str]:
    """sha256 of each file of a saved memory but its manifest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
