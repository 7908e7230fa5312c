"""Reads the YAML files that lie beside the code: registry entries, word lists, tables."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def load_beside(module_file: str, name: str, content: type[T]) -> T:
    """The YAML file `name` in the folder of `module_file` (a module's `__file__`), as `content`.

    The keys of the stages cover a file that a module names in quotes: see `memeval.config.sources`.
    Raises `msgspec.ValidationError`, which names the path in the file, for a value of another type.
    """
    import yaml  # type: ignore[import-untyped]

    text = Path(module_file).with_name(name).read_bytes()
    # The loader in C is ten times as fast, and some builds of PyYAML lack it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return msgspec.convert(yaml.load(text, Loader=loader), content)
