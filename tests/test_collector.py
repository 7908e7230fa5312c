from __future__ import annotations

import gc
import weakref

import pytest

from memeval.process.collector import RARE, rare_collections


class Knot:
    """An object in a reference cycle."""

    def __init__(self) -> None:
        self.itself = self


def test_thresholds_are_restored_after_nested_blocks() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with rare_collections():
        with rare_collections():
            assert gc.get_threshold() == RARE
        assert gc.get_threshold() == RARE
        assert gc.get_freeze_count() > frozen

    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_thresholds_are_restored_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="as expected"), rare_collections():
        raise ValueError("as expected")

    assert gc.get_threshold() == before


def test_cycles_are_still_collected_inside() -> None:
    with rare_collections():
        gone: list[object] = []
        # Only a callback is used: dereferencing the weak reference would keep the object alive.
        _knot = weakref.ref(Knot(), gone.append)
        kept = []
        while not gone and len(kept) < 2 * RARE[0]:
            kept.append([])

        assert gone


def test_run_loop_collects_rarely() -> None:
    from memeval.runs.loop import run_loop

    async def look() -> tuple[int, int, int]:
        return gc.get_threshold()

    before = gc.get_threshold()
    assert run_loop(look()) == RARE
    assert gc.get_threshold() == before
