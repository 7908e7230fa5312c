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
from memeval.config.classes import class_at
from memeval.config.options import built_in_classes, path_of
from memeval.datasets.contract import Dataset, DatasetInfo
from memeval.errors import UserError, unknown

GROUP = "dataset"


def _infos() -> Iterator[DatasetInfo]:
    """The `INFOS` of each benchmark's `info.py`."""
    for package in pkgutil.iter_modules(memeval.datasets.__path__, "memeval.datasets."):
        name = f"{package.name}.info"
        if package.ispkg and find_spec(name):
            infos: tuple[DatasetInfo, ...] = importlib.import_module(name).INFOS
            yield from infos


DATASETS: Mapping[str, DatasetInfo] = {info.name: info for info in _infos()}
"""Everything that `data fetch` and `data verify` know."""


def dataset_info(name: str) -> DatasetInfo:
    """Registry entry of a data set. Raises `UserError` with the nearest names for another."""
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)

    return DATASETS[name]


def has_adapter(name: str) -> bool:
    """Whether memeval has a class that reads the data set, and so can run it."""
    return name in built_in_classes(GROUP)


def adapter_class(name: str, class_path: str | None = None) -> type[Dataset]:
    """The adapter of a data set; `class_path` (`package.module:Class`) goes before the name.

    Raises `UserError` with the nearest names for an unknown one, and for a path that leads to no
    adapter.
    """
    path = class_path or path_of(GROUP, name, "data set")
    what = f"data set '{name}'"
    return class_at(path=path, base=Dataset, group=GROUP, what=what)  # type: ignore[type-abstract]


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
