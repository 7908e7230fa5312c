"""mem0's lenient judge."""

from __future__ import annotations

from memeval.judges.model import ModelJudge


# Lenient as published: a judge of this kind accepts 10.6 % of specific wrong answers, and 62.8 %
# of vague ones. So it is never the default.
class Mem0Judge(ModelJudge):
    """Right as long as the answer touches on the gold's topic: for comparison with figures that
    were made with such a judge. Source: Chhikara et al., 2025.
    """

    name = "mem0"
