"""The file-system baseline: the conversation as text files, with tools to list, search and read
them, and to write notes.

Source of the comparison: Letta, "Benchmarking AI Agent Memory: Is a Filesystem All You Need?",
2025.
"""

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, compress
from operator import ne
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow.compute import match_substring_regex  # type: ignore[import-untyped]

from memeval.records import Answer, CorrectRequest, ForgetRequest, MemoryChunk, Query, Retrieved
from memeval.systems.base import DumpItem, RecallSystem
from memeval.systems.chunk_file import ChunkSystem, as_retrieved, read_state, write_state
from memeval.systems.forgetting import corrected, is_meant, without
from memeval.systems.tools import Tool, ToolResult, object_schema
from memeval.text.value_search import replace_value
from memeval.text.words import search_terms

INDEX = "index.txt"
MAX_MATCHES = 50
"""Maximum lines that one `grep` shows."""
LONGEST_PATTERN = 500
"""Maximum characters of the pattern of a `grep`."""
MAX_LINES = 400
"""Maximum lines that one `read_file` shows."""
USUAL_LINES = 100
MAX_NOTES = 1_000
"""Maximum files that the writer may create."""
LONGEST_NOTE = 200_000
"""Maximum characters of one of these files."""
NOTES_FILE = "notes.json"
_PART = r"[A-Za-z0-9_-][A-Za-z0-9_. -]{0,79}"
_NOTE_NAME = re.compile(rf"{_PART}(?:/{_PART}){{0,3}}")

_GREP_PARAMETERS = {
    "pattern": {
        "type": "string",
        "description": "What a line must hold, in RE2's syntax, such as puppy|dog.",
    },
    "path": {
        "type": "string",
        "description": "A file, or how the names of files begin; all by default.",
    },
}
_READ_PARAMETERS: dict[str, dict[str, object]] = {
    "path": {"type": "string", "description": "The file, as list_files names it."},
    "from_line": {"type": "integer", "minimum": 1, "description": "The first line, 1 by default."},
    "lines": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_LINES,
        "description": f"How many lines, {USUAL_LINES} by default.",
    },
}
_WRITE_PARAMETERS = {
    "path": {"type": "string", "description": "The file, such as people/ann.txt."},
    "text": {"type": "string", "description": "What to write."},
}


Lines = tuple[Retrieved, ...]
"""The lines of a file, each with its date and its turn, if these are known."""


