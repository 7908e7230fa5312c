"""Which code each stage of a cell runs through: an edit in a checkout makes those stages again, and no others."""

from __future__ import annotations

from memeval.config.schema import ANSWER, JUDGE, PREPARE, RUN, RunConfig
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
"""What a system is made of. How calls reach an endpoint is left out: replies are kept by their content."""
_LOOK_UPS = (
    "memeval.datasets.fetch",
    "memeval.datasets.locate",
    "memeval.datasets.locomo.names",
    "memeval.datasets.registry",
    "memeval.judges.registry",
    "memeval.systems.registry",
)
"""Modules that find others by name: an entry for one data set changes nothing of another."""


def stage_code(config: RunConfig, system: type, dataset: type, judge: type) -> dict[str, str]:
    """The identity of the code behind each stage, and behind the figures that are made of the rows (`run`)."""
    embedder = _EMBEDDERS.get(config.embedder.name, "")
    model = _MODELS.get(config.llm.name, "")
    builds = ("memeval.granularity", "memeval.pipeline.builder", "memeval.pipeline.memory")
    asks = ("memeval.pipeline.question", "memeval.pipeline.reader", model)
    package = dataset.__module__.rpartition(".")[0]
    scores, judges = f"{package}.metrics", [base.__module__ for base in judge.__mro__]
    no_memory = (*_LOOK_UPS, f"{package}.info", f"{package}.judge", scores)
    measures = (
        "memeval.pipeline.measure",
        "memeval.pipeline.records",
        "memeval.pipeline.rows",
        "memeval.pipeline.summary",
    )
    return {
        PREPARE: code_identity(
            [*builds, system.__module__, dataset.__module__, embedder],
            within=_MEMORY_PACKAGES,
            outside=no_memory,
        ),
        ANSWER: code_identity(
            [*asks, scores], within=("memeval.llm.extractive", "memeval.metrics")
        ),
        JUDGE: code_identity(
            judges,
            within=("memeval.judges", "memeval.metrics", "memeval.datasets"),
            outside=_LOOK_UPS,
        ),
        RUN: code_identity(
            [*measures, dataset.__module__],
            within=("memeval.metrics", "memeval.datasets"),
            outside=_LOOK_UPS,
        ),
    }
