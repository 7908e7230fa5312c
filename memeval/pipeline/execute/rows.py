"""Decides which stored rows are reused, and which are made again."""

from __future__ import annotations

from msgspec.structs import replace

from memeval.records import Role, Status, Usage
from memeval.results.rows import AnswerRow, IngestRow
from memeval.results.verdict_row import VerdictRow
from memeval.text.names import text_digest

RETRYABLE = frozenset(
    {Status.INGEST_FAILED, Status.ANSWER_FAILED, Status.ANSWER_FILTERED, Status.JUDGE_FAILED}
)
"""Statuses that the same command tries again."""


class Bill:
    """Decides what a run paid for: of repeats that share a request, the first that is passed pays.

    Each row of each repeat must be passed once.
    """

    def __init__(self, run_key: str) -> None:
        self._run_key = run_key
        self._embedded: dict[str, set[Usage]] = {}
        """What other repeats embedded and reranked, by the id of the row."""

    def usages_of(self, row: AnswerRow | IngestRow | VerdictRow) -> tuple[Usage, ...]:
        """A row's usages; those paid for by another run, or in another repeat, count as cached."""
        # Costs are what this run paid: sums over runs then count each call once.
        if row.origin != self._run_key:
            return tuple(replace(usage, cached=True) for usage in row.usage)

        embedded = [usage for usage in row.usage if usage.role is Role.EMBED]
        if not embedded:
            return row.usage

        # These requests have no seed: the same one in another repeat is read from the cache.
        others = self._embedded.setdefault(row.id, set())
        billed = [replace(usage, cached=True) if usage in others else usage for usage in row.usage]
        others.update(embedded)
        return tuple(billed)


def is_final(row: AnswerRow | VerdictRow | None) -> bool:
    """Whether a stored row need not be made again."""
    if row is None or row.status in RETRYABLE:
        return False

    # `tries`: the judge's reply could not be read, and must be requested again.
    return isinstance(row, AnswerRow) or not row.tries


def answer_digest(text: str) -> str:
    """Digest of the answer that a verdict judged, stored with the verdict."""
    return text_digest(text)[:16]


def is_about(verdict: VerdictRow, answer: AnswerRow) -> bool:
    """Whether a verdict judges this answer, not an earlier version of it."""
    return verdict.judged == answer_digest(answer.hypothesis or "")
