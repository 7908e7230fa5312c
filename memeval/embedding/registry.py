"""Embedders by name: built in, from an installed package, or at a class path."""

from __future__ import annotations

from memeval.config.classes import class_at
from memeval.config.options import path_of
from memeval.embedding.contract import Embedder

GROUP = "memeval.embedders"
"""The entry points by which a package adds embedders of its own; a built-in name wins."""


def embedder_class(name: str, class_path: str | None = None) -> type[Embedder]:
    """The class of an embedder; `class_path` (`package.module:Class`) goes before the name.

    Raises `UserError` for an unknown name, and for a path that leads to no embedder.
    """
    path = class_path or path_of("embedder", name)
    return class_at(path, Embedder, "embedder", f"embedder '{name}'")  # type: ignore[type-abstract]
