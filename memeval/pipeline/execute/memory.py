"""The memory of one case: saving, loading, and counts of its items."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from memeval import __version__
from memeval.errors import IngestLossError, MemevalError
from memeval.pipeline.execute.ingest import check_loss
from memeval.pipeline.isolate.watch import Watched
from memeval.pipeline.open.cell import Cell
from memeval.process.leftovers import remove, temporary_name
from memeval.records import Count, EvalCase, Finite, IngestHealth, Usage
from memeval.results import sealed, unsealed, write_atomically
from memeval.results.fields import as_plain, read_as
from memeval.results.files import MANIFEST, as_json, file_digests
from memeval.results.private import make_folder
from memeval.results.rows import OperationDone, StoredItems, Written, check_health
from memeval.text.names import digest_name
from memeval.text.redaction import without_known_in
from memeval.text.shown import one_line
from memeval.text.value_search import plain
from memeval.text.words import search_terms

META = "meta.json"
"""File that describes for people how a memory was built."""
RARE_SHARE = 0.01
"""A word is rare if it occurs in at most this share of the turns, or in only one."""


class Ingested(Struct, frozen=True, kw_only=True):
    """Cost and outcome of an ingest, in manifest order."""

    chunks: Count
    """Chunks that were ingested."""
    compressions: Count
    """Number of times the window was cut."""
    usage: tuple[Usage, ...]
    """Added up by role, model and kind."""
    seconds: Finite | None
    """Seconds of the first build: the system's own work plus its calls; None if not measured."""
    ready_seconds: Finite | None = None
    """Wall time from the last chunk to a searchable memory; None if there is no wait."""
    origin: str
    """Key of the run that built it."""
    health: IngestHealth
    """Counts of chunks that were stored or lost."""
    notes: Mapping[str, str]
    """Notes on the replies that the memory is based on."""
    operations: tuple[OperationDone, ...] = ()
    """Operations done since the checkpoint that it was continued from."""
    written: Written | None = None
    """Content written by a model since then; None if the system was given the chunks."""
    stored: StoredItems | None = None
    """Items that its system lists as stored; None if it lists nothing."""


IN_MANIFEST = tuple(field.name for field in structs.fields(Ingested) if field.required)
"""Members that every manifest has."""
_LAST_MEMBERS = ("operations", "written", "stored")
"""Members that come last in a manifest, if there are any."""


class Memory(Struct, frozen=True):
    """A case's memory, ready for questions."""

    watched: Watched
    ingested: Ingested
    was_loaded: bool = False
    saved: bool = False
    """True if it is completely on disk."""
    save_error: str | None = None
    """Reason why the memory could not be saved, if its system tried to."""


async def load_memory(
    cell: Cell, folder: Path, identity: Mapping[str, str], create_system: Callable[[], Watched]
) -> Memory | None:
    """Loads a saved memory; None if it is missing, damaged, of another case, or lost too much."""
    if not folder.exists():
        return None

    try:
        content = await asyncio.to_thread(read_manifest, folder, identity["key"])
        ingested = read_as(content, Ingested)
        check_health(ingested.health)
        check_loss(ingested.health, cell.config.max_ingest_loss)
    except (ValueError, IngestLossError):
        return None

    # Two case ids may have the same digest.
    if content["case_id"] != identity["case_id"]:
        return None

    # A new system for each try: a system that failed to load may contain half of a memory.
    watched = create_system()
    try:
        await watched.call("load", folder)
        return Memory(watched, ingested, was_loaded=True, saved=True)
    except Exception:  # noqa: BLE001
        # A custom system may fail in any way on a memory that it can't read; the memory is then
        # built again.
        await watched.close()
        return None
    except BaseException:
        await watched.close()
        raise


