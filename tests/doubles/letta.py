"""A double of a Letta server on loopback: the endpoints that memeval calls through letta-client
1.12, in the shapes that it reads.

GET /v1/health/ · POST /v1/agents/ · POST /v1/agents/{id}/archival-memory ·
GET /v1/agents/{id}/archival-memory/search · DELETE /v1/agents/{id}/archival-memory/{passage} ·
POST /v1/conversations/?agent_id= · POST /v1/conversations/{id}/messages (server-sent events) ·
DELETE /v1/conversations/{id} · GET /v1/archives/?agent_id= · DELETE /v1/agents/{id} ·
DELETE /v1/archives/{id}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from doubles.loopback import Events, Request, ServiceDouble
from doubles.rerank import shared_words

DATE = "2026-01-01T00:00:00Z"
LONGEST_BYTES = 4 * 8192
"""Longest entry of an archive: four bytes count as one token."""


def all_it_knows(found: Sequence[str], messages: Sequence[str]) -> str:
    """The agent's default reply: all texts that it found, then the earlier messages."""
    return (
        " | ".join([*found, *(f"earlier: {message}" for message in messages[:-1])])
        or "The conversation does not mention it."
    )


class LettaDouble(ServiceDouble):
    """Agents that search their archive once per message.

    They reply with what `say` returns for the found texts and the messages so far.
    """

    def __init__(
        self,
        say: Callable[[Sequence[str], Sequence[str]], str] = all_it_knows,
        *,
        token: str | None = None,
        port: int = 0,
    ) -> None:
        super().__init__(port)
        self.say, self.token = say, token
        self.agents: dict[str, dict[str, Any]] = {}
        """The body that each agent was created with, until the agent is deleted."""
        self.archives: dict[str, list[dict[str, Any]]] = {}
        """Passages by archive, until the archive is deleted."""
        self.conversations: dict[str, list[str]] = {}
        """Messages by conversation, until the conversation is deleted."""
        self.tool_return: Callable[[list[dict[str, Any]]], str] = str
        """Writes the result of a search; the server writes it as Python's `str` does."""
        self.events: Events | None = None
        """Sent instead of a reply, if set."""
        self._made = 0
        self._routes: list[tuple[str, str, Callable[..., tuple[int, Any]]]] = [
            ("GET", r"/v1/health/", lambda _: (200, {"status": "ok", "version": "0.16.8"})),
            ("POST", r"/v1/agents/", self._create),
            ("POST", r"/v1/agents/([^/]+)/archival-memory", self._insert),
            ("GET", r"/v1/agents/([^/]+)/archival-memory/search", self._find),
            ("DELETE", r"/v1/agents/([^/]+)/archival-memory/([^/]+)", self._remove),
            ("DELETE", r"/v1/agents/([^/]+)", lambda _, agent: self._delete(self.agents, agent)),
            ("GET", r"/v1/archives/", self._archives),
            (
                "DELETE",
                r"/v1/archives/([^/]+)",
                lambda _, archive: self._delete(self.archives, archive),
            ),
            ("POST", r"/v1/conversations/", self._start_conversation),
            (
                "DELETE",
                r"/v1/conversations/([^/]+)",
                lambda _, name: self._delete(self.conversations, name),
            ),
            ("POST", r"/v1/conversations/([^/]+)/messages", self._reply),
        ]

    def answer(self, request: Request) -> tuple[int, Any]:
        if (
            self.token is not None
            and request.headers.get("authorization") != f"Bearer {self.token}"
        ):
            return 401, {"detail": "Unauthorized"}

        for method, pattern, reply in self._routes:
            if method == request.method and (fits := re.fullmatch(pattern, request.path)):
                return reply(request, *fits.groups())

        return 404, {"detail": "Not Found"}

    def _name(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made}"

    def _delete(self, kept: dict[str, Any], name: str) -> tuple[int, Any]:
        return (
            (200, None)
            if kept.pop(name, None) is not None
            else (404, {"detail": f"{name} not found"})
        )

    def _create(self, request: Request) -> tuple[int, Any]:
        body, name = request.json(), self._name("agent")
        if "/" not in body.get("model", "") or "/" not in body.get("embedding", ""):
            return 400, {
                "detail": f"Handle {body.get('model')} not found, "
                "must be one of ['openai/gpt-4o-mini']"
            }

        self.agents[name] = body
        return 200, {
            "id": name,
            "name": body["name"],
            "agent_type": body["agent_type"],
            "blocks": [],
            "sources": [],
            "tags": [],
            "tools": [],
        }

    def _insert(self, request: Request, agent: str) -> tuple[int, Any]:
        if agent not in self.agents:
            return 404, {"detail": f"{agent} not found"}

        body = request.json()
        if len(body["text"].encode()) > LONGEST_BYTES:
            return 400, {
                "detail": "INVALID_ARGUMENT: Archival memory content exceeds token limit of 8192 "
                "tokens (found 13237 tokens)"
            }

        passage = {"id": self._name("passage"), "created_at": DATE, **body}
        self.archives.setdefault(f"archive-of-{agent}", []).append(passage)
        return 200, [passage]

    def _find(self, request: Request, agent: str) -> tuple[int, Any]:
        found = self._ranked(agent, request.query["query"])[: int(request.query["top_k"])]
        return 200, {"count": len(found), "results": found}

    def _remove(self, request: Request, agent: str, passage: str) -> tuple[int, Any]:
        kept = self.archives.get(f"archive-of-{agent}", [])
        if passage not in [row["id"] for row in kept]:
            return 404, {"detail": f"{passage} not found"}

        kept[:] = [row for row in kept if row["id"] != passage]
        return 200, {"message": "deleted"}

    def _archives(self, request: Request) -> tuple[int, Any]:
        """Cursors name the last item of a page; there is never more than one page."""
        name = f"archive-of-{request.query['agent_id']}"
        rows = (
            [{"id": name, "name": name, "created_at": DATE}]
            if name in self.archives and "after" not in request.query
            else []
        )
        return 200, rows

    def _start_conversation(self, request: Request) -> tuple[int, Any]:
        # Messages name only the conversation, so its name contains that of the agent.
        name = self._name("conv") + "@" + request.query["agent_id"]
        self.conversations[name] = []
        return 200, {"id": name, "agent_id": request.query["agent_id"]}

    def _reply(self, request: Request, conversation: str) -> tuple[int, Any]:
        if conversation not in self.conversations:
            return 404, {"detail": f"{conversation} not found"}

        agent, messages = conversation.partition("@")[2], self.conversations[conversation]
        messages.append(request.json()["messages"][0]["content"])
        if self.events is not None:
            return 200, self.events

        results = self._search(agent, messages[-1])
        query = json.dumps({"query": messages[-1]})
        call = {"name": "archival_memory_search", "arguments": query, "tool_call_id": "call-1"}
        returned = {
            "status": "success",
            "tool_call_id": "call-1",
            "tool_return": self.tool_return(results),
            "name": call["name"],
        }
        words = self.say([row["content"] for row in results], messages)
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "cached_input_tokens": 40,
            "step_count": 2,
        }
        return 200, Events(
            [
                {"message_type": "ping", "id": "ping-1", "date": DATE},
                {
                    "message_type": "reasoning_message",
                    "id": "m-1",
                    "date": DATE,
                    "reasoning": "I search.",
                },
                {
                    "message_type": "tool_call_message",
                    "id": "m-1",
                    "date": DATE,
                    "tool_call": call,
                    "tool_calls": [call],
                },
                {"message_type": "tool_return_message", "id": "m-2", "date": DATE, **returned},
                {"message_type": "assistant_message", "id": "m-3", "date": DATE, "content": words},
                {"message_type": "stop_reason", "stop_reason": "end_turn"},
                {"message_type": "usage_statistics", **usage},
            ]
        )

    def _search(self, agent: str, query: str) -> list[dict[str, Any]]:
        """As many passages as the agent's persona says, those that share most words first.

        Ties come in insertion order. The real server returns equally near passages in any order.
        """
        persona = str(self.agents[agent]["memory_blocks"][0]["value"])
        asked = re.search(r"top_k=(\d+)", persona)
        return self._ranked(agent, query)[: int(asked[1]) if asked else 5]

    def _ranked(self, agent: str, query: str) -> list[dict[str, Any]]:
        """All passages that share a word with the query, in the form of search results."""
        scored = [
            (shared_words(query, row["text"]), row)
            for row in self.archives.get(f"archive-of-{agent}", [])
        ]
        best = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: -pair[0])
        return [
            {
                "id": row["id"],
                "timestamp": row["created_at"],
                "content": row["text"],
                "tags": [],
            }
            for _, row in best
        ]
