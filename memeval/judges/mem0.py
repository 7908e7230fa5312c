"""mem0's lenient judge."""

from __future__ import annotations

from memeval.judges.model import ModelJudge


class Mem0Judge(ModelJudge):
    """Right as long as the answer touches on the gold's topic: for comparison with figures made
    that way. Source: Chhikara et al., 2025.
    """

    name = "mem0"
