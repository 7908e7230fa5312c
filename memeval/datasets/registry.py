"""Data sets by name: what is registered of each, and which class reads it.

A benchmark's package holds its `info.py` beside the adapter; the YAML in conf/dataset/ names the
adapter's class. So nothing is registered here: this module looks them up.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from importlib.util import find_spec

import memeval.datasets
from memeval.config.options import Registry, built_in_classes
from memeval.config.plugins import plugins
from memeval.datasets.contract import Dataset, DatasetInfo
from memeval.errors import UserError, unknown

GROUP = "dataset"
ADAPTERS = Registry(GROUP, Dataset, noun="data set")  # type: ignore[type-abstract]


def _infos() -> Iterator[DatasetInfo]:
    """The `INFOS` of each benchmark's `info.py`."""
    for package in pkgutil.iter_modules(memeval.datasets.__path__, "memeval.datasets."):
        name = f"{package.name}.info"
        if package.ispkg and find_spec(name):
            infos: tuple[DatasetInfo, ...] = importlib.import_module(name).INFOS
            yield from infos


DATASETS: Mapping[str, DatasetInfo] = {info.name: info for info in _infos()}
"""The data sets of memeval's own."""


def dataset_info(name: str) -> DatasetInfo:
    """Registry entry of a data set, memeval's own or a package's.

    Raises `UserError` with the nearest names for another.
    """
    if name in DATASETS:
        return DATASETS[name]
    if name in plugins(GROUP):
        return info_of(name, adapter_class(name))

    raise unknown("data set", name, {*DATASETS, *plugins(GROUP)})


def has_adapter(name: str) -> bool:
    """Whether memeval has a class that reads the data set, and so can run it."""
    return name in built_in_classes(GROUP)


def adapter_class(name: str, class_path: str | None = None) -> type[Dataset]:
    """The adapter of a data set; `class_path` (`package.module:Class`) goes before the name.

    Raises `UserError` with the nearest names for an unknown one, and for a path that leads to no
    adapter.
    """
    return ADAPTERS.load(name, class_path)


def writable() -> list[str]:
    """The data sets that are generated or derived, so that they can be written as a file."""
    names = built_in_classes(GROUP)
    return [name for name in names if adapter_class(name).write is not Dataset.write]


def info_of(name: str, adapter: type[Dataset]) -> DatasetInfo:
    """Registry entry of a data set of memeval's own; for another, its class's `info`."""
    if adapter.__module__.split(".")[0] == "memeval":
        return dataset_info(name)

    info = getattr(adapter, "info", None)
    if not isinstance(info, DatasetInfo):
        raise UserError(
            f"data set '{name}': {adapter.__module__}:{adapter.__qualname__} has no `info`",
            "give the class one:  info = DatasetInfo(…)",
        )

    return info
