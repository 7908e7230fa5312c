"""A config as leaves by dotted path, and settings as YAML."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from memeval.config.plugins import own_file, read_yaml


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """A config's leaves by dotted path; lists stay values. A field `class_` is named `class`."""
    if not isinstance(config, Mapping):
        fields = dataclasses.fields(config)
        config = {field.name.removesuffix("_"): getattr(config, field.name) for field in fields}

    leaves: dict[str, Any] = {}
    for name, value in config.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) or dataclasses.is_dataclass(value):
            leaves |= flatten(value, f"{path}.")
        else:
            leaves[path] = value

    return leaves


def fields_of(group: str, option: str) -> frozenset[str]:
    """Dotted paths of the fields in an option's file; empty if there is no file."""
    file = own_file(group, option)
    return _fields_in(file) if file else frozenset()


@cache
def _fields_in(path: Path) -> frozenset[str]:
    """The fields in one of memeval's files. Cached: they are looked up for each leaf of a cell."""
    return frozenset(flatten(read_yaml(path)))


def as_yaml(settings: Mapping[str, Any]) -> str:
    return OmegaConf.to_yaml(OmegaConf.create(dict(settings)))
