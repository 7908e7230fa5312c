"""Rankings of root causes, read from answers, and their scores: A@k and MAR as DejaVu computes them
(Li et al., ESEC/FSE 2022).
"""

import re
from collections.abc import Collection, Sequence
from statistics import fmean

DEPTHS = (1, 3, 5)


def ranking(answer: str, candidates: Collection[str]) -> list[str]:
    """The candidates that an answer names, in the order of their first mention.

    Case does not count, and any characters may replace a name's `_`. If one name is a prefix of
    another, the longer one counts.
    """
    # No escaping is needed: names are shown as letters, digits and `_` (`one_word`).
    patterns = {
        re.sub("_+", r"[\\W_]+", name.lower()): name
        for name in sorted(candidates, key=len, reverse=True)
    }
    if not patterns:
        return []

    groups = "|".join(f"({pattern})" for pattern in patterns)
    names = list(patterns.values())
    # Like `\b`, but `_` separates words: names use it in place of a space.
    mentions = re.finditer(rf"(?<![^\W_])(?:{groups})(?![^\W_])", answer.lower())
    return list(dict.fromkeys(names[(match.lastindex or 1) - 1] for match in mentions))


def a_at_k(truths: Sequence[Collection[str]], rankings: Sequence[Sequence[str]], k: int) -> float:
    """Share of incidents all of whose root causes are among the first k named."""
    return fmean(
        float(set(truth) <= set(ranked[:k])) for truth, ranked in zip(truths, rankings, strict=True)
    )


def mar(
    truths: Sequence[Collection[str]], rankings: Sequence[Sequence[str]], candidates: Sequence[int]
) -> float:
    """Mean average rank: over incidents, the mean rank of their root causes; 1 is best.

    A root cause that is not named gets (candidates + named) / 2, about the middle of the remaining
    ranks, as in DejaVu's code. `candidates` counts those of each incident.
    """
    means = []
    for truth, ranked, count in zip(truths, rankings, candidates, strict=True):
        ranks = []
        for name in truth:
            rank = ranked.index(name) + 1 if name in ranked else (count + len(ranked)) / 2
            ranks.append(rank)

        means.append(fmean(ranks))

    return fmean(means)
