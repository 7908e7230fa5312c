"""Embedders by name: built in, from an installed package, or at a class path."""

from __future__ import annotations

from memeval.config.options import Registry
from memeval.retrieval.embedding.contract import Embedder

EMBEDDERS = Registry("embedder", Embedder)  # type: ignore[type-abstract]
embedder_class = EMBEDDERS.load
