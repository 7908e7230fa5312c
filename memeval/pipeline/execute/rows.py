"""Decides which stored rows are reused, and which are made again."""

from __future__ import annotations

from msgspec.structs import replace

from memeval.records import Status, Usage
from memeval.results.rows import AnswerRow, IngestRow
from memeval.results.verdict_row import VerdictRow
from memeval.text.names import text_digest

RETRYABLE = frozenset(
    {Status.INGEST_FAILED, Status.ANSWER_FAILED, Status.ANSWER_FILTERED, Status.JUDGE_FAILED}
)
"""Statuses that the same command tries again."""


def usages_of(row: AnswerRow | IngestRow | VerdictRow, run_key: str) -> tuple[Usage, ...]:
    """A row's usages as the run counts them: usages paid for by another run count as cached."""
    # Costs are what this run paid: sums over runs then count each call once.
    if row.origin == run_key:
        return row.usage

    return tuple(replace(usage, cached=True) for usage in row.usage)


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
