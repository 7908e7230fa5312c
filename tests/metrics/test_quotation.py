"""Which turns a result quotes."""

from __future__ import annotations

import pytest

from memeval.metrics.quotation import Quotations

TURNS = {
    "t1": "Yesterday I signed the lease for a workshop in Aarhus.",
    "t2": "Congratulations!",
    "t3": "Kayaks, from cedar.",
    "t4": "...",
    "t5": "猫の名前はミケです。",
}


@pytest.mark.parametrize(
    ("result", "quoted"),
    [
        ("[20:05] Tomas: yesterday, I signed the lease for a workshop in Aarhus", ("t1",)),
        # Ten words have six 5-grams: without the first word, five of them are left, 83 %.
        ("I signed the lease for a workshop in Aarhus", ("t1",)),
        ("signed the lease for a workshop in Aarhus", ()),
        ("in Aarhus a workshop for the lease I signed yesterday", ()),
        ("He builds kayaks from cedar. Congratulations.", ("t2", "t3")),
        ("Kayaks from old cedar", ()),
        ("She said: 猫の名前はミケです", ("t5",)),
        ("", ()),
        ("...", ()),
    ],
)
def test_a_turn_is_quoted_if_most_of_its_words_are_there(
    result: str, quoted: tuple[str, ...]
) -> None:
    assert Quotations(TURNS).found_in(result) == quoted


def test_a_run_that_is_said_twice_counts_once() -> None:
    text = "la la la la la la la la la la and then she went home"
    # The run of la counts once: six grams in all, of which four and then five are there.
    assert Quotations({"t": text}).found_in("la la la la la and then she") == ()
    assert Quotations({"t": text}).found_in("la la la la la and then she went") == ("t",)


def test_a_long_result_is_searched_in_one_pass() -> None:
    turns = {n: f"turn {n} says word{n} and nothing else at all" for n in range(2000)}
    result = " ".join(turns[n] for n in range(0, 2000, 2))
    assert Quotations(turns).found_in(result) == tuple(range(0, 2000, 2))
