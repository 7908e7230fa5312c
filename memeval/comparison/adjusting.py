"""Adjusts p over the differences of several metrics by Benjamini and Hochberg's rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memeval.comparison.records import BENJAMINI_HOCHBERG, Comparison
from memeval.statistics.multiple import benjamini_hochberg


def adjust_by_discovery(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with each adjusted p over all differences of all of them.

    Letters are left out: they rest on max-T over the pairs of one metric.
    """
    # The raw p: those of max-T are adjusted already.
    ps = [row.p for comparison in comparisons for row in comparison.differences]
    known = [p for p in ps if p is not None]
    adjusted = iter(benjamini_hochberg(known))

    made = []
    for comparison in comparisons:
        # One conversation gives no p, and none to adjust.
        differences = [
            row if row.p is None else replace(row, adjusted_p=next(adjusted), among=len(known))
            for row in comparison.differences
        ]
        made.append(
            replace(
                comparison,
                differences=tuple(differences),
                runs=tuple(replace(run, letters="") for run in comparison.runs),
                adjustment=BENJAMINI_HOCHBERG,
                tests=len(known),
            )
        )

    return made
