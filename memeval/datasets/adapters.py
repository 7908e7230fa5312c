"""Adapters by name: built in, brought by an installed package, or named by a class path."""

from __future__ import annotations

from importlib.metadata import entry_points

from memeval.config.classes import class_at
from memeval.datasets.contract import Dataset, DatasetInfo
from memeval.datasets.registry import ADAPTERS, dataset_info
from memeval.errors import UserError, unknown

GROUP = "memeval.datasets"
"""The entry points by which a package brings data sets of its own; a built-in name wins."""


def adapter_class(name: str, class_path: str | None = None) -> type[Dataset]:
    """The adapter of a data set; `class_path` (`package.module:Class`) goes before the name.

    Raises `UserError` naming the nearest ones where there is none of that name, and for a path that leads to no adapter.
    """
    return class_at(class_path or _path_of(name), Dataset, "dataset", f"data set '{name}'")  # type: ignore[type-abstract]


def info_of(name: str, kind: type[Dataset]) -> DatasetInfo:
    """What is known of a data set: of one of memeval's own what is registered, of another its class's `info`."""
    if kind.__module__.split(".")[0] == "memeval":
        return dataset_info(name)
    info = getattr(kind, "info", None)
    if not isinstance(info, DatasetInfo):
        lacking = f"data set '{name}': {kind.__module__}:{kind.__qualname__} has no `info`"
        raise UserError(lacking, "give the class one:  info = DatasetInfo(…)")
    return info


def _path_of(name: str) -> str:
    if path := ADAPTERS.get(name):
        return path
    points = {point.name: point.value for point in entry_points(group=GROUP)}
    if name not in points:
        raise unknown("data set", name, {*ADAPTERS, *points})
    return points[name]
