"""Doubles of memories that implement the contracts of other benchmarks, on loopback."""

from __future__ import annotations

import re
from typing import Any

from doubles.loopback import Request, ServiceDouble

Status = tuple[int, Any]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


class ContractDouble(ServiceDouble):
    """Finds the texts of a user that share the most words with the query."""

    def __init__(self, key: str | None = None, port: int = 0) -> None:
        """`key`, if set, is required as `Authorization: Bearer KEY` or `X-Api-Key`."""
        super().__init__(port)
        self.key = key
        self.users: dict[str, list[dict[str, Any]]] = {}
        """What is stored, by user."""

    def answer(self, request: Request) -> Status:
        sent = (request.headers.get("authorization"), request.headers.get("x-api-key"))
        if self.key is not None and sent not in ((f"Bearer {self.key}", None), (None, self.key)):
            return 401, {"detail": "Unauthorized"}

        operations = {
            ("GET", "/health"): self.health,
            ("POST", "/add"): self.add,
            ("POST", "/search"): self.search,
            ("DELETE", "/reset"): self.reset,
        }
        operation = operations.get((request.method, request.path))
        try:
            return operation(request.json()) if operation else (404, {"detail": "Not Found"})
        except KeyError as error:
            return 422, {"detail": f"{error} is required"}

    def health(self, body: dict[str, Any]) -> Status:
        return 404, {"detail": "Not Found"}

    def add(self, body: dict[str, Any]) -> Status:
        raise NotImplementedError

    def search(self, body: dict[str, Any]) -> Status:
        raise NotImplementedError

    def reset(self, body: dict[str, Any]) -> Status:
        return 404, {"detail": "Not Found"}

    def best(self, user: str, query: str, most: int) -> list[tuple[dict[str, Any], int]]:
        """The stored items that share the most words with a query, and how many words."""
        asked = words(query)
        found = [(item, len(asked & words(item["text"]))) for item in self.users.get(user, [])]
        return sorted(found, key=lambda pair: -pair[1])[:most]


class LeaderboardDouble(ContractDouble):
    """Implements `aml`: each message becomes a memory under an id of the service's own."""

    def __init__(self, key: str | None = None, port: int = 0) -> None:
        super().__init__(key, port)
        self.seen: set[str] = set()
        """Ids of requests to add."""
        self.clock: str | None = None
        """Replaces the time of each message, if it is set."""

    def health(self, body: dict[str, Any]) -> Status:
        return 200, {"ok": True}

    def add(self, body: dict[str, Any]) -> Status:
        user, request = body["user_id"], body["request_id"]
        stored = self.users.setdefault(user, [])
        for message in body["messages"] if request not in self.seen else ():
            assert message["role"] in ("user", "assistant")
            created = self.clock or message.get("timestamp")
            stored.append({"text": message["content"], "created_at": created})

        self.seen.add(request)
        echo = {name: body[name] for name in ("request_id", "user_id", "session_id")}
        return 200, {"success": True, **echo}

    def search(self, body: dict[str, Any]) -> Status:
        best = self.best(body["user_id"], body["query"], body["top_k"])
        rows = [
            {
                "id": f"mem-{number}",
                "content": item["text"],
                "score": score,
                "created_at": item["created_at"],
            }
            for number, (item, score) in enumerate(best)
        ]
        return 200, {"data": rows}


class AddSearchResetDouble(ContractDouble):
    """Implements `add_search_reset`: each text becomes a memory under the id that came with it."""

    def add(self, body: dict[str, Any]) -> Status:
        belief = body["metadata"]["beliefId"]
        stored = self.users.setdefault(body["user_id"], [])
        if all(item["id"] != belief for item in stored):
            stored.append({"id": belief, "text": body["text"]})

        return 200, {"ok": True}

    def search(self, body: dict[str, Any]) -> Status:
        best = self.best(body["user_id"], body["query"], body["limit"])
        rows = [{"id": item["id"], "memory": item["text"], "score": n} for item, n in best]
        return 200, {"results": rows}

    def reset(self, body: dict[str, Any]) -> Status:
        self.users.clear()
        return 200, {"ok": True}
