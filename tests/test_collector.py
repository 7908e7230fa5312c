from __future__ import annotations

import gc
import weakref

import pytest

from memeval.process.collector import RARE, rare_collections


class Knot:
    """An object in a cycle."""

    def __init__(self) -> None:
        self.itself = self


def test_all_is_as_before_after_nested_blocks() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with rare_collections():
        with rare_collections():
            assert gc.get_threshold() == RARE
        assert gc.get_threshold() == RARE
        assert gc.get_freeze_count() > frozen

    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_all_is_as_before_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="as expected"), rare_collections():
        raise ValueError("as expected")

    assert gc.get_threshold() == before


def test_cycles_are_still_collected_inside() -> None:
    with rare_collections():
        gone: list[object] = []
        # It is only asked whether it is gone: while a look at it holds it, it can't be collected.
        _knot = weakref.ref(Knot(), gone.append)
        kept = []
        while not gone and len(kept) < 2 * RARE[0]:
            kept.append([])

        assert gone


def test_a_run_collects_rarely() -> None:
    from memeval.runs.loop import run_loop

    async def look() -> tuple[int, int, int]:
        return gc.get_threshold()

    before = gc.get_threshold()
    assert run_loop(look()) == RARE
    assert gc.get_threshold() == before
