"""PersonaMem's own figure, beside those of choosing."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.datasets.locomo_mc10.metrics import READ, UNREAD
from memeval.results import Record
from memeval.statistics.means import mean


def official_accuracy(records: Sequence[Record]) -> float | None:
    """Share of the replies that choose the right option; a reply without a readable choice counts
    as wrong. None without a reply.

    Source: Jiang et al., COLM 2025, inference_standalone_openai.py.
    """
    replied = [record for record in records if record.status in (READ, UNREAD)]
    return mean(record.score or 0.0 for record in replied)
