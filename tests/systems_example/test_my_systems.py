"""The example systems keep to the contract."""

from my_memory import Overlap
from my_recent import Recent, Settings

from memeval.systems.base import MemorySystem, SystemContext, SystemSettings
from memeval.testing.contract import MemorySystemContract


class TestOverlap(MemorySystemContract):
    def build(self, parts: SystemContext) -> MemorySystem:
        return Overlap(SystemSettings(), parts)


class TestRecent(MemorySystemContract):
    def build(self, parts: SystemContext) -> MemorySystem:
        return Recent(Settings(), parts)
