"""Which code each stage of a cell runs through.

An edit in a checkout makes the stages again that run through it, and no others.
"""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any

from memeval.config.identity import Digests
from memeval.config.schema import ANSWER, JUDGE, PREPARE, RunConfig
from memeval.config.sources import code_identity

_MODELS = {
    "extractive": "memeval.llm.extractive",
    "openai": "memeval.llm.openai",
    "mock": "memeval.llm.mock",
}
_EMBEDDERS = {"tfidf": "memeval.embedding.tfidf", "openai": "memeval.embedding.openai"}

_MEMORY_PACKAGES = (
    "memeval.systems",
    "memeval.retrieval",
    "memeval.embedding",
    "memeval.datasets",
    "memeval.llm.contract",
    "memeval.llm.extractive",
    "memeval.llm.form",
    "memeval.llm.memory_prompts",
    "memeval.llm.tokens",
)
"""What a system is made of. How calls reach an endpoint is left out: replies are kept by their
content.
"""
_LOOK_UPS = (
    "memeval.datasets.adapters",
    "memeval.datasets.fetch",
    "memeval.datasets.locate",
    "memeval.datasets.locomo.names",
    "memeval.datasets.registry",
    "memeval.systems.registry",
)
"""Modules that find others by name: an entry for one data set changes nothing of another."""


def stage_code(config: RunConfig, system: type, dataset: type, judge: type) -> Digests:
    """The identity of the code behind each stage."""
    embedder = _EMBEDDERS.get(config.embedder.name, "")
    model = _MODELS.get(config.llm.name, "")
    builds = ("memeval.granularity", "memeval.pipeline.builder", "memeval.pipeline.memory")
    asks = ("memeval.pipeline.question", "memeval.pipeline.reader", model)

    prepare = code_identity(
        [*builds, system.__module__, dataset.__module__, embedder],
        within=_MEMORY_PACKAGES,
        outside=_LOOK_UPS,
    )
    answer = code_identity(asks, within=("memeval.llm.extractive", "memeval.metrics"))
    judging = code_identity([judge.__module__], within=("memeval.judges", "memeval.metrics"))

    return {PREPARE: {"code": prepare}, ANSWER: {"code": answer}, JUDGE: {"code": judging}}


def figures_code(dataset: type) -> str:
    """The identity of the code that makes the figures of the rows. No key holds it."""
    measures = (
        "memeval.pipeline.measure",
        "memeval.pipeline.records",
        "memeval.pipeline.rows",
        "memeval.pipeline.summary",
    )
    return code_identity(
        [*measures, dataset.__module__],
        within=("memeval.metrics", "memeval.datasets"),
        outside=_LOOK_UPS,
    )


def class_identity(identified: type[Any]) -> str:
    """`module:Class`; for a class of the user's own with the sha256 of its file.

    So an edit of that file makes the results again. What the file imports is not looked at.
    """
    name = f"{identified.__module__}:{identified.__qualname__}"
    if _is_ours(identified):
        return name

    try:
        source = Path(inspect.getfile(identified)).read_bytes()
    except (OSError, TypeError):
        return name  # a class in C, or one that was typed in

    return f"{name}@{hashlib.sha256(source).hexdigest()}"


def class_digests(stage: str, name: str, identified: type[Any]) -> Digests:
    """A class of the user's own, as a contribution to the keys. Ours are in the code's digest."""
    return {} if _is_ours(identified) else {stage: {name: class_identity(identified)}}


def _is_ours(identified: type[Any]) -> bool:
    return identified.__module__.split(".")[0] == "memeval"
