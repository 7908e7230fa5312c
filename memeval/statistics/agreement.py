"""How far several judges agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence


def krippendorff_alpha(units: Sequence[Sequence[Hashable | None]]) -> float | None:
    """Krippendorff's α for nominal labels: 1 is agreement, 0 what chance gives, below 0 worse.

    `units` holds the labels of each unit, one per judge; None where a judge gave none. α = 1 -
    D_o/D_e: the disagreement of pairs of labels within units, over that of pairs of all labels.
    Units with fewer than two labels say nothing. None where no unit has two, or where all labels
    are the same.

    Source: Krippendorff, Content Analysis (2004), section 11.3; Hayes & Krippendorff,
    Communication Methods and Measures 1 (2007).
    """
    observed, totals = 0.0, Counter[Hashable]()
    for unit in units:
        labels = Counter(label for label in unit if label is not None)
        count = labels.total()
        if count < 2:
            continue

        agreeing = sum(number * (number - 1) for number in labels.values())
        observed += (count * (count - 1) - agreeing) / (count - 1)
        totals += labels

    pairable = totals.total()
    alike = sum(number * (number - 1) for number in totals.values())
    expected = pairable * (pairable - 1) - alike
    if expected == 0:
        return None

    return 1 - observed * (pairable - 1) / expected
