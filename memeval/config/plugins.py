"""Contributions of installed packages: parts as entry points, options and sweeps as folders of
YAML.

A package declares its parts under `memeval.systems` and the like (`PARTS`), and its YAML under
`memeval.conf`, whose value names a folder in the package (`my_package.conf`). Packages are searched
if a name is not one of memeval's own, and when a part is loaded. The search imports nothing from
them.
"""

import os
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memeval import __version__
from memeval.config.overrides import GROUPS
from memeval.config.paths import conf_dir, sweeps_dir
from memeval.errors import UserError
from memeval.text.shown import one_line
from memeval.text.yaml_files import load_yaml

PARTS = {
    "system": "memeval.systems",
    "dataset": "memeval.datasets",
    "judge": "memeval.judges",
    "embedder": "memeval.embedders",
    "reranker": "memeval.rerankers",
    "llm": "memeval.models",
    "prompt": "memeval.prompts",
    "metric": "memeval.metrics",
}
"""The entry point group of each config group, and that of metrics, which are not options."""
METRIC = "metric"
CONF = "memeval.conf"
DECLARED = frozenset({*PARTS.values(), CONF})
SWEEP = "sweep"
_MARKS = (BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE)


class Plugin(Struct, frozen=True):
    """An option that an installed package provides."""

    name: str
    package: str
    """Name and version: `my-memory 1.0`."""
    path: str | None = None
    """Target of its entry point: `package.module:Class`."""
    file: Path | None = None
    """Its YAML."""


Plugins = Mapping[str, Mapping[str, Sequence[Plugin]]]


def plugins(group: str) -> Mapping[str, Sequence[Plugin]]:
    """Plug-ins of packages in a group, by name; several packages may provide one name."""
    # Searched again when the path has changed, since other packages may be found.
    return _scan(tuple(sys.path)).get(group, {})


def plugin(group: str, name: str) -> Plugin | None:
    """A package's plug-in by name, if any. Raises `UserError` if the name is taken twice."""
    provided = plugins(group).get(name, ())
    if not provided:
        return None

    packages = sorted(part.package for part in provided)
    if own_file(group, name) is not None:
        packages.insert(0, f"memeval {__version__}")
    if len(packages) == 1:
        return provided[0]

    hints = [f"keep one of them:  pip uninstall {provided[-1].package.split()[0]}"]
    if provided[-1].path and group in GROUPS:
        hints.append(f"or name the class:  {group}.class={provided[-1].path}")

    label = f"metric '{name}'" if group == METRIC else f"{group}={name}"
    raise UserError(f"{label} is defined by two packages: {' and '.join(packages)}", *hints)


def own_file(group: str, name: str) -> Path | None:
    """The file of a built-in option, or None."""
    folder = _folder_of(group)
    path = folder / f"{name}.yaml"
    # The name comes from a user: `../top_k/5` is not in this folder. `isfile` returns False for a
    # name that is too long for a file, where `Path` raises.
    return path if path.parent == folder and os.path.isfile(path) else None  # noqa: PTH113


def option_file(group: str, name: str) -> Path | None:
    """The file of an option, memeval's own or a package's; None if it has no file."""
    # conf/ comes first, because this needs no search through packages.
    builtin = own_file(group, name)
    if builtin is not None or not group:
        return builtin

    part = plugin(group, name)
    return part.file if part else None


def own_files(group: str) -> list[Path]:
    """The files of all built-in options in a group, sorted."""
    return sorted(_folder_of(group).glob("*.yaml"))


def _folder_of(group: str) -> Path:
    return sweeps_dir() if group == SWEEP else conf_dir() / group


@cache
def read_yaml(path: Path) -> Mapping[str, Any]:
    """The content of an option's file, cached. Only its names matter: Hydra reads the values by its
    own rules, for which `2024-10-21` is a string, not a date.
    """
    return dict(load_yaml(path) or {})


def packages_of(module: str) -> str:
    """Name and version of the packages that provide parts from a module's top-level package."""
    top = module.partition(".")[0]
    packages = set()
    for group in PARTS:
        for part in chain.from_iterable(plugins(group).values()):
            if part.path and part.path.partition(":")[0].partition(".")[0] == top:
                packages.add(part.package)

    return ", ".join(sorted(packages))


def check_folder(folder: Path) -> None:
    """Raises `UserError` for a folder of options that does not exist, and for a file in it that
    repeats an existing one, because Hydra would pick either, or that has a byte-order mark, which
    hides its `# @package` from Hydra.
    """
    if not folder.is_dir():
        raise UserError(f"--config-dir: the folder {one_line(folder)} does not exist")

    for path in sorted(folder.glob("*.yaml")):
        if (conf_dir() / path.name).is_file():
            raise UserError(
                f"{path}: memeval's own {path.name} would be used instead",
                f"give the file another name, and choose it:  --config-name NAME; to build on "
                f"memeval's:  defaults: [{path.stem}, _self_]",
            )

    for path in sorted(folder.glob("*/*.yaml")):
        if path.is_file() and path.read_bytes().startswith(_MARKS):
            raise UserError(f"{path} has a byte-order mark: save it as UTF-8 without one")

        group, name = path.parent.name, path.stem
        owners = [part.package for part in plugins(group).get(name, ())]
        if own_file(group, name) is not None:
            owners.insert(0, "memeval")
        if owners:
            raise UserError(
                f"{path}: {group}={name} is already an option of {owners[0]}",
                f"give the file another name; to build on that option:  defaults: [{name}, _self_]",
            )


@cache
def _scan(search_path: tuple[str, ...]) -> Plugins:
    # Loaded here: it takes longer than `--help` may take.
    from importlib.metadata import distributions

    groups: dict[str, dict[str, list[Plugin]]] = defaultdict(lambda: defaultdict(list))
    group_of = {declared: group for group, declared in PARTS.items()}
    folders = []
    seen: set[str] = set()

    for distribution in distributions(path=list(search_path)):
        points = [point for point in distribution.entry_points if point.group in DECLARED]
        # The first on the path is the one that is imported.
        if not points or distribution.name in seen:
            continue

        seen.add(distribution.name)
        package = f"{distribution.name} {distribution.version}"
        for point in points:
            if point.group == CONF:
                folders.append((point.value, package))
                continue

            group = group_of[point.group]
            groups[group][point.name].append(Plugin(point.name, package, path=point.value))

    # Once all parts are known: a file may be the option of one of them.
    for value, package in folders:
        for group, file in _files(value):
            _add_file(groups[group][file.stem], file, package)

    return groups


def _add_file(provided: list[Plugin], file: Path, package: str) -> None:
    """Adds an option's file to the same package's part of that name, or else as a new option."""
    for index, part in enumerate(provided):
        if part.package == package and part.file is None:
            provided[index] = replace(part, file=file)
            return

    provided.append(Plugin(name=file.stem, package=package, file=file))


def _files(value: str) -> Iterator[tuple[str, Path]]:
    """The YAML files of a package's folder, `my_package.conf`, each with its group."""
    top, *inner = value.partition(":")[0].split(".")
    spec = find_spec(top)
    if spec is None:
        return

    # The folder is found next to the package's code, which is not imported.
    for root in spec.submodule_search_locations or ():
        folder = Path(root).joinpath(*inner)
        for file in sorted(folder.rglob("*.yaml")):
            yield file.parent.relative_to(folder).as_posix(), file
