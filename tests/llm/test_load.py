"""Loads of an endpoint, and how long an exchange with it took."""

from __future__ import annotations

from memeval.llm.exchange import Exchange
from memeval.llm.load import Load, sum_of


def test_loads_of_several_processes_are_one() -> None:
    first = Load(2, under_way=1, calls=5, waits=3, retries=2, failures=1, busy_s=4.0, began=1.0)
    first.ended, first.worked_s = 6.0, 0.5
    second = Load(3, under_way=2, calls=7, waits=1, retries=1, failures=2, busy_s=2.0, began=0.5)
    second.ended, second.worked_s = 5.0, 0.75
    unused = Load(100)
    both = Load(5, under_way=3, calls=12, waits=4, retries=3, failures=3, busy_s=6.0, began=0.5)
    both.ended, both.worked_s = 6.0, 0.75

    assert sum_of([first, unused, second]) == both
    assert sum_of([unused, unused]) == unused


def test_an_exchange_lasts_from_the_last_byte_sent_to_the_last_that_arrived() -> None:
    assert Exchange(1.0, sent=2.0, arrived=4.5).seconds() == 2.5
    # The time of arrival is only known to a few milliseconds.
    assert Exchange(1.0, sent=2.0, arrived=1.999).seconds() == 0.0
