"""Config files are read once for all cells of a sweep.

Hydra reads and parses each file again for each job: a thousand cells would take minutes.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, open_dict

from memeval.config.integers import INTEGER_GROUPS

_Sources = tuple[tuple[str, str], ...]


def remember_files(loader: ConfigLoader) -> None:
    """From here on the loader reads each file once."""
    # Another version of Hydra may keep its files elsewhere: then each is read again, and no more.
    repository: Any = getattr(loader, "repository", None)
    if isinstance(repository, ConfigRepository) and not isinstance(repository, _Remembering):
        loader.repository = _Remembering(repository)  # type: ignore[attr-defined]


class _Remembering(ConfigRepository):
    """Hydra's repository, with what it read."""

    def __init__(self, read_by: ConfigRepository) -> None:
        self.sources = list(read_by.sources)
        self._read: dict[tuple[_Sources, str], ConfigResult | None] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> _Remembering:
        """Hydra copies the repository for each job, which may have sources of its own."""
        other = _Remembering(self)
        other._read = self._read
        return other

    def load_config(self, config_path: str) -> ConfigResult | None:
        key = (tuple((source.provider, source.path) for source in self.sources), config_path)
        if key not in self._read:
            self._read[key] = super().load_config(config_path)

        # The composition changes what it gets.
        return copy.deepcopy(self._read[key])


class SweepComposer:
    """Composes the cells of a sweep: those with the same options share one composition.

    The values in which they differ are put into a copy of it: of fields by Hydra's own function, of
    groups that take any integer as the field of that name.
    """

    def __init__(self, loader: ConfigLoader, master: DictConfig) -> None:
        self._loader, self._master = loader, master
        self._parser = OverridesParser.create()
        self._bases: dict[tuple[str, ...], DictConfig | None] = {}
        """By options; None where a config file decides on an integer, so that copies won't do."""

    def compose(self, words: Sequence[str]) -> DictConfig:
        """The config of a job, as Hydra's loader makes it."""
        parsed = self._parser.parse_overrides(list(words))
        integers: dict[str, int] = {}
        for override in parsed:
            integers |= _integer(override)

        values = [override for override in parsed if not self._is_group(override)]
        # A word for Hydra itself, or one that adds or deletes, may change what is composed.
        if not all(map(_is_plain, parsed)):
            return self._loader.load_sweep_config(self._master, list(words))

        groups = [override for override in parsed if self._is_group(override)]
        options = [override.input_line or "" for override in groups]
        others = [override.input_line or "" for override in groups if not _integer(override)]
        key = (*others, *sorted(integers))
        if key not in self._bases:
            base = self._loader.load_sweep_config(self._master, options)
            # A config file that assigns the field beats the option: a copy would hide that.
            is_chosen = all(base[name] == number for name, number in integers.items())
            self._bases[key] = base if is_chosen else None

        shared = self._bases[key]
        if shared is None:
            return self._loader.load_sweep_config(self._master, list(words))

        config = copy.deepcopy(shared)
        ConfigLoaderImpl._apply_overrides_to_config(values, config)
        for name, number in integers.items():
            config[name] = number

        # What Hydra says of the job must be of this job, and not of the first one.
        with open_dict(config.hydra):
            config.hydra.runtime.choices.update({name: str(n) for name, n in integers.items()})
            config.hydra.overrides.task = list(words)

        return config

    def _is_group(self, override: Override) -> bool:
        """Whether a word chooses an option of a group, and gives no field its value."""
        repository: Any = self._loader.repository  # type: ignore[attr-defined]
        return bool(repository.group_exists(override.key_or_group))


def _integer(override: Override) -> dict[str, int]:
    """The integer that a word gives to a group that takes any, by the group's name."""
    text = str(override.value()).strip("'\"")
    is_integer = override.key_or_group in INTEGER_GROUPS and text.isascii() and text.isdigit()
    return {override.key_or_group: int(text)} if is_integer else {}


def _is_plain(override: Override) -> bool:
    """Whether a word is `name=value`, of the run and not of Hydra."""
    is_marked = override.is_add() or override.is_force_add() or override.is_delete()
    return not is_marked and not override.is_hydra_override() and override.package is None
