"""JSON files, the form of most saved memories, and the base of systems that keep only chunks."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct

from memeval.records import CorrectRequest, MemoryChunk, Retrieved
from memeval.results.files import as_json
from memeval.systems.base import QuickSystem
from memeval.systems.forgetting import corrected, count_changed
from memeval.text.typed import convert, decoder


def split_window(
    window: Sequence[MemoryChunk], retained: Sequence[MemoryChunk]
) -> tuple[list[MemoryChunk], list[MemoryChunk]]:
    """The chunks that a compression drops from a window, and those that stay.

    `retained` contains chunks as they were ingested: some may be forgotten or corrected by now.
    """
    ids = {chunk.chunk_id for chunk in retained}
    leaving: list[MemoryChunk] = []
    staying: list[MemoryChunk] = []
    for chunk in window:
        group = staying if chunk.chunk_id in ids else leaving
        group.append(chunk)

    return leaving, staying


def as_retrieved(chunk: MemoryChunk) -> Retrieved:
    """A chunk as a result without a score."""
    return Retrieved(text=chunk.text, turn_ids=chunk.turn_ids, time=chunk.time)


def write_state(file: Path, state: Any) -> None:
    """Writes a part of a memory as JSON."""
    file.write_text(as_json(state), encoding="utf-8")


def read_state(file: Path) -> Any:
    """Reads what `write_state` wrote. Raises `OSError`, or a parse error if the JSON is damaged."""
    return json.loads(file.read_text(encoding="utf-8"))


CHUNKS_FILE = "chunks.json"


def write_chunks(
    folder: Path, chunks: Sequence[MemoryChunk], window: Sequence[MemoryChunk] | None = None
) -> None:
    """Writes the chunks in order, and the window of a compression if there was one."""
    with (folder / CHUNKS_FILE).open("w", encoding="utf-8") as file:
        file.write('{"chunks": ')
        file.writelines(_parts(chunks))
        file.write(', "window": ')
        file.writelines(_parts(window))
        file.write("}")


class SavedChunks(Struct):
    """The content of a file that `write_chunks` wrote."""

    chunks: list[MemoryChunk]
    window: list[MemoryChunk] | None


def read_saved(folder: Path) -> SavedChunks:
    """The chunks and the window. Raises `OSError`, or a parse error for damaged JSON."""
    file = folder / CHUNKS_FILE
    try:
        return decoder(SavedChunks).decode(file.read_bytes())
    except DecodeError:
        # Half of a surrogate pair: only Python's own parser reads it.
        return convert(read_state(file), SavedChunks)


def read_chunks(folder: Path) -> list[MemoryChunk]:
    """Reads only the chunks."""
    return read_saved(folder).chunks


def iso_time(time: datetime | None) -> str | None:
    """A time as JSON; None if it is not known."""
    return time.isoformat() if time else None


def _parts(chunks: Sequence[MemoryChunk] | None) -> Iterator[str]:
    """The parts of the chunks as JSON: a million of them as one text would take a gigabyte."""
    if chunks is None:
        yield "null"
        return

    # Field by field: `asdict` copies each value deeply, which takes longer than all the rest.
    names = [field.name for field in fields(MemoryChunk)]
    separator = "["
    for chunk in chunks:
        row = {name: getattr(chunk, name) for name in names}
        row["time"] = iso_time(chunk.time)
        if not chunk.user:
            del row["user"]

        yield separator + as_json(row)
        separator = ", "

    yield "]" if chunks else "[]"


class ChunkSystem(QuickSystem):
    """A system whose memory is the chunks, in order of time."""

    def reset(self) -> None:
        self._chunks: list[MemoryChunk] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self._chunks.append(chunk)

    def replace_chunks(self, chunks: Iterable[MemoryChunk]) -> None:
        """Replaces the stored chunks with these."""
        self.reset()
        for chunk in chunks:
            self.ingest(chunk)

    def correct(self, request: CorrectRequest) -> int:
        before = self._chunks
        self.replace_chunks(corrected(before, request))
        return count_changed(before, self._chunks)

    def save(self, folder: Path) -> None:
        write_chunks(folder, self._chunks)

    def load(self, folder: Path) -> None:
        self.replace_chunks(read_chunks(folder))
