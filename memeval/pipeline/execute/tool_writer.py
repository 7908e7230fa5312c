"""The writer under `writer=tools`: a model reads each session, and writes with memory tools."""

from collections import Counter
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, groupby
from operator import attrgetter
from typing import Any

from msgspec import structs

from memeval.errors import MemevalError
from memeval.llm.contract import SessionPrompt, ToolPrompt
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import PromptTemplate
from memeval.llm.tokens import batches
from memeval.metrics.quotation import Quotations, lines_of_turns
from memeval.pipeline.execute.question import step_times
from memeval.pipeline.execute.tool_loop import ToolLimits, ToolLoop
from memeval.pipeline.execute.tool_reader import as_function, complete_by, open_tools, step_rows
from memeval.pipeline.execute.tool_results import entries_of
from memeval.pipeline.isolate.watch import Watched
from memeval.records import MemoryChunk, OperationKind, Role
from memeval.results.rows import Written, WrittenSession
from memeval.results.steps import by_reference
from memeval.results.texts import clean
from memeval.systems.base import MemorySystem, SystemContext
from memeval.systems.chunk_file import iso_time
from memeval.systems.indexed import IndexedSystem
from memeval.systems.tools import DELETE, UPDATE, Tool, delete_tool, object_schema, update_tool
from memeval.text.names import text_digest

FORGET, CORRECT = CHANGES = (OperationKind.FORGET.value, OperationKind.CORRECT.value)
ADD = "add_memory"
"""Name of the tool that is added to memories without a tool for writing."""
SHOWN = 10
"""`top_k` while the memory is written, for any `top_k` of the run: all such runs share it."""


@contextmanager
def _same_top_k(system: MemorySystem) -> Iterator[None]:
    parts = getattr(system, "parts", None)
    if not isinstance(parts, SystemContext):  # a class that did not keep them
        yield
        return

    system.parts = replace(parts, top_k=SHOWN)
    try:
        yield
    finally:
        system.parts = parts


