"""Memory systems by name: built in, brought by an installed package, or named by a class path."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from importlib.metadata import entry_points
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from memeval.errors import UserError, unknown
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

NOT_SETTINGS = frozenset({"name", "class"})
"""Keys of the YAML of `system=` that say which system it is, and are no settings of it."""

_SPOKEN: dict[Any, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def available() -> list[str]:
    """The names of all systems, sorted."""
    return sorted({*BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def system_class(name: str, class_path: str | None = None) -> type[MemorySystem]:
    """The class of a system; `class_path` (`package.module:Class`) goes before the name."""
    path = class_path or _path_of(name)
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise UserError(f"system.class must read package.module:Class, but is '{path}'")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except ModuleNotFoundError as error:
        raise UserError(f"system '{name}': no module named '{error.name}' (class {path})", "is it installed, and on PYTHONPATH?") from error
    except AttributeError as error:
        raise UserError(f"system '{name}': module '{module_name}' has no class '{class_name}'") from error
    if not (isinstance(found, type) and issubclass(found, MemorySystem)):
        raise UserError(f"system '{name}': {path} is no subclass of memeval.systems.contract.MemorySystem")
    return found


def _path_of(name: str) -> str:
    if path := BUILT_IN.get(name):
        return path
    for point in entry_points(group=GROUP, name=name):
        return point.value
    raise unknown("system", name, available())


def settings_of(name: str, class_path: str | None = None) -> type[SystemSettings]:
    """The type of a system's settings; each field's metadata says which stage it belongs to."""
    return system_class(name, class_path).settings_type


def read_settings(settings_type: type[SystemSettings], given: Mapping[str, Any]) -> SystemSettings:
    """Settings from the values of a YAML; those not given keep their defaults. A `UserError` names what is wrong."""
    return settings_type(**_values(settings_type, {key: value for key, value in given.items() if key not in NOT_SETTINGS}, "system."))


def _values(kind: type[Any], given: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The given values by field of a settings class, converted; a group of settings is read over the field's own default."""
    types = get_type_hints(kind)
    known = {entry.name: entry for entry in fields(kind)}
    values = {}
    for key, value in given.items():
        if not known:
            raise UserError(f"unknown option '{prefix}{key}': this system has no settings")
        if key not in known:
            raise unknown("option", f"{prefix}{key}", [f"{prefix}{one}" for one in known])
        if is_dataclass(types[key]):
            values[key] = _group(known[key], value, f"{prefix}{key}")
        else:
            values[key] = _converted(f"{prefix}{key}", value, types[key])
    return values


def _group(entry: Field[Any], given: Any, key: str) -> Any:
    default: Any = entry.default if entry.default_factory is MISSING else entry.default_factory()
    if not isinstance(given, Mapping):
        raise UserError(f"{key} is a group of settings, but is '{given}'", f"set one of them:  {key}.{fields(default)[0].name}=...")
    return replace(default, **_values(type(default), given, f"{key}."))


def build_system(name: str, settings: Mapping[str, Any], parts: Parts, class_path: str | None = None) -> MemorySystem:
    """A fresh instance for one case."""
    kind = system_class(name, class_path)
    return kind(read_settings(kind.settings_type, settings), parts)


def _converted(key: str, value: Any, wanted: Any) -> Any:
    """The value as `wanted`, where it is one already or a whole number for a fraction; never by guessing."""
    origin = get_origin(wanted)
    if origin is Literal:
        if value not in get_args(wanted):
            raise unknown(f"value of {key}", str(value), [str(one) for one in get_args(wanted)])
        return value
    if origin in (Union, UnionType):
        if value is None and NoneType in get_args(wanted):
            return None
        (wanted,) = [one for one in get_args(wanted) if one is not NoneType]
        return _converted(key, value, wanted)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted in _SPOKEN and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
        raise UserError(f"{key} must be {_SPOKEN[wanted]}, but is '{value}'")
    return value
