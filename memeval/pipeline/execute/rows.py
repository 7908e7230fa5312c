"""Decides which stored rows are reused and which are redone."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec import UNSET
from msgspec.structs import replace

from memeval.records import RequestTokens, Status, Usage
from memeval.results.rows import AnswerRow, IngestRow
from memeval.results.verdict_row import VerdictRow
from memeval.text.names import text_digest

RETRYABLE = frozenset(
    {Status.INGEST_FAILED, Status.ANSWER_FAILED, Status.ANSWER_FILTERED, Status.JUDGE_FAILED}
)
"""Statuses that the same command tries again."""


class Bill:
    """Determines a run's costs: of rows that share a request, the first one passed pays. Each row
    of each repeat must be passed once.
    """

    def __init__(self, run_key: str) -> None:
        self._run_key = run_key
        self._paid: set[str] = set()
        """Digests of requests in earlier rows."""

    def usages_of(self, row: AnswerRow | IngestRow | VerdictRow) -> tuple[Usage, ...]:
        """A row's usages; those paid for by another run, or in another row, count as cached."""
        # Only this run's payments count, so sums over runs count each call once.
        if row.origin != self._run_key:
            return tuple(replace(usage, cached=True, requests=UNSET) for usage in row.usage)

        return self.split(row.usage)

    def split(self, usages: Iterable[Usage]) -> tuple[Usage, ...]:
        """Usages of this run; requests in an earlier row count as cached."""
        return tuple(chain.from_iterable(map(self._parts, usages)))

    def _parts(self, usage: Usage) -> Iterator[Usage]:
        """The part of a usage that this row pays for, and the part that an earlier row paid for."""
        if usage.cached or not isinstance(usage.requests, tuple):
            yield replace(usage, requests=UNSET)
            return

        new: list[RequestTokens] = []
        others: list[RequestTokens] = []
        for request in usage.requests:
            if request[0] in self._paid:
                others.append(request)
            else:
                new.append(request)
                self._paid.add(request[0])

        # Other texts may have been in one request with new ones.
        calls = usage.calls * len(others) // max(1, len(usage.requests))
        if new:
            yield _part(usage, new, usage.calls - calls, cached=False)
        if others:
            yield _part(usage, others, calls, cached=True)


def _part(usage: Usage, requests: Sequence[RequestTokens], calls: int, *, cached: bool) -> Usage:
    _, sent, received, from_cache = zip(*requests, strict=True)
    return replace(
        usage,
        prompt_tokens=sum(sent),
        completion_tokens=sum(received),
        cached_tokens=sum(from_cache),
        calls=calls,
        cached=cached,
        requests=UNSET,
    )


def is_final(row: AnswerRow | VerdictRow | None) -> bool:
    """Whether a stored row is final, so it is not redone."""
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
