"""The interface of a memory outside this process, and its replacement in an estimate."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from memeval.errors import ModelError
from memeval.llm.metering import current_ledger
from memeval.systems.base import TRIED_AGAIN
from memeval.text.shown import one_line


class ToolError(ModelError):
    """A tool call failed, but the server is reachable."""


class Service(ABC):
    """Calls the operations of a served memory."""

    name: str
    """The service's name in messages, such as `the memory service at http://localhost:8077`."""

    @abstractmethod
    async def call(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The reply to an operation, a JSON object.

        Raises `ModelError` for a failure of the service, and `UserError` if it never answered.
        """

    async def end_case(self, body: Mapping[str, Any]) -> None:
        """Tells the service that a case is finished."""
        await self.call("reset", body)

    def note_setback(self, setback: str | None) -> None:
        """Records the last failure of a request that was repeated, if it was."""
        if setback is not None:
            current_ledger().remarks[TRIED_AGAIN] = (
                f"requests to {self.name} were repeated after: {one_line(setback)}"
            )

    async def last_words(self) -> str:
        """The last line of a program's stderr, in the form that messages append."""
        return ""

    async def close(self) -> None:
        """Releases connections and processes."""
        return


class EstimateService(Service):
    """Replaces a service in an estimate: it finds the first chunks and sends nothing."""

    name = "the simulated memory service"

    def __init__(self) -> None:
        self._chunks: list[Mapping[str, Any]] = []

    async def call(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self._chunks += body.get("chunks", ())
        chunks = self._chunks[: body.get("top_k", 0)]
        results = [{"text": chunk["text"], "turn_ids": chunk["turn_ids"]} for chunk in chunks]
        return {"ready": True, "results": results, "text": "imagined", "usage": [], "items": 0}
