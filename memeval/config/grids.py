"""Sweeps that are unions of grids, for sets of cells that are not a product of settings.

A file in sweeps/ may have `grids:`, a list of grids. Each grid is a line of overrides as typed
after `-m`. The cells of all grids become options of the group `cell`, `cell=<sweep>-<number>`, over
which the sweep then runs.
"""

import re
import shlex
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from memeval.config.overrides import check_given_once, choose_classes, full_override
from memeval.config.paths import conf_dir
from memeval.config.plugins import SWEEP, own_file, own_files, plugin, plugins

CELL = re.compile(r"(\w+)-([0-9]+)")
"""An option of the group `cell`: a sweep, and the number of a cell, counted from 1."""


def sweep_file(name: str) -> Path | None:
    """The file of a built-in sweep or of a package's, or None."""
    provider = plugin(SWEEP, name)
    return provider.file if provider else own_file(SWEEP, name)


def sweep_files() -> dict[str, Path]:
    files = {path.stem: path for path in own_files(SWEEP)}
    for name, providers in sorted(plugins(SWEEP).items()):
        if providers[0].file is not None:
            files.setdefault(name, providers[0].file)

    return files


def replace_grids(sweep: str, config: DictConfig) -> DictConfig:
    """The sweep's config, in which its grids, if any, are replaced by options of `cell`."""
    # Removed, because the schema of a run has no such field.
    grids = config.pop("grids", None)
    if grids is not None:
        count = len(cells(tuple(grids)))
        params = {"+cell": ",".join(f"{sweep}-{number}" for number in range(1, count + 1))}
        OmegaConf.update(config, "hydra.sweeper.params", params, force_add=True)

    return config


@cache
def cells(grids: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
    """The overrides of all cells. Cached, because each cell is composed with the whole sweep."""
    every_cell: list[tuple[str, ...]] = []
    for grid in grids:
        grid_words = shlex.split(grid)
        check_given_once(grid_words)
        words = map(full_override, choose_classes(grid_words))
        every_cell += product(*map(_choices, words))

    return tuple(every_cell)


def _choices(override: str) -> list[str]:
    parsed = OverridesParser.create().parse_override(override)
    if not parsed.is_sweep_override():
        return [override]

    return [f"{parsed.get_key_element()}={value}" for value in parsed.sweep_string_iterator()]


def count_cells() -> dict[str, int]:
    """The number of cells of each sweep that is a union of grids."""
    counts = {}
    for name, file in sweep_files().items():
        if count := len(_cells_of(file.read_text(encoding="utf-8"))):
            counts[name] = count

    return counts


def words_of_cell(option: str) -> Sequence[str] | None:
    """The overrides of an option of `cell`, such as `smoke-1`; None if there is no such cell."""
    parts = CELL.fullmatch(option)
    if parts is None:
        return None

    file = sweep_file(parts[1])
    if file is None:
        return None

    overrides, number = _cells_of(file.read_text(encoding="utf-8")), int(parts[2])
    return overrides[number - 1] if 0 < number <= len(overrides) else None


@cache
def _cells_of(text: str) -> Sequence[tuple[str, ...]]:
    return cells(tuple(OmegaConf.select(OmegaConf.create(text), "grids") or ()))


def cell_config(option: str) -> DictConfig | None:
    """The config of an option of `cell`; None if there is no such cell."""
    overrides = words_of_cell(option)
    if overrides is None:
        return None

    options: list[Any] = []
    fields = OmegaConf.create({})

    for override in overrides:
        name, _, value = override.lstrip("+").partition("=")
        if (conf_dir() / name).is_dir():
            options.append({f"override /{name}": value.strip("'\"")})
        else:
            parsed = OverridesParser.create().parse_override(override)
            OmegaConf.update(fields, name, parsed.value(), force_add=True)

    # `_self_` comes last: a cell's fields override those of its options.
    return OmegaConf.merge(OmegaConf.create({"defaults": [*options, "_self_"]}), fields)  # type: ignore[return-value]
