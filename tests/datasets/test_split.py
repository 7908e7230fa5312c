"""Dev and test are split by case, always the same way, disjoint and complete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from weakref import ref

import pytest

from memeval.config.paths import data_dir
from memeval.datasets.locate import build
from memeval.datasets.sampling import DEV_SHARE, side_of
from memeval.errors import UserError
from memeval.records import EvalCase, Session

LOCOMO_DEV = ["conv-26", "conv-30", "conv-47"]


def test_the_sides_of_locomo_are_pinned() -> None:
    numbers = (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)
    sides = {f"conv-{number}": side_of(f"conv-{number}") for number in numbers}
    assert [name for name, side in sides.items() if side == "dev"] == LOCOMO_DEV


def test_about_three_of_ten_cases_are_on_the_side_of_dev() -> None:
    dev = sum(side_of(f"h{index}") == "dev" for index in range(2000))
    assert dev / 2000 == pytest.approx(DEV_SHARE, abs=0.03)


def test_the_sides_are_disjoint_and_whole() -> None:
    ids = {}
    for split in ("all", "dev", "test"):
        dataset = build("demo", data_dir(), split=split)
        ids[split] = {case.case_id for case in dataset.cases()}

    assert ids["dev"] and ids["test"]
    assert not ids["dev"] & ids["test"] and ids["dev"] | ids["test"] == ids["all"]


def test_a_limit_counts_cases_of_the_side() -> None:
    first = next(iter(build("demo", data_dir(), split="test").cases())).case_id
    (case,) = build("demo", data_dir(), split="test", limit_cases=1).cases()
    assert case.case_id == first


def test_a_side_without_a_case_is_a_mistake(tmp_path: Path) -> None:
    (only,) = build("demo", data_dir(), limit_cases=1).cases()
    other = "test" if side_of(only.case_id) == "dev" else "dev"
    dataset = build("demo", data_dir(), split=other)
    dataset.read = lambda: iter([only])  # type: ignore[method-assign]
    with pytest.raises(UserError, match=f"dataset.split={other}: data set 'demo' has no cases"):
        list(dataset.cases())


class Watched(Session):
    """A session that a weak reference can be made to."""


def test_a_case_is_not_kept_while_the_next_one_is_read() -> None:
    first, second = build("demo", data_dir(), limit_cases=2).cases()
    gone = []

    def read() -> Iterator[EvalCase]:
        session = Watched(session_id="s", started_at=None, turns=())
        reference = ref(session)
        yield replace(first, sessions=(*first.sessions, session))
        del session
        gone.append(reference() is None)
        yield second

    dataset = build("demo", data_dir(), canaries=1, canary_seed=1)
    dataset.read = read  # type: ignore[method-assign]
    cases = dataset.cases()
    assert next(cases).case_id == first.case_id
    assert next(cases).case_id == second.case_id
    assert gone == [True]
