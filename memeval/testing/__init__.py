"""For authors of systems, data sets, judges and metrics: conformance suites, a scripted model."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memeval.testing.contract import MemorySystemContract as MemorySystemContract
    from memeval.testing.datasets import DatasetContract as DatasetContract
    from memeval.testing.judges import JudgeContract as JudgeContract
    from memeval.testing.metrics import MetricContract as MetricContract

SUITES = {
    "DatasetContract": "memeval.testing.datasets",
    "JudgeContract": "memeval.testing.judges",
    "MemorySystemContract": "memeval.testing.contract",
    "MetricContract": "memeval.testing.metrics",
}
"""The module of each suite. Only that module imports pytest and hypothesis."""


def __getattr__(name: str) -> Any:
    if name not in SUITES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    import importlib

    return getattr(importlib.import_module(SUITES[name]), name)
