"""Builds the models and embedders that a config names: one endpoint per address, shared by all that call it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from memeval.config.paths import cache_dir
from memeval.config.schema import RunConfig
from memeval.embedding.contract import Embedder
from memeval.errors import UserError, unknown
from memeval.llm.cache import Cache
from memeval.llm.contract import LanguageModel
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.llm.flight import lock_folder
from memeval.llm.keys import NO_KEY, headers_of, key_of
from memeval.llm.metering import MeteredModel
from memeval.llm.places import Places

OFFLINE = "or offline:  llm=extractive embedder=tfidf"
"""What to type without a key."""

JUDGE_TEMPERATURE = 0.0
"""Judges are asked at temperature 0, whatever the answers are: the published protocols do so."""


def key_for(variable: str, address: str, option: str, headers: Mapping[str, str] | None) -> str:
    """The key that is sent to an address. Where further headers are, one of them may be the gateway's key: none is asked for besides."""
    if headers and not os.environ.get(variable):
        return NO_KEY
    return key_of(variable, address, option, OFFLINE)


class Models:
    """The models of one cell, made when they are first asked for."""

    def __init__(
        self, config: RunConfig, origin: str, say: Callable[[str], None] | None = None
    ) -> None:
        """`say` is told of what a user should know meanwhile: which endpoint is waited for, damage of the caches and what was kept."""
        self._config, self._origin, self._say = config, origin, say
        self._endpoints: dict[tuple[str, str, tuple[tuple[str, str], ...]], Endpoint] = {}
        self._caches: dict[str, Cache] = {}
        self._embedder: Embedder | None = None
        self._warn()
        self.reader = self._model(config.llm.model, config.llm.temperature)

    def _warn(self) -> None:
        for name, reach in (("llm", self._config.llm), ("embedder", self._config.embedder)):
            if self._say and reach.name == "openai" and reach.max_retries is not None:
                self._say(
                    f"{name}.max_retries is deprecated: retries are bounded by time; use {name}.patience_s={reach.patience_s:g}"
                )

    def judge(self) -> LanguageModel:
        return self._model(
            self._config.llm.judge_model or self._config.llm.model, JUDGE_TEMPERATURE
        )

    def embedder(self) -> Embedder:
        """The embedder of a case: what it learns of the case's texts stays there, and a text that cases share is embedded once."""
        settings = self._config.embedder
        if settings.name == "tfidf":
            from memeval.embedding.tfidf import CharTfidfEmbedder

            return (
                CharTfidfEmbedder(width=settings.width) if settings.width else CharTfidfEmbedder()
            )
        if settings.name != "openai":
            raise unknown("embedder", settings.name, ("tfidf", "openai"))
        if self._embedder is None:
            self._embedder = self._embedding_endpoint()
        return self._embedder

    def _embedding_endpoint(self) -> Embedder:
        from memeval.embedding.openai import OpenAIEmbedder

        settings = self._config.embedder
        if not settings.model or not settings.base_url:
            raise UserError("embedder=openai needs embedder.model and embedder.base_url")
        reach = EndpointSettings(
            settings.base_url,
            key_for(settings.api_key_env, settings.base_url, "embedder=openai", settings.headers),
            settings.max_concurrency,
            settings.timeout_s,
            settings.patience_s,
            settings.max_retries,
            headers_of(settings.headers, "embedder.headers"),
        )
        return OpenAIEmbedder(
            self._endpoint(reach),
            settings.model,
            settings.width,
            self._cache("embeddings"),
            self._origin,
        )

    def _model(self, model: str | None, temperature: float | None) -> LanguageModel:
        settings = self._config.llm
        if settings.name == "extractive":
            from memeval.llm.extractive import ExtractiveModel

            return MeteredModel(ExtractiveModel())
        if settings.name == "mock":
            from memeval.llm.mock import MockModel

            return MeteredModel(MockModel())
        if settings.name != "openai":
            raise unknown("llm", settings.name, ("extractive", "openai", "mock"))
        from memeval.llm.openai import OpenAIModel, Sampling

        if not model or not settings.base_url:
            raise UserError("llm=openai needs llm.model", "for example:  llm.model=gpt-4o-mini")
        reach = EndpointSettings(
            settings.base_url,
            key_for(settings.api_key_env, settings.base_url, "llm=openai", settings.headers),
            settings.max_concurrency,
            settings.timeout_s,
            settings.patience_s,
            settings.max_retries,
            headers_of(settings.headers, "llm.headers"),
        )
        sampling = Sampling(model, temperature, settings.max_tokens, settings.send_seed)
        return MeteredModel(
            OpenAIModel(self._endpoint(reach), sampling, self._cache("responses"), self._origin)
        )

    def _endpoint(self, settings: EndpointSettings) -> Endpoint:
        """The endpoint at an address under a key and headers; where two parts ask for one with different limits, the lower limit
        holds for both.

        Its places are those of the home: the limit holds over all processes.
        """
        reach = (settings.base_url, settings.api_key, tuple(sorted(settings.headers.items())))
        known = self._endpoints.get(reach)
        if known is None:
            folder = lock_folder(cache_dir() / "responses.sqlite")
            places = Places(folder, settings.base_url, settings.api_key, settings.max_concurrency)
            known = self._endpoints[reach] = Endpoint(settings, say=self._say, places=places)
        elif settings.max_concurrency < known.settings.max_concurrency:
            known.limit(settings.max_concurrency)
        return known

    def _cache(self, name: str) -> Cache:
        if name not in self._caches:
            self._caches[name] = Cache(cache_dir() / f"{name}.sqlite", self._say)
        return self._caches[name]

    async def aclose(self) -> None:
        for endpoint in self._endpoints.values():
            await endpoint.aclose()
        for cache in self._caches.values():
            cache.close()
