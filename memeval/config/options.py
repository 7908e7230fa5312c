"""The options of a group in conf/, read without Hydra, and the class that each one names."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from memeval.config.paths import conf_dir
from memeval.errors import unknown


def options(group: str) -> list[str]:
    """Names of the options that ship, sorted."""
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def class_path(group: str, option: str) -> str | None:
    """The `class` (`package.module:Class`) that an option's file names, or a file in its defaults.

    None where no option of that name ships.
    """
    return _class_path(conf_dir() / group, option)


@cache
def _class_path(folder: Path, option: str) -> str | None:
    path = folder / f"{option}.yaml"
    # The name comes from a user: `../top_k/5` is not one of this folder.
    if path.parent != folder or not path.is_file():
        return None

    values = _read(path)
    if "class" in values:
        return str(values["class"])
    bases = [str(name) for name in values.get("defaults", ()) if name != "_self_"]
    inherited = (_class_path(folder, base) for base in reversed(bases))
    return next((named for named in inherited if named), None)


def available(group: str, entry_point_group: str) -> list[str]:
    """Names of the options that ship and of those that installed packages add, sorted."""
    added = (point.name for point in entry_points(group=entry_point_group))
    return sorted({*options(group), *added})


def path_of(group: str, name: str, entry_point_group: str) -> str:
    """The class path behind a name: of an option that ships, else of an installed package.

    Raises `UserError` for an unknown name, with its neighbours.
    """
    if path := class_path(group, name):
        return path
    for point in entry_points(group=entry_point_group, name=name):
        return point.value
    raise unknown(group, name, available(group, entry_point_group))


def _read(path: Path) -> dict[str, Any]:
    from omegaconf import OmegaConf

    loaded: Any = OmegaConf.to_container(OmegaConf.load(path))
    return dict(loaded or {})