class Files(ChunkSystem, RecallSystem):
    """One text file per session, with dated names, and an index of them.

    Under `writer=tools` there are only the files that the writer made. All files are kept in
    memory, so a path can't name anything else. Under `reader=direct` it shows the chunks, or the
    lines of notes, that contain the rarest words of the question.
    """

    def reset(self) -> None:
        super().reset()
        self._notes: dict[str, str] = {}
        self._files: dict[str, Lines] = {}

    def consolidate(self) -> None:
        self._files = write_files(self._chunks, self._notes)

    def forget(self, request: ForgetRequest) -> int:
        """Removes chunks, and lines of notes."""
        before = len(self._entries())
        self._chunks = without(self._chunks, request)
        self._change_notes(lambda line: None if is_meant(request, line) else line)
        return before - len(self._entries())

    def correct(self, request: CorrectRequest) -> int:
        before = self._entries()
        self._chunks = corrected(self._chunks, request)
        self._change_notes(lambda line: replace_value(line, request.old, request.new))
        return sum(map(ne, before, self._entries()))

    def _change_notes(self, change: Callable[[str], str | None]) -> None:
        """Changes each line of the notes, or removes it, and writes the files again."""
        for name, text in self._notes.items():
            lines = map(change, text.splitlines())
            self._notes[name] = "\n".join(line for line in lines if line is not None)

        self.consolidate()

    def save(self, folder: Path) -> None:
        super().save(folder)
        write_state(folder / NOTES_FILE, self._notes)

    def load(self, folder: Path) -> None:
        super().load(folder)
        self._notes = read_state(folder / NOTES_FILE)
        self.consolidate()

    def recall(self, query: Query, depth: int) -> list[Retrieved]:
        entries = self._entries()
        words = set(search_terms(query.text))
        found_words = [words.intersection(search_terms(content)) for content, _ in entries]
        counts = Counter(chain.from_iterable(found_words))
        rarity = {word: math.log(len(entries) / count) for word, count in counts.items()}
        scores = [sum(map(rarity.__getitem__, sorted(words_held))) for words_held in found_words]

        best = sorted(range(len(entries)), key=lambda at: -scores[at])[:depth]
        return [replace(entries[at][1], score=scores[at]) for at in best if found_words[at]]

    def _entries(self) -> list[tuple[str, Retrieved]]:
        """Entries that `recall` ranks, each with the text that is searched."""
        entries = [(chunk.content, as_retrieved(chunk)) for chunk in self._chunks]
        for text in self._notes.values():
            lines = filter(None, map(str.strip, text.splitlines()))
            entries += [(line, Retrieved(line, ())) for line in lines]

        return entries

    async def answer(self, query: Query) -> Answer:
        answer = await super().answer(query)
        # The turns that a note comes from are unknown.
        return replace(answer, ranking=None) if self._notes else answer

    def dump(self) -> list[DumpItem] | None:
        """The notes, if any."""
        notes: list[DumpItem] = [
            {"kind": "file", "text": text, "name": name} for name, text in self._notes.items()
        ]
        return notes or None

    def tools(self) -> Sequence[Tool]:
        return (
            Tool(
                name="list_files",
                description=(
                    "Lists the files of past conversations: one per session, with its date, its "
                    "speakers and its number of lines."
                ),
                parameters=object_schema(),
                call=self._list_files,
            ),
            Tool(
                name="grep",
                description=(
                    "Searches the files for lines that match a regular expression, in upper or "
                    f"lower case. Shows at most {MAX_MATCHES} lines, as FILE:LINE: text."
                ),
                parameters=object_schema(required=["pattern"], **_GREP_PARAMETERS),
                call=self._grep,
            ),
            Tool(
                name="read_file",
                description="Reads lines of one file.",
                parameters=object_schema(required=["path"], **_READ_PARAMETERS),
                call=self._read_file,
            ),
            Tool(
                name="append_file",
                description="Writes text at the end of a file of notes, which is made if needed.",
                parameters=object_schema(required=["path", "text"], **_WRITE_PARAMETERS),
                call=self._append_file,
                writes=True,
            ),
            Tool(
                name="write_file",
                description="Makes a file of notes, or replaces all of its text.",
                parameters=object_schema(required=["path", "text"], **_WRITE_PARAMETERS),
                call=self._write_file,
                writes=True,
            ),
        )

    def _append_file(self, path: str, text: str) -> ToolResult:
        before = self._notes.get(_plain(path), "")
        return self._write_file(path, f"{before.rstrip()}\n{text}".lstrip())

    def _write_file(self, path: str, text: str) -> ToolResult:
        name = _plain(path)
        if not _NOTE_NAME.fullmatch(name) or name == INDEX:
            problem = f"'{path[:100]}' can't be a file of notes: letters, digits, _ - . and /"
            return ToolResult(f"{problem}, such as people/ann.txt.", is_error=True)
        if len(text) > LONGEST_NOTE:
            return ToolResult(f"A file has at most {LONGEST_NOTE:,} characters.", is_error=True)
        if name not in self._notes and len(self._notes) >= MAX_NOTES:
            return ToolResult(f"There are at most {MAX_NOTES:,} files.", is_error=True)

        self._notes[name] = text
        self.consolidate()
        return ToolResult(f"{name} has {len(self._files[name]):,} lines.")

    def _list_files(self) -> ToolResult:
        index = self._files.get(INDEX, ())
        return ToolResult("\n".join(line.text for line in index) or "There are no files.")

    def _grep(self, pattern: str, path: str = "") -> ToolResult:
        start = _plain(path).rstrip("*/")
        names = [name for name in self._files if name.startswith(start) and name != INDEX]
        if not names:
            return _no_file(path)

        lines: list[tuple[str, int, Retrieved]] = []
        for name in names:
            numbered = enumerate(self._files[name], start=1)
            lines += [(name, number, line) for number, line in numbered]

        try:
            is_match = has_match(pattern, [line.text for _, _, line in lines])
        except ValueError as error:
            return ToolResult(f"The pattern can't be used: {error}.", is_error=True)

        matches = list(compress(lines, is_match))

        rows, shown = [], []
        for name, number, line in matches[:MAX_MATCHES]:
            rows.append(f"{name}:{number}: {line.text}")
            shown.append(line)

        if len(matches) > MAX_MATCHES:
            more = len(matches) - MAX_MATCHES
            rows.append(f"({more:,} more lines match: narrow the pattern or the path)")

        return ToolResult("\n".join(rows) or "No line matches.", tuple(shown))

    def _read_file(self, path: str, from_line: int = 1, lines: int = USUAL_LINES) -> ToolResult:
        file = self._files.get(_plain(path))
        if file is None:
            return _no_file(path)

        first = from_line - 1
        shown = file[first : first + lines]
        if not shown:
            return ToolResult(f"The file has {len(file):,} lines.", is_error=True)

        rows = [f"{number}: {line.text}" for number, line in enumerate(shown, start=from_line)]
        left = len(file) - first - len(shown)
        if left:
            rows.append(f"({left:,} more lines)")

        return ToolResult("\n".join(rows), shown)


