"""Any cross-encoder behind a `POST /rerank` as Jina, Cohere, Voyage, vLLM and others serve it, with
the response cache in front of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from memeval.config.checks import check_address
from memeval.config.roles import RERANKER_LIMIT
from memeval.config.schema import RerankerConfig
from memeval.errors import UserError
from memeval.llm.cache import content_key
from memeval.llm.cache_contract import ReplyCache
from memeval.llm.cached_call import CachedCalls
from memeval.llm.endpoint import Endpoint
from memeval.llm.metering import current_ledger, with_request
from memeval.llm.network import Network, endpoint_settings
from memeval.llm.reply.body import NOTES
from memeval.llm.reply.ranking import read_ranking
from memeval.llm.reply.stored import stored_ranking
from memeval.llm.tokens import count_tokens
from memeval.records import Role, Usage
from memeval.results.prices import provider_of
from memeval.retrieval.rerank import Candidate, Reranker

PATH = "/rerank"
BY_KEY = "for the key:  export RERANK_API_KEY=..."


class EndpointReranker(Reranker):
    """Sends `{model, query, documents, top_n}`, reads `{results: [{index, relevance_score}]}`.

    A request made before (same URL, model, query and documents) is answered from the response
    cache. A cross-encoder draws nothing at random, so the key has neither seed nor question id.

    The tokens are metered under the role `embed`: a call that retrieval makes and that writes no
    text. They are `usage.total_tokens` if the endpoint reports them, else counted here, with the
    query counted for each document. A blank query and an empty list are not sent: the first ranking
    stays.
    """

    def __init__(self, endpoint: Endpoint, model: str, cache: ReplyCache, origin: str) -> None:
        """`origin` names the run: calls that it paid for before a crash still count as billed."""
        self._endpoint, self._model = endpoint, model
        self._address = endpoint.settings.base_url
        self._calls = CachedCalls(cache, origin, endpoint.lose_store)

    @classmethod
    def from_settings(cls, settings: RerankerConfig, network: Network | None) -> Self:
        if network is None:
            raise UserError(
                "reranker=endpoint needs the endpoints of a run",
                "pass them:  SystemContext(..., reranker=models.reranker)",
            )

        address = str(settings.base_url)
        check_address("reranker.base_url", address, BY_KEY)
        # With or without the path, it is the same endpoint, with the same limit and the same cache
        # keys.
        settings = replace(settings, base_url=address.rstrip("/").removesuffix(PATH))
        reach = endpoint_settings(settings, "reranker=endpoint", RERANKER_LIMIT)
        endpoint = network.endpoint(reach)
        return cls(endpoint, str(settings.model), network.cache("responses"), network.origin)

    async def scores(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        if not candidates or not query.strip():
            return [candidate.similarity for candidate in candidates]

        documents = [candidate.text for candidate in candidates]
        body = {
            "model": self._model,
            "query": query,
            "documents": documents,
            "top_n": len(documents),
        }

        key = content_key({"endpoint": self._address, "path": PATH, **body})
        entry, cached = await self._calls.once(
            key,
            read=lambda value: stored_ranking(value, len(documents)),
            call=lambda: self._ask(body),
        )
        self._meter(entry, key, cached)
        scores: list[float] = entry["scores"]
        return scores

    def _meter(self, entry: Mapping[str, Any], key: str, cached: bool) -> None:
        ledger = current_ledger()
        ledger.repairs.update(filter(NOTES.__contains__, entry.get("notes", ())))
        usage = Usage(
            role=Role.EMBED,
            model=self._model,
            provider=provider_of(self._address),
            prompt_tokens=entry["tokens"],
            completion_tokens=0,
            estimated=entry["estimated"],
            cached=cached,
        )
        ledger.usages.append(with_request(usage, key))
        ledger.add_duration(Role.EMBED, entry["latency_s"])

    async def _ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        documents = body["documents"]
        reply = await self._endpoint.post(
            PATH, body, lambda sent: read_ranking(sent, len(documents))
        )

        ranking = reply.value
        tokens, estimated = ranking.tokens, ranking.tokens is None
        if tokens is None:
            of_query = count_tokens(body["query"])
            tokens = len(documents) * of_query + sum(map(count_tokens, documents))

        return {
            "scores": list(ranking.scores),
            "tokens": tokens,
            "estimated": estimated,
            "latency_s": reply.latency_s,
            "wait_s": reply.wait_s,
            "notes": list(ranking.notes),
        }
