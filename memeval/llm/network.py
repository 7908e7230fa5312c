"""The run's endpoints and caches, for models, embedders and rerankers."""

from typing import Protocol

from memeval.llm.cache_contract import ReplyCache
from memeval.llm.endpoint import Endpoint, EndpointSettings


class Network(Protocol):
    """The endpoints of one run: one per URL, key and headers, under one limit for all."""

    @property
    def origin(self) -> str:
        """Name of the run; calls that it paid for before a crash are still billed to it."""

    def endpoint(self, settings: EndpointSettings) -> Endpoint:
        """The endpoint at a URL; the lowest limit that any caller sets applies to all."""

    def cache(self, name: str) -> ReplyCache:
        """The cache of that name: `responses` or `embeddings`."""
