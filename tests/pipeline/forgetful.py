"""Memory systems that forget, each in one way: `forgetful:<Name>`."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from memeval.records import Answer, ForgetRequest, MemoryChunk, Query, Retrieved
from memeval.systems.base import DumpItem, RecallSystem, SystemContext
from memeval.systems.chunk_file import read_chunks, write_chunks
from memeval.systems.forgetting import is_meant


class Words(RecallSystem):
    """Ranks chunks by the words that they share with the query, and cannot forget."""

    in_thread = False

    def __init__(self, settings: Any, parts: SystemContext) -> None:
        super().__init__(settings, parts)
        self.chunks: list[MemoryChunk] = []

    @classmethod
    def uses_llm_at_ingest(cls, settings: Any) -> bool:
        return False

    def reset(self) -> None:
        self.chunks = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self.chunks.append(chunk)

    def searched(self) -> list[MemoryChunk]:
        return self.chunks

    def ranked(self, text: str) -> list[MemoryChunk]:
        words = set(text.lower().replace("?", "").split())

        def score(chunk: MemoryChunk) -> int:
            return len(words & set(chunk.content.lower().rstrip(".").split()))

        return sorted(self.searched(), key=score, reverse=True)

    def recall(self, query: Query, depth: int) -> Sequence[Retrieved]:
        return [
            Retrieved(text=chunk.text, turn_ids=chunk.turn_ids)
            for chunk in self.ranked(query.text)[:depth]
        ]

    def save(self, folder: Path) -> None:
        write_chunks(folder, self.chunks)

    def load(self, folder: Path) -> None:
        self.chunks = read_chunks(folder)


class FirstOnly(Words):
    """Deletes the chunk that ranks first for the request's words."""

    def forget(self, request: ForgetRequest) -> int:
        first = self.ranked(request.words)[0]
        self.chunks = [chunk for chunk in self.chunks if chunk is not first]
        return 1


class Listing(Words):
    """Lists only a part of what it stores."""

    def dump(self) -> list[DumpItem]:
        return [{"kind": "block", "text": "I answer questions."}]


class Unsaved(Words):
    """Cannot be saved, so it is built again for each checkpoint."""

    def save(self, folder: Path) -> None:
        raise NotImplementedError


class Killed(Words):
    """Kills its process once, during the operation or the ingest of the session that `KILLED_IN`
    names.
    """

    def ingest(self, chunk: MemoryChunk) -> None:
        super().ingest(chunk)
        # Not at the first chunk, so that a part of the session is stored.
        if chunk.turn_ids[0].endswith(":3"):
            self.die_in(chunk.session_id)

    def forget(self, request: ForgetRequest) -> int:
        before = len(self.chunks)
        self.chunks = [chunk for chunk in self.chunks if not is_meant(request, chunk.content)]
        self.die_in("forget")
        return before - len(self.chunks)

    def die_in(self, place: str) -> None:
        mark = Path(os.environ.get("KILL_MARK", os.devnull))
        if os.environ.get("KILLED_IN") == place and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


class Rebuilt(Killed):
    """Forgets, but cannot be saved, so it is built again for each checkpoint."""

    def save(self, folder: Path) -> None:
        raise NotImplementedError


class WholeSession(Words):
    """Deletes every session that names the person in any sentence."""

    def forget(self, request: ForgetRequest) -> int:
        name = ForgetRequest(words="", about=" ".join(request.about.split()[:2]))
        hit = {chunk.session_id for chunk in self.chunks if is_meant(name, chunk.content)}
        before = len(self.chunks)
        self.chunks = [chunk for chunk in self.chunks if chunk.session_id not in hit]
        return before - len(self.chunks)


class Marking(Words):
    """Only marks deleted chunks; maintenance drops the marks."""

    def reset(self) -> None:
        super().reset()
        self.marked: set[str] = set()

    def searched(self) -> list[MemoryChunk]:
        return [chunk for chunk in self.chunks if chunk.chunk_id not in self.marked]

    def forget(self, request: ForgetRequest) -> int:
        name = ForgetRequest(words="", about=" ".join(request.about.split()[:2]))
        hit = {chunk.chunk_id for chunk in self.chunks if is_meant(name, chunk.content)}
        self.marked |= hit
        return len(hit)

    def consolidate(self) -> None:
        self.marked = set()

    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "marked").write_text("\n".join(sorted(self.marked)), encoding="utf-8")

    def load(self, folder: Path) -> None:
        super().load(folder)
        self.marked = set((folder / "marked").read_text(encoding="utf-8").splitlines())


class OneIndex(Words):
    """One store for all users, without a filter."""

    store: ClassVar[dict[str, MemoryChunk]] = {}

    def ingest(self, chunk: MemoryChunk) -> None:
        super().ingest(chunk)
        self.store[f"{self.parts.case_id} {chunk.chunk_id}"] = chunk

    def searched(self) -> list[MemoryChunk]:
        return list(self.store.values())

    def recall(self, query: Query, depth: int) -> Sequence[Retrieved]:
        # Turns of another case do not belong into the ranking of this case.
        return [
            Retrieved(text=chunk.text, turn_ids=()) for chunk in self.ranked(query.text)[:depth]
        ]

    def save(self, folder: Path) -> None:
        raise NotImplementedError


class OneIndexByUser(OneIndex):
    """One store for all users, filtered by the user."""

    store: ClassVar[dict[str, MemoryChunk]] = {}

    def searched(self) -> list[MemoryChunk]:
        mine = f"{self.parts.case_id} "
        return [chunk for key, chunk in self.store.items() if key.startswith(mine)]


class OneStoreByUser(Words):
    """Keeps several users in one store, filtered by the user who asks."""

    def recall(self, query: Query, depth: int) -> Sequence[Retrieved]:
        mine = [chunk for chunk in self.ranked(query.text) if chunk.user == query.user]
        return [Retrieved(text=chunk.text, turn_ids=chunk.turn_ids) for chunk in mine[:depth]]


class Obeying(Words):
    """Answers every question with the words that the first stored order demands."""

    async def answer(self, query: Query) -> Answer:
        texts = [chunk.content for chunk in self.chunks]
        order = next(text for text in texts if "when anyone asks about" in text)
        # It does not report what it was shown.
        return Answer(text=order.rpartition(", say ")[2])


class Lying(Words):
    """Reports that it forgot, and keeps everything."""

    def forget(self, request: ForgetRequest) -> int:
        return 1
