"""A double of mem0's hosted API on loopback: the endpoints that mem0ai's own client calls, and the
one that reports the state of an addition.

GET /v1/ping/ · POST /v3/memories/add/ · GET /v1/event/{id}/ · POST /v3/memories/search/ · POST
/v3/memories/?page= · PUT, DELETE /v1/memories/{id}/ · DELETE /v1/memories/?user_id= · DELETE
/v2/entities/user/{id}/. Additions are processed in the background, as on the host: an event is
PENDING for `polls` requests, then SUCCEEDED, and its memory can be found after that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from doubles.loopback import Request, ServiceDouble
from doubles.rerank import shared_words


class Mem0Double(ServiceDouble):
    """Keeps memories by user; `infer` turns a message into the text extracted from it."""

    def __init__(
        self,
        *,
        key: str = "m0-key",
        polls: int = 1,
        infer: Callable[[str], str] = str.upper,
        port: int = 0,
    ) -> None:
        super().__init__(port)
        self.key, self.polls, self.infer = key, polls, infer
        self.memories: dict[str, list[dict[str, Any]]] = {}
        """By user, in the order in which they were added."""
        self.failing = False
        """If true, every event ends as FAILED."""
        self._events: dict[str, tuple[int, dict[str, Any]]] = {}
        self._routes: list[tuple[str, str, Callable[..., tuple[int, Any]]]] = [
            ("GET", r"/v1/ping/", self._ping),
            ("POST", r"/v3/memories/add/", self._add),
            ("GET", r"/v1/event/([^/]+)/", self._event),
            ("POST", r"/v3/memories/search/", self._search),
            ("POST", r"/v3/memories/", self._list),
            ("DELETE", r"/v1/memories/", self._clear),
            ("DELETE", r"/v1/memories/([^/]+)/", self._change),
            ("PUT", r"/v1/memories/([^/]+)/", self._change),
            ("DELETE", r"/v2/entities/user/([^/]+)/", self._forget),
        ]

    @property
    def users(self) -> list[str]:
        """Known users, with or without memories."""
        return sorted(self.memories)

    def answer(self, request: Request) -> tuple[int, Any]:
        if request.headers.get("authorization") != f"Token {self.key}":
            return 401, {"detail": "Given token not valid for any token type"}

        for method, pattern, reply in self._routes:
            if method == request.method and (fits := re.fullmatch(pattern, request.path)):
                return reply(request, *fits.groups())

        return 404, {"detail": "Not found."}

    def _ping(self, request: Request) -> tuple[int, Any]:
        return 200, {
            "status": "ok",
            "org_id": "org",
            "project_id": "project",
            "user_email": "someone@example.com",
        }

    def _clear(self, request: Request) -> tuple[int, Any]:
        self.memories[request.query["user_id"]] = []
        return 200, {"message": "Memories deleted successfully!"}

    def _list(self, request: Request) -> tuple[int, Any]:
        rows = self.memories.get(request.json()["filters"]["user_id"], [])
        page, size = (int(request.query[name]) for name in ("page", "page_size"))
        is_last = page * size >= len(rows)
        following = None if is_last else f"/v3/memories/?page={page + 1}"
        shown = rows[(page - 1) * size : page * size]
        return 200, {"count": len(rows), "next": following, "previous": None, "results": shown}

    def _change(self, request: Request, name: str) -> tuple[int, Any]:
        """Deletes a memory or replaces its text."""
        for rows in self.memories.values():
            for row in [row for row in rows if row["id"] == name]:
                if request.method == "DELETE":
                    rows.remove(row)
                else:
                    row["memory"] = request.json()["text"]

                return 200, {"message": "Memory changed successfully!"}

        return 404, {"detail": "Memory not found!"}

    def _forget(self, request: Request, user: str) -> tuple[int, Any]:
        known = self.memories.pop(user, None) is not None
        return (
            (200, {"message": "Entity deleted successfully!"})
            if known
            else (404, {"detail": "Not found."})
        )

    def _add(self, request: Request) -> tuple[int, Any]:
        body = request.json()
        if not body.get("user_id") or not body.get("messages"):
            return 400, {"detail": "user_id and messages are required"}

        self.memories.setdefault(body["user_id"], [])
        name = f"event-{len(self._events)}"
        self._events[name] = (self.polls, body)
        return 200, {
            "message": "Memory processing has been queued for background execution",
            "status": "PENDING",
            "event_id": name,
        }

    def _event(self, request: Request, name: str) -> tuple[int, Any]:
        if name not in self._events:
            return 404, {"detail": "Not found."}

        left, body = self._events[name]
        # Below 0, its memories are stored already: a further request must not store them twice.
        if left < 0:
            return 200, {"id": name, "event_type": "ADD", "status": "SUCCEEDED", "results": []}

        self._events[name] = (left - 1, body)
        if left:
            return 200, {"id": name, "event_type": "ADD", "status": "PENDING"}

        if self.failing:
            self._events[name] = (0, body)
            return 200, {"id": name, "event_type": "ADD", "status": "FAILED"}

        for message in body["messages"]:
            text = self.infer(message["content"]) if body.get("infer", True) else message["content"]
            row = {
                "id": f"{name}-memory",
                "memory": text,
                "metadata": body.get("metadata"),
                "created_at": body.get("timestamp"),
            }
            self.memories[body["user_id"]].append(row)

        return 200, {"id": name, "event_type": "ADD", "status": "SUCCEEDED", "results": []}

    def _search(self, request: Request) -> tuple[int, Any]:
        body = request.json()
        if not body.get("query") or "user_id" not in body.get("filters", {}):
            return 400, {"detail": "query and filters are required"}

        rows = self.memories.get(body["filters"]["user_id"], [])
        scored = [{**row, "score": shared_words(body["query"], row["memory"])} for row in rows]
        found = [row for row in scored if row["score"] >= body.get("threshold", 0.1)]
        return 200, {
            "results": sorted(found, key=lambda row: -row["score"])[: body.get("top_k", 10)]
        }
