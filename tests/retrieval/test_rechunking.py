from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.records import MemoryChunk
from memeval.retrieval.rechunking import rechunk, windows

TIME = datetime(2023, 5, 8, 13, 56)


def turn(name: str, text: str, session: str = "s1") -> MemoryChunk:
    return MemoryChunk(name, f"Ann: {text}", TIME, session, (name,), ("Ann",))


@given(st.text(st.sampled_from("ab c\nd"), max_size=200), st.integers(1, 40), st.data())
def test_windows_cover_every_word_and_keep_to_the_size(
    text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    found = list(windows(text, size, overlap))
    assert all(0 < end - start <= size for start, end in found)
    assert all(
        later[0] > earlier[0] and later[1] > earlier[1] for earlier, later in pairwise(found)
    )
    covered = {position for start, end in found for position in range(start, end)}
    assert all(position in covered for position, letter in enumerate(text) if not letter.isspace())


def test_windows_cut_between_words() -> None:
    text = "alpha beta gamma delta epsilon"
    assert [text[start:end] for start, end in windows(text, 13, 5)] == [
        "alpha beta ",
        "beta gamma ",
        "delta epsilon",
    ]
    # A window begins with a word, and has one that the window before does not have.
    assert list(windows("ab cd", 2, 0)) == [(0, 2), (3, 5)]
    assert list(windows("a b cdefg", 5, 2)) == [(0, 4), (4, 9)]


def test_a_word_longer_than_a_window_is_cut() -> None:
    assert [end - start for start, end in windows("x" * 25, 10, 0)] == [10, 10, 5]


def test_new_chunks_have_turns_and_stay_within_a_session() -> None:
    found = rechunk(
        [turn("D1:1", "one two three"), turn("D1:2", "four five six"), turn("D2:1", "seven", "s2")],
        24,
        0,
    )
    assert [(chunk.content, chunk.turn_ids, chunk.session_id) for chunk in found] == [
        ("Ann: one two three\nAnn:", ("D1:1", "D1:2"), "s1"),
        ("four five six", ("D1:2",), "s1"),
        ("Ann: seven", ("D2:1",), "s2"),
    ]
    assert found[1].text == "[1:56 pm on 8 May 2023] four five six"


def test_turns_of_a_multi_turn_chunk_are_recognised_by_line() -> None:
    whole = MemoryChunk(
        "s1", "Ann: one two\nBob: three four", TIME, "s1", ("D1:1", "D1:2"), ("Ann", "Bob")
    )
    assert [chunk.turn_ids for chunk in rechunk([whole], 13, 0)] == [
        ("D1:1",),
        ("D1:2",),
        ("D1:2",),
    ]


def test_turns_with_line_breaks_are_not_separated() -> None:
    whole = MemoryChunk(
        "s1", "Ann: one\ntwo\nBob: three", TIME, "s1", ("D1:1", "D1:2"), ("Ann", "Bob")
    )
    *of_both, last = rechunk([whole, turn("D1:3", "four")], 9, 0)
    assert {chunk.turn_ids for chunk in of_both} == {("D1:1", "D1:2")}
    assert (last.content, last.turn_ids) == ("Ann: four", ("D1:3",))


@pytest.mark.parametrize("size", [20, 60, 500])
def test_chunk_lists_every_turn_whose_words_it_contains(size: int) -> None:
    turns = [turn(f"D1:{number}", f"word{number}x and word{number}y") for number in range(1, 30)]
    for chunk in rechunk(turns, size, size // 3):
        assert set(chunk.turn_ids) >= {
            f"D1:{n}"
            for n in range(1, 30)
            if f"word{n}x" in chunk.content or f"word{n}y" in chunk.content
        }
