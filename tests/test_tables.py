"""`make test` runs only a part of long tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from tables import leave_out


@dataclass
class Case:
    """A case as collected by pytest, with the members that `leave_out` uses."""

    nodeid: str
    kept: int | None = None
    is_slow: bool = field(default=False, init=False)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        assert name == "sampled"
        return pytest.mark.sampled(kept=self.kept).mark if self.kept else None

    def add_marker(self, marker: Any) -> None:
        assert marker.name == "slow"
        self.is_slow = True


def left(*cases: Case) -> list[str]:
    leave_out(cast("list[pytest.Item]", cases))
    return [case.nodeid for case in cases if not case.is_slow]


def test_kept_cases_are_spread_over_the_table() -> None:
    table = [Case(f"a.py::test_it[{number}]", kept=3) for number in range(10)]
    assert left(*table) == ["a.py::test_it[0]", "a.py::test_it[3]", "a.py::test_it[6]"]


def test_each_test_keeps_cases_of_its_own_table() -> None:
    cases = [Case(f"a.py::{name}[{number}]", kept=1) for name in "fg" for number in range(4)]
    assert left(*cases, Case("a.py::alone")) == ["a.py::f[0]", "a.py::g[0]", "a.py::alone"]


def test_a_table_that_is_short_is_kept_whole() -> None:
    assert len(left(*(Case(f"a.py::test_it[{number}]", kept=5) for number in range(3)))) == 3