def describe_memory(cell: Cell, identity: Mapping[str, str]) -> dict[str, Any]:
    """Describes for people how a memory was built; never used for loading.

    Cells that differ only in other settings share the memory; the first cell is described.
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

    described: dict[str, Any] = without_known_in(meta)
    return described


async def save_memory(
    memory: Memory, folder: Path, identity: Mapping[str, str], meta: Mapping[str, Any]
) -> tuple[bool, str | None]:
    """Saves a memory completely or not at all: a temporary folder is renamed at the end.

    Returns whether it was saved, and the reason why a system that can save failed to.
    """
    # The name contains process and object: two builders never write into one folder.
    temporary = temporary_name(folder, str(id(memory)))
    try:
        make_folder(temporary)
        await memory.watched.call("save", temporary)
        # A custom system may have saved a file of that name.
        if not (temporary / META).exists():
            write_atomically(temporary / META, as_json(meta, indent=2) + "\n")

        files = await asyncio.to_thread(file_digests, temporary, but=MANIFEST)
        manifest = {**identity, **as_plain(memory.ingested), "files": files}
        for name in _LAST_MEMBERS:
            value = manifest.pop(name)
            if value:
                manifest[name] = value

        # Written last: see `MANIFEST`.
        write_atomically(temporary / MANIFEST, json.dumps(sealed(manifest)))
        # A folder that is not empty can't be replaced by a rename. A crash right here loses only
        # the old memory, which was to be replaced; it is then built again.
        remove(folder)
        temporary.replace(folder)
        return True, None
    except OSError as error:
        return False, one_line(error)
    except MemevalError as error:
        # `MemorySystem.save` raises this by default: a system need not be able to save.
        if isinstance(error.__cause__, NotImplementedError):
            return False, None

        return False, one_line(error, 400)
    finally:
        remove(temporary)


def read_manifest(folder: Path, key: str) -> dict[str, Any]:
    """The manifest of a memory. Raises `ValueError` unless it matches files, key and folder."""
    try:
        manifest = unsealed(json.loads((folder / MANIFEST).read_bytes()))
    except FileNotFoundError:
        raise ValueError(f"{MANIFEST} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{MANIFEST} is damaged: {one_line(error)}") from error

    missing = [name for name in ("case_id", "key", "files", *IN_MANIFEST) if name not in manifest]
    if missing:
        raise ValueError(f"{MANIFEST} lacks {', '.join(missing)}")

    try:
        files = file_digests(folder, but=MANIFEST)
    except OSError as error:
        raise ValueError(f"a file can't be read: {error.strerror or error}") from error

    if manifest["files"] != files:
        raise ValueError("its files differ from the saved ones")

    # The folder may be a copy of another.
    if manifest["key"] != key or digest_name(str(manifest["case_id"])) != folder.name:
        raise ValueError("it is the memory of a different key or case")

    return manifest


def count_items(items: Sequence[Mapping[str, Any]], case: EvalCase) -> StoredItems:
    """Counts the items of a dump. `case` contains what was ingested so far."""
    position_of: dict[str, int] = {}
    spread: Counter[str] = Counter()
    turns = list(case.turns)
    for position, turn in enumerate(turns):
        position_of[turn.turn_id] = position
        spread.update(set(search_terms(turn.text)))

    most = max(1, RARE_SHARE * len(turns))
    distinct = set()
    without_fact = placed = late = 0
    for item in items:
        text = str(item.get("text") or "")
        distinct.add(plain(text))
        without_fact += not any(0 < spread[term] <= most for term in search_terms(text))
        # An item's position is that of the latest turn that it names.
        latest = _latest(item.get("turn_ids"), position_of)
        placed += latest >= 0
        late += 2 * latest >= len(turns)

    return StoredItems(
        turns=len(turns),
        items=len(items),
        repeated=len(items) - len(distinct),
        without_fact=without_fact,
        placed=placed,
        late=late,
    )


def _latest(turn_ids: Any, position_of: Mapping[str, int]) -> int:
    """Position of the latest turn that an item names; -1 if it names none that exists."""
    latest = -1
    if isinstance(turn_ids, list | tuple):
        for turn_id in turn_ids:
            if isinstance(turn_id, str):
                latest = max(latest, position_of.get(turn_id, -1))

    return latest
