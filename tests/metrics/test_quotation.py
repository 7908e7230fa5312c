"""Which turns a tool's result quotes."""

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
        # Ten words have six 5-grams; without the first word five of them remain, 83 %.
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
def test_turn_is_quoted_if_most_of_its_ngrams_occur(result: str, quoted: tuple[str, ...]) -> None:
    assert Quotations(TURNS).found_in(result) == quoted


def test_repeated_ngram_of_a_turn_counts_once() -> None:
    text = "la la la la la la la la la la and then she went home"
    # The 5-gram of la counts once: of six n-grams in all, first four and then five occur.
    assert Quotations({"t": text}).found_in("la la la la la and then she") == ()
    assert Quotations({"t": text}).found_in("la la la la la and then she went") == ("t",)


def test_all_quoted_turns_are_found_in_a_long_result() -> None:
    turns = {n: f"turn {n} says word{n} and nothing else at all" for n in range(2000)}
    result = " ".join(turns[n] for n in range(0, 2000, 2))
    assert Quotations(turns).found_in(result) == tuple(range(0, 2000, 2))
