"""Memory systems by name: built in, from an installed package, or at a class path."""

from dataclasses import is_dataclass

from memeval.config import options
from memeval.config.classes import path_of
from memeval.errors import UserError
from memeval.systems.base import MemorySystem, SystemSettings

OPTIONS = "system"
"""The config group in conf/. The YAML of each built-in system names its class."""
SYSTEMS = options.Registry(OPTIONS, MemorySystem)  # type: ignore[type-abstract]


def built_in() -> list[str]:
    """The sorted names of the systems that ship with memeval."""
    return options.options(OPTIONS)


def system_class(name: str, class_path: str | None = None) -> type[MemorySystem]:
    """The class of a system; `class_path` (`package.module:Class`) overrides the name.

    Raises `UserError` if there is none, or if its settings lack those of every system.
    """
    system = SYSTEMS.load(name, class_path)
    declared = system.settings_type
    # The code that reads the settings refuses anything that is not a dataclass.
    if is_dataclass(declared) and not issubclass(declared, SystemSettings):
        raise UserError(
            f"the settings type of this system, {path_of(declared)}, must be a subclass of "
            "SystemSettings",
            f"from memeval.systems.base import SystemSettings; class {declared.__name__}"
            "(SystemSettings): ...",
        )

    return system


def settings_of(name: str, class_path: str | None = None) -> type[SystemSettings]:
    """The type of a system's settings; the metadata of each field names its stage."""
    return system_class(name, class_path).settings_type
