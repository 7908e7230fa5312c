"""Which answers of a run are to be labelled: a random sample, stratified, the same for one seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from memeval.calibration.scored import JudgedAnswer

STRATA: Mapping[str, Callable[[JudgedAnswer], str]] = {
    "category": lambda answer: answer.category,
    "case": lambda answer: answer.case_id,
    "none": lambda _: "",
}
"""Properties by which a sample can be stratified."""


def draw_sample(
    answers: Sequence[JudgedAnswer], count: int, *, by: str, seed: int, run_key: str
) -> list[JudgedAnswer]:
    """`count` answers, each stratum in proportion to its size, in random order.

    The first answers alone are still a random sample. A smaller sample is part of a larger one
    under the same seed, but for rounding.
    """
    # The run is part of the seed: two runs of one data set have different questions labelled.
    draw = random.Random(f"{run_key}/{seed}")
    strata: dict[str, list[JudgedAnswer]] = {}
    for answer in answers:
        strata.setdefault(STRATA[by](answer), []).append(answer)

    for stratum in strata.values():
        draw.shuffle(stratum)

    sizes = {name: len(stratum) for name, stratum in strata.items()}
    sample = []
    for name, quota in allocate(sizes, min(count, len(answers))).items():
        sample += strata[name][:quota]

    # Else a person who stops half way has labelled the first strata only.
    draw.shuffle(sample)
    return sample


def allocate(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """How many of `count` each stratum gets: its share, rounded by the largest remainders."""
    total = sum(sizes.values())
    quotas = {name: count * size // total for name, size in sizes.items()}
    # Rounding each share separately would draw more or fewer than `count`.
    remainders = sorted(sizes, key=lambda name: -(count * sizes[name] % total))
    for name in remainders[: count - sum(quotas.values())]:
        quotas[name] += 1

    return quotas