class CaseWriter:
    def __init__(
        self,
        watched: Watched,
        *,
        model: LanguageModel,
        template: PromptTemplate,
        limits: ToolLimits,
        session_tokens: int,
        seed: int,
        changes: bool = False,
    ) -> None:
        """`limits` apply to each part that is read: at most `session_tokens` of a session. With
        `changes`, the model may delete and update what it wrote, if the memory supports it.
        """
        self._changes = changes
        self._watched, self._template, self._limits = watched, template, limits
        self._session_tokens = session_tokens
        self._complete = complete_by(model, Role.INGEST, seed)
        self._began_empty = False
        self._turn_texts: dict[str, str] = {}
        self._notes: list[MemoryChunk] = []
        self._counts: Counter[str] = Counter()
        self._sessions: list[WrittenSession] = []
        self._changed = False

    async def write(self, chunks: Sequence[MemoryChunk], *, begins: bool) -> None:
        """Reads the sessions of some chunks, one after the other.

        `begins` empties the memory first. Raises `ModelError` if a call of the model failed, and
        `WorldError` if the memory is unreachable.
        """
        if begins:
            self._began_empty = True
            await self._watched.call("reset")
            # The model's tools may search the memory while it is empty.
            await self._watched.call("consolidate")

        with _same_top_k(self._watched.system):
            await self._read_sessions(chunks)

    async def _read_sessions(self, chunks: Sequence[MemoryChunk]) -> None:
        tools = await open_tools(self._watched)
        if self._changes:
            known = {tool.name for tool in tools}
            tools += tuple(tool for tool in self._change_tools() if tool.name not in known)

        for _, session in groupby(chunks, key=lambda chunk: chunk.session_id):
            for part in batches(session, attrgetter("text"), self._session_tokens):
                await self._read(part, tools)

            await self._watched.call("consolidate")

    async def _read(self, part: Sequence[MemoryChunk], tools: Sequence[Tool]) -> None:
        turn_texts: dict[str, str] = {}
        for chunk in part:
            turn_texts.update(lines_of_turns(chunk.content, chunk.turn_ids, chunk.speakers))

        self._turn_texts |= turn_texts
        quotations = Quotations(turn_texts)
        writing = {tool.name for tool in tools if tool.writes}
        if not writing - {DELETE, UPDATE}:
            writing.add(ADD)
            tools = [*tools, self._note_tool(part[0], quotations)]

        loop = ToolLoop(tools, self._limits, complete=self._complete, use=self._watched.use)
        session = SessionPrompt(
            context=tuple(chunk.text for chunk in part),
            system_text=self._template.system,
            user_template=self._template.user,
        )
        prompt = ToolPrompt(asked=session, instructions="", tools=tuple(map(as_function, tools)))
        await loop.run_writing(prompt)
        self._counts["read_characters"] += sum(len(chunk.content) for chunk in part)
        self._note_work(part[0].session_id, loop, writing, quotations)

    def _note_work(
        self, session_id: str, loop: ToolLoop, writing: Collection[str], quotations: Quotations[str]
    ) -> None:
        """Adds a loop to the figures; `writing` has the names of the tools that write."""
        writes = faults = 0
        for call in loop.calls:
            self._changed |= call.name in (DELETE, UPDATE)
            writes += call.fault is None and call.name in writing
            faults += call.fault is not None

        made_steps = step_rows(
            loop.steps, lambda call: quotations.found_in("\n".join(entries_of(call.arguments)))
        )
        session = WrittenSession(
            session_id=session_id,
            steps=len(loop.steps),
            calls=len(loop.calls),
            writes=writes,
            faults=loop.count_faults(),
            limited=loop.step_limit,
            made=by_reference(made_steps, clean),
            times=step_times(loop),
        )
        self._sessions.append(session)
        self._counts.update(
            steps=session.steps,
            calls=session.calls,
            faults=faults,
            writes=writes,
            limited=int(loop.step_limit),
        )

    def _change_tools(self) -> Iterator[Tool]:
        system = self._watched.system
        offered = getattr(getattr(system, "settings", None), "offered", CHANGES)
        base: Any = MemorySystem
        # The rule for chunks does not apply to a model's notes about them.
        if isinstance(system, IndexedSystem) and not system.keeps_only_chunks:
            base = IndexedSystem

        for name, make in ((FORGET, delete_tool), (CORRECT, update_tool)):
            method = getattr(type(system), name)
            is_overridden = method not in (getattr(MemorySystem, name), getattr(base, name))
            if is_overridden and name in offered:
                yield make(getattr(system, name))

    def _note_tool(self, first: MemoryChunk, quotations: Quotations[str]) -> Tool:
        """A tool that stores a note as a chunk of the session, with the turns that it quotes."""
        numbers = count(1)

        def add_memory(text: str) -> str | Awaitable[str]:
            if not text.strip():
                raise ValueError("the note is empty")

            note = MemoryChunk(
                # Another writer continues the memory from a checkpoint: different notes of the same
                # turns, such as after a repeated import, must not share an id.
                chunk_id=f"{first.chunk_id}/note-{next(numbers)}-{text_digest(text)[:8]}",
                content=text,
                time=first.time,
                session_id=first.session_id,
                turn_ids=quotations.found_in(text),
                speakers=(),
            )
            self._notes.append(note)
            stored = self._watched.system.ingest(note)
            return "Stored." if stored is None else _await_stored(stored)

        return Tool(
            name=ADD,
            description=(
                "Stores one note. It is found later by its words. The date of the session is kept "
                "with it."
            ),
            parameters=object_schema(required=["text"], text={"type": "string"}),
            call=add_memory,
            writes=True,
        )

    async def items(self) -> Sequence[Mapping[str, Any]] | None:
        """Items that the memory lists, or else the notes; None if neither is known.

        Raises any error of its `dump`.
        """
        listed = await self._watched.call("dump")
        if listed is not None:
            return list(listed)
        # A continued memory contains notes of another writer, too; a changed one may have lost
        # some.
        is_changed = self._changed or not self._began_empty
        if not self._notes or is_changed:
            return None

        items = []
        for note in self._notes:
            time, turn_ids = iso_time(note.time), list(note.turn_ids)
            items.append({"kind": "note", "text": note.content, "turn_ids": turn_ids, "time": time})

        return items

    async def written(self) -> Written:
        """Figures of the written content."""
        try:
            items = await self.items()
        except (MemevalError, TypeError):
            items = None  # only the figures need the list

        counts = self._counts
        written = Written(
            steps=counts["steps"],
            calls=counts["calls"],
            faults=counts["faults"],
            writes=counts["writes"],
            limited=counts["limited"],
            read_characters=counts["read_characters"],
            sessions=tuple(self._sessions),
        )
        if items is None:
            return written

        texts = [str(item.get("text", "")) for item in items if isinstance(item, Mapping)]
        return structs.replace(
            written,
            items=len(texts),
            characters=sum(map(len, texts)),
            quoted=Quotations(self._turn_texts).found_in("\n".join(texts)),
        )


async def _await_stored(stored: Awaitable[None]) -> str:
    await stored
    return "Stored."
