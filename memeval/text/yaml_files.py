"""Reads the YAML files next to the code: registry entries, word lists, tables."""

from pathlib import Path
from typing import Any, TypeVar

from memeval.text.typed import convert

T = TypeVar("T")


def load_sibling(module_file: str, name: str, content: type[T]) -> T:
    """The YAML file `name` in the folder of `module_file` (a module's `__file__`), as `content`.

    A file that a module names in quotes is part of the stages' keys: see `memeval.config.sources`.
    Raises `msgspec.ValidationError`, naming the path in the file, for a value of the wrong type.
    """
    return convert(load_yaml(Path(module_file).with_name(name)), content)


def load_yaml(path: Path) -> Any:
    """The content of a YAML file, unchanged."""
    import yaml  # type: ignore[import-untyped]

    # The loader in C is ten times as fast, and some builds of PyYAML lack it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_bytes(), Loader=loader)
