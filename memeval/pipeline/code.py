"""Which code each stage of a cell runs through: an edit in a checkout makes those stages again, and no others."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any

from memeval.config.schema import ANSWER, JUDGE, PREPARE, RUN, RunConfig
from memeval.config.sources import code_identity

_MODELS = {
    "extractive": "memeval.llm.extractive",
    "openai": "memeval.llm.openai",
    "mock": "memeval.llm.mock",
}

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
"""What a system is made of. How calls reach an endpoint is left out: replies are kept by their content."""
_LOOK_UPS = (
    "memeval.datasets.adapters",
    "memeval.datasets.fetch",
    "memeval.datasets.locate",
    "memeval.datasets.locomo.names",
    "memeval.datasets.registry",
    "memeval.embedding.registry",
    "memeval.retrieval.rerank",
    "memeval.systems.registry",
)
"""Modules that find others by name: an entry for one data set changes nothing of another."""


def class_identity(kind: type[Any]) -> str:
    """`module:Class`; for a class of the user's own with the sha256 of its file, so that an edit
    makes its results again.

    What such a file imports is not read. Our own classes go by the version of memeval.
    """
    name = f"{kind.__module__}:{kind.__qualname__}"
    if kind.__module__.split(".")[0] == "memeval":
        return name
    try:
        source = Path(inspect.getfile(kind)).read_bytes()
    except (OSError, TypeError):
        return name
    return f"{name}@{hashlib.sha256(source).hexdigest()}"


def own_code(part: type[Any] | None) -> str:
    """What stands for a part of the user's own in a key; empty for memeval's own, and for none."""
    identity = class_identity(part) if part else ""
    return f" {identity}" if "@" in identity else ""


def stage_code(
    config: RunConfig,
    *,
    system: type,
    dataset: type,
    judge: type,
    embedder: type,
    reranker: type | None = None,
) -> dict[str, str]:
    """The identity of the code behind each stage, and behind the figures that are made of the rows
    (`run`).
    """
    rerankers = [reranker.__module__] if reranker else []
    model = _MODELS.get(config.llm.name, "")
    builds = ("memeval.granularity", "memeval.pipeline.builder", "memeval.pipeline.memory")
    asks = ("memeval.pipeline.question", "memeval.pipeline.reader", model)
    measures = (
        "memeval.pipeline.measure",
        "memeval.pipeline.records",
        "memeval.pipeline.rows",
        "memeval.pipeline.summary",
    )
    return {
        PREPARE: code_identity(
            [*builds, system.__module__, dataset.__module__, embedder.__module__, *rerankers],
            within=_MEMORY_PACKAGES,
            outside=_LOOK_UPS,
        )
        + own_code(embedder),
        ANSWER: code_identity(asks, within=("memeval.llm.extractive", "memeval.metrics"))
        + own_code(reranker),
        JUDGE: code_identity([judge.__module__], within=("memeval.judges", "memeval.metrics")),
        RUN: code_identity(
            [*measures, dataset.__module__],
            within=("memeval.metrics", "memeval.datasets"),
            outside=_LOOK_UPS,
        ),
    }
