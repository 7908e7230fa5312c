"""Embedders by name: built in, from an installed package, or at a class path."""

from __future__ import annotations

from memeval.config.options import Registry
from memeval.retrieval.embedding.contract import Embedder

EMBEDDERS = Registry("embedder", Embedder)  # type: ignore[type-abstract]


def embedder_class(name: str, class_path: str | None = None) -> type[Embedder]:
    """The class of an embedder; `class_path` (`package.module:Class`) goes before the name.

    Raises `UserError` for an unknown name, and for a path that leads to no embedder.
    """
    return EMBEDDERS.load(name, class_path)
