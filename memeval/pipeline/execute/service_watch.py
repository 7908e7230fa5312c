"""Stops a run whose memory, outside of this process, fails again and again."""

from __future__ import annotations

from memeval.errors import MemoryServiceError, WorldError


class ServiceWatch:
    """Counts failures of a served memory in a row: each may take as long as its time limit."""

    def __init__(self, most: int | None) -> None:
        """`most` failures stop the run (`stop_after_failures`); None never does."""
        self._most, self._in_row = most, 0

    def succeeded(self) -> None:
        """A question was answered, or a case ingested."""
        self._in_row = 0

    def failed(self, error: Exception) -> None:
        """A question or an ingest failed. Raises `WorldError` for the last one that is allowed."""
        # What a model or a class of the user's own raised says nothing of a service.
        if not isinstance(error, MemoryServiceError):
            return

        self._in_row += 1
        if self._most is not None and self._in_row >= self._most:
            raise WorldError(
                f"stopped: the memory failed {self._in_row} times in a row, the last time: {error} "
                f"(stop_after_failures={self._most}); the same command continues"
            ) from error
