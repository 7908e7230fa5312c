"""A double of a reranking service on loopback: `POST /v1/rerank`, in the shape that Jina, Cohere,
Voyage and vLLM share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from doubles.loopback import Request, ServiceDouble


def shared_words(query: str, document: str) -> float:
    """Share of the query's words that the document contains."""
    asked = set(re.findall(r"\w+", query.lower()))
    return len(asked & set(re.findall(r"\w+", document.lower()))) / len(asked) if asked else 0.0


class RerankDouble(ServiceDouble):
    """Scores documents by `score`, and returns the best first, as the services do.

    `usage=False` reports no tokens, as Cohere does.
    """

    def __init__(
        self,
        score: Callable[[str, str], float] = shared_words,
        *,
        usage: bool = True,
        port: int = 0,
    ) -> None:
        super().__init__(port)
        self.score, self.usage = score, usage
        self.reply: Mapping[str, Any] | None = None
        """Sent instead of a ranking, if set."""

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def answer(self, request: Request) -> tuple[int, Any]:
        if (request.method, request.path) != ("POST", "/v1/rerank"):
            return 404, {"detail": "Not Found"}

        body = request.json()
        query, documents = body.get("query"), body.get("documents")
        if not query or not documents or not body.get("model"):
            return 422, {"detail": "model, query and documents are required"}
        if self.reply is not None:
            return 200, self.reply

        rows = [
            {"index": index, "relevance_score": self.score(query, text)}
            for index, text in enumerate(documents)
        ]
        rows.sort(key=lambda row: -row["relevance_score"])
        tokens = sum(len(text.split()) + len(query.split()) for text in documents)
        usage = (
            {"usage": {"total_tokens": tokens}}
            if self.usage
            else {"meta": {"billed_units": {"search_units": 1}}}
        )
        return 200, {"model": body["model"], "results": rows[: body.get("top_n")], **usage}
