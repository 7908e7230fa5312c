"""Every built-in system keeps to the contract that plug-in authors are held to."""

from __future__ import annotations

from memeval.systems.contract import MemorySystem, Parts
from memeval.systems.registry import BUILT_IN, build_system
from memeval.testing.contract import MemorySystemContract

ELSEWHERE = {"letta"}
"""Systems whose server the suite can't stand in for; their own tests run against a double of it."""


def suite(name: str) -> type[MemorySystemContract]:
    class Suite(MemorySystemContract):
        bound_by_top_k = name != "oracle"

        def build(self, parts: Parts) -> MemorySystem:
            return build_system(name, {}, parts)

    Suite.__name__ = Suite.__qualname__ = f"Test{''.join(word.title() for word in name.split('_'))}"
    return Suite


for one in sorted(set(BUILT_IN) - ELSEWHERE):
    globals()[suite(one).__name__] = suite(one)
