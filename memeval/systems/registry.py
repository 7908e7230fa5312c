"""Memory systems by name: built in, from an installed package, or at a class path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memeval.config import options
from memeval.config.settings import read_settings
from memeval.systems.base import MemorySystem, SystemContext, SystemSettings

OPTIONS = "system"
"""The config group in conf/. The YAML of each built-in system names its class."""
SYSTEMS = options.Registry(OPTIONS, MemorySystem)  # type: ignore[type-abstract]


def built_in() -> list[str]:
    """The sorted names of the systems that ship with memeval."""
    return options.options(OPTIONS)


def system_class(name: str, class_path: str | None = None) -> type[MemorySystem]:
    """The class of a system; `class_path` (`package.module:Class`) overrides the name."""
    return SYSTEMS.load(name, class_path)


def settings_of(name: str, class_path: str | None = None) -> type[SystemSettings]:
    """The type of a system's settings; the metadata of each field names its stage."""
    return system_class(name, class_path).settings_type


def build_system(
    name: str, settings: Mapping[str, Any], parts: SystemContext, class_path: str | None = None
) -> MemorySystem:
    """A new instance for one case."""
    system = system_class(name, class_path)
    return system(read_settings(system.settings_type, settings), parts)
