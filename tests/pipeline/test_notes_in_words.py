"""Notes are sentences, without Python reprs."""

from __future__ import annotations

import pytest

from memeval.pipeline.measure.run_notes import in_words, notes_by_name
from memeval.systems.cogcanvas.system import describe_losses


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"unreadable": 3, "cut": 1}, "unreadable 3, cut 1"),
        ({"a": {"b": [1, 2]}}, "a b 1, 2"),
        (["x", None, True], "x, none, yes"),
        (7, "7"),
        ("as it is", "as it is"),
    ],
)
def test_values_are_put_in_words(value: object, words: str) -> None:
    assert in_words(value) == words


def test_each_kind_of_note_is_counted_and_has_a_few_examples() -> None:
    notes = [{"noise": f"{min(number, 3)} lines", "form": "odd"} for number in range(9)]
    notes.append({"cut_chunks": "4"})
    assert list(notes_by_name(notes, "of 10 answers")) == [
        "form: odd (9 of 10 answers)",
        "noise: 3 lines (6 of 10 answers)",
        "noise: 0 lines (1 of 10 answers)",
        "noise: 1 lines (1 of 10 answers)",
        "noise: others like these (1 of 10 answers)",
    ]


def test_losses_have_their_denominators() -> None:
    counts = {"calls": 37, "unreadable": 11, "cut": 1, "unknown_type": 2, "repaired": 5}
    assert describe_losses(counts) == (
        "11 of 37 replies unreadable, 1 of 37 replies broken off, 2 artifacts of an unknown type"
    )
    assert describe_losses({"calls": 37}) == ""
