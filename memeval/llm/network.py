"""The run's endpoints and caches, for models, embedders and rerankers."""

from typing import Protocol

from memeval.config.schema import EmbedderConfig, LlmConfig, RerankerConfig
from memeval.llm.cache_contract import ReplyCache
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.llm.keys import headers_of, key_for


class Network(Protocol):
    """The endpoints of one run: one per URL, key and headers, under one limit for all."""

    @property
    def origin(self) -> str:
        """Name of the run; calls that it paid for before a crash are still billed to it."""

    def endpoint(self, settings: EndpointSettings) -> Endpoint:
        """The endpoint at a URL; the lowest limit that any caller sets applies to all."""

    def cache(self, name: str) -> ReplyCache:
        """The cache of that name: `responses` or `embeddings`."""


def endpoint_settings(
    config: LlmConfig | EmbedderConfig | RerankerConfig, option: str, usual_limit: int = 1
) -> EndpointSettings:
    """Settings for reaching a model. Raises `UserError` if a key or header is not set."""
    assert config.base_url is not None, "resolve() gives each endpoint an address"
    return EndpointSettings(
        base_url=config.base_url,
        api_key=key_for(config.api_key_env or "", config.base_url, option, config.headers),
        max_concurrency=config.max_concurrency or usual_limit,
        timeout_s=config.timeout_s,
        patience_s=config.patience_s,
        max_retries=getattr(config, "max_retries", None),
        headers=headers_of(config.headers, f"{option.partition('=')[0]}.headers"),
        api_version=getattr(config, "api_version", None),
    )
