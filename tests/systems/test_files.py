"""`system=files`: what its tools show, that no other file can be read, and that no pattern blocks
it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks
from memeval.records import MemoryChunk, Query
from memeval.systems.base import SystemSettings
from memeval.systems.files.system import MAX_MATCHES, Files, has_match, lines_of
from memeval.systems.tools import ToolResult
from memeval.testing.sample import sample_case


def files(granularity: str = "turn") -> Files:
    """A `files` system that contains the sample conversation."""
    system = Files(SystemSettings(), None)  # type: ignore[arg-type] - it uses no part
    for chunk in chunks(sample_case(), GranularityConfig(granularity)):
        system.ingest(chunk)

    system.consolidate()
    return system


def use(system: Files, tool: str, **arguments: Any) -> ToolResult:
    (function,) = [entry.call for entry in system.tools() if entry.name == tool]
    result = function(**arguments)
    assert isinstance(result, ToolResult)
    return result


def test_each_session_is_a_file_with_its_date() -> None:
    lines = use(files(), "list_files").text.splitlines()
    assert lines[0] == "session_001_2021-03-04.txt  4 lines  Ilse, Tomas"
    assert [line.split()[0] for line in lines] == [
        "session_001_2021-03-04.txt",
        "session_002_2021-06-18.txt",
        "session_003_2021-11-02.txt",
    ]


def test_grep_shows_file_line_number_and_date() -> None:
    found = use(files(), "grep", pattern="KAYAK.*resin|bertil")
    first, second = found.text.splitlines()
    assert first.startswith("session_002_2021-06-18.txt:3: [")
    assert first.endswith("The first one is promised to my neighbour Bertil.")
    assert second.startswith("session_003_2021-11-02.txt:2: [")
    assert [chunk.turn_ids for chunk in found.retrieved or ()] == [("s2:3",), ("s3:2",)]
    assert "Tomas: Kayaks" in (found.retrieved or ())[0].text


@pytest.mark.parametrize(
    "path", ["session_003", "session_003_2021-11-02.txt", "./session_003*", "session_003_2021"]
)
def test_grep_can_be_limited_to_a_file(path: str) -> None:
    found = use(files(), "grep", pattern="Quill", path=path)
    assert len(found.text.splitlines()) == 1


def test_grep_reports_the_number_of_further_matches() -> None:
    system = files()
    chunk = chunks(sample_case(), GranularityConfig("turn"))[0]
    for number in range(100):
        system.ingest(replace(chunk, content=f"Ilse: Quill {number}"))

    system.consolidate()
    lines = use(system, "grep", pattern="quill \\d").text.splitlines()
    assert len(lines) == MAX_MATCHES + 1
    assert lines[-1] == "(50 more lines match: narrow the pattern or the path)"


def test_range_of_lines_can_be_read() -> None:
    found = use(files(), "read_file", path="session_001_2021-03-04.txt", from_line=2, lines=2)
    lines = found.text.splitlines()
    assert lines[0].startswith("2: [")
    assert lines[2] == "(1 more lines)"
    assert [chunk.turn_ids for chunk in found.retrieved or ()] == [("s1:2",), ("s1:3",)]
    assert use(files(), "read_file", path="index.txt").text.startswith("1: session_001")


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../session_001", "session_001/../../etc/passwd", "", "..", "a\0b", "x" * 9999],
)
def test_path_outside_the_session_files_is_refused(path: str) -> None:
    read = use(files(), "read_file", path=path)
    assert read.is_error
    assert read.text.startswith("There is no file")
    assert len(read.text) < 200
    if path:
        assert use(files(), "grep", pattern="root|Quill", path=path).is_error


def test_lines_past_the_end_are_an_error() -> None:
    read = use(files(), "read_file", path="session_001_2021-03-04.txt", from_line=50)
    assert (read.is_error, read.text) == (True, "The file has 4 lines.")


def test_a_saved_memory_has_the_same_files(tmp_path: Path) -> None:
    system, loaded = files(), Files(SystemSettings(), None)  # type: ignore[arg-type]
    system.save(tmp_path)
    loaded.load(tmp_path)
    assert use(loaded, "grep", pattern="quill") == use(system, "grep", pattern="quill")


def test_empty_memory_says_so_and_finds_nothing() -> None:
    system = Files(SystemSettings(), None)  # type: ignore[arg-type]
    system.consolidate()
    assert use(system, "list_files").text == "There are no files."
    assert use(system, "grep", pattern="a").is_error
    assert system.recall(Query("a"), 5) == []


@pytest.mark.parametrize(
    "path", ["index.txt", "./index.txt", "../ann", "/ann", ".ann", "a/b/c/d/e"]
)
def test_note_with_the_name_of_another_file_is_refused(path: str) -> None:
    system = Files(SystemSettings(), None)  # type: ignore[arg-type]
    written = use(system, "write_file", path=path, text="Ann moved.")
    assert written.is_error and written.text.startswith(f"'{path}' can't be a file of notes")
    assert system.dump() is None


def test_number_and_length_of_notes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memeval.systems.files.system.MAX_NOTES", 1)
    monkeypatch.setattr("memeval.systems.files.system.LONGEST_NOTE", 4)
    system = Files(SystemSettings(), None)  # type: ignore[arg-type]
    words = [("people/ann.txt", "one"), ("people/ann.txt", "2"), ("places.txt", "3")]
    assert [use(system, "write_file", path=path, text=text).text for path, text in words] == [
        "people/ann.txt has 1 lines.",
        "people/ann.txt has 1 lines.",
        "There are at most 1 files.",
    ]
    appended = [use(system, "append_file", path="people/ann.txt", text=text) for text in "34"]
    assert [result.text for result in appended] == [
        "people/ann.txt has 2 lines.",
        "A file has at most 4 characters.",
    ]


def test_each_line_of_a_session_belongs_to_its_turn() -> None:
    (first, *_) = chunks(sample_case(), GranularityConfig("session"))
    assert [line.turn_ids for line in lines_of(first)] == [(f"s1:{n}",) for n in range(1, 5)]
    assert all(line.text.startswith("[") for line in lines_of(first))


def test_lines_without_a_recognisable_turn_have_no_turn_ids() -> None:
    chunk = MemoryChunk("c", "one\ntwo\nthree", None, "s", ("t1", "t2"), ())
    assert [line.turn_ids for line in lines_of(chunk)] == [()] * 3
    several = MemoryChunk("c", "Ann: one\nmore\nBob: two", None, "s", ("t1", "t2"), ("Ann", "Bob"))
    assert [line.turn_ids for line in lines_of(several)] == [("t1",), ("t1",), ("t2",)]


def test_recall_without_tools_ranks_rare_words_first() -> None:
    found = files().recall(Query("Who gave Ilse a blue blanket?"), 3)
    assert "blue blanket" in found[0].text
    assert found[0].turn_ids == ("s1:3",)
    assert [chunk.score for chunk in found] == sorted(
        (chunk.score or 0.0 for chunk in found), reverse=True
    )


def test_recall_finds_a_word_that_every_chunk_contains() -> None:
    system = Files(SystemSettings(), None)  # type: ignore[arg-type] - it uses no part
    system.ingest(MemoryChunk("c1", "Ilse: I build kayaks.", None, "s1", ("s1:1",), ("Ilse",)))
    assert [chunk.turn_ids for chunk in system.recall(Query("Kayaks?"), 5)] == [("s1:1",)]
    assert system.recall(Query("Violins?"), 5) == []


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("puppy|dog", "The DOG barked", True),
        (r"\bdog\b", "dogs", False),
        (r"\Bog", "dog", True),
        (r"(?i)Dog", "dog", True),
        (r"a\.b", "a.b", True),
        (r"a\.b", "axb", False),
        (r"[A-C]x", "bx", True),
        (r"[^\d\s]", "12 3", False),
        (r"[]x]", "]", True),
        (r"[a-]", "-", True),
        ("a{", "a{", True),
        ("a{x}", "a{x}", True),
        (r"\d{4}-\d{2}", "on 2021-03-04", True),
        ("", "anything", True),
        (r"\AQ", "Quill", True),
        (r"[\]]", "]", True),
        ("ü", "Über", True),
    ],
)
def test_patterns_match_as_in_re(pattern: str, text: str, matches: bool) -> None:
    assert has_match(pattern, [text]) == [matches]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a", "missing ): (a"),
        ("a)", "unexpected ): a)"),
        ("[a", "missing ]: [a"),
        ("*a", "no argument for repetition operator: *"),
        ("a\\", "trailing \\"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(?=a)", "invalid perl operator: (?="),
        ("a{1,2000}", "invalid repetition size: {1,2000}"),
        ("x" * 501, "it has more than 500 characters"),
        ("((a{100}){100}){100}", "invalid repetition size: {100}"),
    ],
)
def test_invalid_pattern_is_an_error(pattern: str, why: str) -> None:
    found = use(files(), "grep", pattern=pattern)
    assert found.is_error
    assert why in found.text


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*b", "(a?){30}a{30}b", ".*.*.*.*.*x", "(.*)*y", "([a-z]+)*1", "(a*)*(a*)*b"],
)
def test_a_hostile_pattern_takes_linear_time(pattern: str) -> None:
    # Python's own engine would not finish in any reasonable time.
    assert has_match(pattern, ["a" * 100_000 + "!"]) == [False]


def test_lone_surrogate_is_allowed_in_a_text_but_not_in_a_pattern() -> None:
    assert has_match("b", ["a\ud800b", "c"]) == [True, False]
    assert use(files(), "grep", pattern="b\ud800").is_error
