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
    # As Hydra composes: the last of the defaults wins.
    inherited = (_class_path(folder, base) for base in reversed(bases))
    return next((named for named in inherited if named), None)


def built_in_classes(group: str) -> dict[str, str]:
    """Class path by option, of all options that ship and name a class."""
    paths = {option: class_path(group, option) for option in options(group)}
    return {option: path for option, path in paths.items() if path is not None}


def available(group: str) -> list[str]:
    """Names of the options that ship and of those that installed packages add, sorted."""
    added = (point.name for point in entry_points(group=entry_point_group(group)))
    return sorted({*options(group), *added})


def is_available(group: str, name: str) -> bool:
    """Whether an option of that name ships or, which takes longer to see, a package adds it."""
    return name in options(group) or name in available(group)


def entry_point_group(group: str) -> str:
    """The entry points by which a package adds options of its own; a name that ships wins."""
    return f"memeval.{group}s"


def path_of(group: str, name: str, what: str | None = None) -> str:
    """The class path behind a name: of an option that ships, else of an installed package.

    Raises `UserError` for an unknown name, with its neighbours; `what` is the thing as the error
    calls it, by default the group.
    """
    if path := class_path(group, name):
        return path

    points = {point.name: point.value for point in entry_points(group=entry_point_group(group))}
    if name in points:
        return points[name]

    raise unknown(what or group, name, {*built_in_classes(group), *points})


def _read(path: Path) -> dict[str, Any]:
    from omegaconf import OmegaConf

    loaded: Any = OmegaConf.to_container(OmegaConf.load(path))
    return dict(loaded or {})
