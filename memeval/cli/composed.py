"""Config files are read once for all cells of a sweep.

Hydra reads and parses each file again for each job: a thousand cells would take minutes.
"""

from __future__ import annotations

import copy
from typing import Any

from hydra._internal.config_repository import ConfigRepository
from hydra.core.config_loader import ConfigLoader
from hydra.plugins.config_source import ConfigResult

_Sources = tuple[tuple[str, str], ...]


def remember_files(loader: ConfigLoader) -> None:
    """From here on the loader reads each file once."""
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
