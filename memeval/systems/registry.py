"""Memory systems by name: built in, brought by an installed package, or named by a class path."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from memeval.config.classes import class_at
from memeval.config.settings import read_settings
from memeval.errors import unknown
from memeval.systems.base import MemorySystem, SystemContext, SystemSettings

BUILT_IN = {
    "bm25": "memeval.systems.retrieval.bm25:Bm25",
    "cogcanvas": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_baseline": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_cot": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_hybrid": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_minimal": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_nocot": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_nogleaning": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_nograph": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_nohybrid": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_norerank": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_notemporal": "memeval.systems.cogcanvas.system:CogCanvas",
    "cogcanvas_temporal": "memeval.systems.cogcanvas.system:CogCanvas",
    "combined": "memeval.systems.chat.combined:Combined",
    "embedding_only": "memeval.systems.retrieval.dense:Dense",
    "full_history": "memeval.systems.chat.full_history:FullHistory",
    "graphrag_lite": "memeval.systems.retrieval.graphrag_lite:GraphRagLite",
    "hybrid": "memeval.systems.retrieval.hybrid:Hybrid",
    "letta": "memeval.systems.external.letta:Letta",
    "last_k": "memeval.systems.chat.last_k:LastK",
    "long_context": "memeval.systems.controls.long_context:LongContext",
    "mem0": "memeval.systems.external.mem0:Mem0",
    "memgpt_lite": "memeval.systems.chat.memgpt_lite:MemGptLite",
    "native": "memeval.systems.chat.native:Native",
    "no_memory": "memeval.systems.controls.no_memory:NoMemory",
    "oracle": "memeval.systems.controls.oracle:Oracle",
    "rag": "memeval.systems.retrieval.rag:Rag",
    "semantic_recall": "memeval.systems.chat.semantic_recall:SemanticRecall",
    "summarization": "memeval.systems.chat.summarization:Summarization",
    "working_memory": "memeval.systems.chat.working_memory:WorkingMemory",
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


def build_system(
    name: str, settings: Mapping[str, Any], parts: SystemContext, class_path: str | None = None
) -> MemorySystem:
    """A fresh instance for one case."""
    kind = system_class(name, class_path)
    return kind(read_settings(kind.settings_type, settings), parts)
