"""Memory systems by name: built in, brought by an installed package, or named by a class path."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from memeval.config.classes import class_at
from memeval.config.settings import read_settings
from memeval.errors import unknown
from memeval.systems.contract import MemorySystem, Parts, SystemSettings

BUILT_IN = {
    "bm25": "memeval.systems.bm25:Bm25",
    "cogcanvas": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_baseline": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_cot": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_hybrid": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_minimal": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_nocot": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_nogleaning": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_nograph": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_nohybrid": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_norerank": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_notemporal": "memeval.systems.cogcanvas:CogCanvas",
    "cogcanvas_temporal": "memeval.systems.cogcanvas:CogCanvas",
    "combined": "memeval.systems.combined:Combined",
    "embedding_only": "memeval.systems.embedding_only:EmbeddingOnly",
    "full_history": "memeval.systems.full_history:FullHistory",
    "graphrag_lite": "memeval.systems.graphrag_lite:GraphRagLite",
    "hybrid": "memeval.systems.hybrid:Hybrid",
    "letta": "memeval.systems.letta:Letta",
    "last_k": "memeval.systems.last_k:LastK",
    "long_context": "memeval.systems.long_context:LongContext",
    "mem0": "memeval.systems.mem0:Mem0",
    "memgpt_lite": "memeval.systems.memgpt_lite:MemGptLite",
    "native": "memeval.systems.native:Native",
    "no_memory": "memeval.systems.no_memory:NoMemory",
    "oracle": "memeval.systems.oracle:Oracle",
    "rag": "memeval.systems.rag:Rag",
    "semantic_recall": "memeval.systems.semantic_recall:SemanticRecall",
    "summarization": "memeval.systems.summarization:Summarization",
    "working_memory": "memeval.systems.working_memory:WorkingMemory",
}
"""Name -> `module:Class`, imported when it is asked for."""

GROUP = "memeval.systems"
"""The entry points by which a package brings systems of its own; a built-in name wins."""


def available() -> list[str]:
    """The names of all systems, sorted."""
    return sorted({*BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def system_class(name: str, class_path: str | None = None) -> type[MemorySystem]:
    """The class of a system; `class_path` (`package.module:Class`) goes before the name."""
    return class_at(class_path or _path_of(name), MemorySystem, "system", f"system '{name}'")  # type: ignore[type-abstract]


def _path_of(name: str) -> str:
    if path := BUILT_IN.get(name):
        return path
    for point in entry_points(group=GROUP, name=name):
        return point.value
    raise unknown("system", name, available())


def settings_of(name: str, class_path: str | None = None) -> type[SystemSettings]:
    """The type of a system's settings; each field's metadata says which stage it belongs to."""
    return system_class(name, class_path).settings_type


def build_system(name: str, settings: Mapping[str, Any], parts: Parts, class_path: str | None = None) -> MemorySystem:
    """A fresh instance for one case."""
    kind = system_class(name, class_path)
    return kind(read_settings(kind.settings_type, settings), parts)
