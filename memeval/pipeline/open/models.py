"""Builds models, embedders and rerankers, with one limit per URL and key."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from memeval.config.options import Registry
from memeval.config.paths import cache_dir
from memeval.config.roles import ANSWERS, DRAFT, INGEST, JUDGE, settings_of_role
from memeval.config.schema import LlmConfig, RunConfig
from memeval.errors import UserError
from memeval.llm.cache_contract import ReplyCache
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.llm.model import LanguageModel, MeteredModel
from memeval.llm.network import endpoint_settings
from memeval.pipeline.open.connections import Connections
from memeval.retrieval.embedding.contract import EMBEDDERS, Embedder
from memeval.retrieval.rerank import DEFAULT, Reranker, build_reranker, config_named
from memeval.store.opening import open_memories, open_store

if TYPE_CHECKING:
    from memeval.llm.openai import Sampling


MODELS = Registry("llm", LanguageModel)  # type: ignore[type-abstract]
"""The models of packages; built-in ones are created in `Models`."""


def sampling_of(settings: LlmConfig, role: str) -> "Sampling":
    """Sampling of every prompt to the model of a role. Raises `UserError` without a model."""
    from memeval.llm.openai import Sampling

    if not settings.model or not settings.base_url:
        raise UserError(
            f"{role}.model is not set: name the model or deployment to call",
            f"for example:  {role}.model=gpt-4o-mini",
        )

    return Sampling(settings, role)


class Models:
    """The models of one cell; its embedder and rerankers are created on first use."""

    meter = MeteredModel
    """Counts the calls of each model."""

    def __init__(
        self,
        config: RunConfig,
        origin: str,
        say: Callable[[str], None] | None = None,
        connections: Connections | None = None,
    ) -> None:
        """`say` gets messages for the user; `connections`, if given, are shared and stay open."""
        self.origin = origin
        self._config, self._say = config, say
        self.connections = connections or Connections(
            say, open_store(config.store, cache_dir(), say)
        )
        self._owns_connections = connections is None
        self.memories = open_memories(config.store, say)
        self._embedder: Embedder | None = None
        self._rerankers: dict[tuple[str | None, ...], Reranker | None] = {}
        for name, settings in (("llm", config.llm), ("embedder", config.embedder)):
            if say and settings.name == "openai" and settings.max_retries is not None:
                say(
                    f"{name}.max_retries is deprecated: retries are limited by time; "
                    f"use {name}.patience_s={settings.patience_s:g}"
                )

        self.reader = self._model(ANSWERS)
        self.ingest_model = self._model(INGEST)

    def judge(self) -> LanguageModel:
        return self._model(JUDGE)

    def drafter(self) -> LanguageModel:
        return self._model(DRAFT)

    def embedder(self) -> Embedder:
        """The embedder of all cases; state learned from a case's texts belongs to the case."""
        if self._embedder is None:
            settings = self._config.embedder
            embedder = EMBEDDERS.load(settings.name, settings.class_)
            self._embedder = embedder.from_settings(settings, self)

        return self._embedder

    def reranker(self, name: str) -> Reranker | None:
        """The cell's reranker, if any; `name` is the system's reranker, for `reranker=default`."""
        settings = self._config.reranker
        if settings.name == DEFAULT:
            of_system = config_named(name)
            settings = replace(settings, name=of_system.name, class_=of_system.class_)

        chosen = (settings.name, settings.class_)
        if chosen not in self._rerankers:
            self._rerankers[chosen] = build_reranker(settings, self)

        return self._rerankers[chosen]

    def _model(self, role: str) -> LanguageModel:
        return self.meter(self._unmetered(role))

    def _unmetered(self, role: str) -> LanguageModel:
        settings = settings_of_role(self._config.llm, role)
        if settings.name == "extractive":
            from memeval.llm.extractive import ExtractiveModel

            return ExtractiveModel()

        if settings.name == "mock":
            from memeval.llm.mock import MockModel

            return MockModel()

        if settings.name != "openai":
            return MODELS.load(settings.name).from_settings(settings, role, self)

        from memeval.llm.openai import OpenAIModel

        sampling = sampling_of(settings, role)
        endpoint = self.endpoint(endpoint_settings(settings, role))
        return OpenAIModel(endpoint, sampling, self.cache("responses"), self.origin)

    def endpoint(self, settings: EndpointSettings) -> Endpoint:
        """The endpoint at a URL with a key and headers, see `Connections`."""
        return self.connections.endpoint(settings)

    def cache(self, name: str) -> ReplyCache:
        return self.connections.cache(name)

    async def aclose(self) -> None:
        """Closes the connections, unless others share them."""
        if self._owns_connections:
            await self.connections.aclose()