def has_match(pattern: str, texts: Sequence[str]) -> list[bool]:
    """For each text, whether a part matches, ignoring case. Raises `ValueError` for the pattern.

    RE2, because Python's own engine may take forever on a pattern from a model or from a text that
    it read.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"it has more than {LONGEST_PATTERN} characters")

    utf8 = [text.encode("utf-8", "replace") for text in texts]
    ends = array("q", accumulate(map(len, utf8), initial=0))
    # `pa.array` imports pandas, which would be most of a run's first search.
    column = pa.LargeStringArray.from_buffers(
        len(utf8), pa.py_buffer(ends), pa.py_buffer(b"".join(utf8))
    )
    return list(map(bool, match_substring_regex(column, pattern, ignore_case=True).to_pylist()))


def write_files(chunks: Sequence[MemoryChunk], notes: Mapping[str, str]) -> dict[str, Lines]:
    """The index, the files of the sessions in their order, and those of the notes, all by name."""
    sessions: dict[str, list[MemoryChunk]] = {}
    for chunk in chunks:
        sessions.setdefault(chunk.session_id, []).append(chunk)

    files: dict[str, Lines] = {}
    index = []
    for number, of_session in enumerate(sessions.values(), start=1):
        lines: list[Retrieved] = []
        speakers: dict[str, None] = {}
        for chunk in of_session:
            lines += lines_of(chunk)
            speakers |= dict.fromkeys(chunk.speakers)

        name = file_name(number, of_session)
        files[name] = tuple(lines)
        entry = f"{name}  {len(lines):,} lines  {', '.join(speakers)}".rstrip()
        index.append(Retrieved(entry, ()))

    for name, text in notes.items():
        files[name] = tuple(Retrieved(line, ()) for line in text.splitlines())
        index.append(Retrieved(f"{name}  {len(files[name]):,} lines", ()))

    return {INDEX: tuple(index), **files} if files else {}


def file_name(number: int, chunks: Sequence[MemoryChunk]) -> str:
    """`session_003_2023-05-08.txt`; without the date if it is not known."""
    time = chunks[0].time
    date = f"_{time:%Y-%m-%d}" if time else ""
    return f"session_{number:03d}{date}.txt"


def lines_of(chunk: MemoryChunk) -> list[Retrieved]:
    """The lines of a chunk, each with the chunk's date and its own turn."""
    stamp = chunk.text.removesuffix(chunk.content)
    texts = [text for text in chunk.content.splitlines() if text.strip()]
    turns = _turns_of(texts, chunk)
    return [Retrieved(stamp + text, turn) for text, turn in zip(texts, turns, strict=True)]


def _turns_of(texts: Sequence[str], chunk: MemoryChunk) -> list[tuple[str, ...]]:
    """The turn of each line of a chunk; empty tuples if they can't be told apart."""
    if len(chunk.turn_ids) == 1:
        return [chunk.turn_ids] * len(texts)

    # A turn may have several lines; the first one begins with its speaker.
    starts = tuple(f"{speaker}: " for speaker in chunk.speakers)
    turns, begun = [], 0
    for text in texts:
        begun += text.startswith(starts)
        # None before the first turn has begun.
        turns.append(chunk.turn_ids[max(0, begun - 1) : begun])

    return turns if begun == len(chunk.turn_ids) else [()] * len(texts)


def _plain(path: str) -> str:
    return path.strip().removeprefix("./")


def _no_file(path: str) -> ToolResult:
    return ToolResult(f"There is no file '{path[:100]}'. list_files names them.", is_error=True)
