"""Runbooks that change over time, and the handling of incidents by them. The tables don't describe
the handling: steps are drawn from a list by seed, and the table determines when a runbook is
revised.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from memeval.datasets.chance import draw, seeded_random
from memeval.datasets.incidents.table import Incident
from memeval.text.yaml_files import load_sibling

STEPS = load_sibling(__file__, "steps.yaml", tuple[str, ...])
"""Steps with no word in common, so that no judge mistakes one procedure for another."""

STEPS_EACH = 2
# 12 revisions: after that, a step would be used again.
MAX_REVISIONS = len(STEPS) // STEPS_EACH


class Handling(Struct, frozen=True):
    """The handling of one incident, and the revision of its fault's runbook."""

    steps: str
    """Steps of the runbook in force; for a fault's first incident, those of the first revision."""
    revision: int | None
    """Number of the revision written after the incident; None if the runbook was not revised."""
    revised: str
    """The steps of that revision, if it exists."""


def handle(seed: int, system: str, incidents: Sequence[Incident]) -> list[Handling | None]:
    """The handling of each incident, in order of time; None for those without a fault.

    A runbook is written after a fault's first incident, and revised after the second, fourth,
    eighth and so on. No revision has a step of an earlier one.
    """
    seen: Counter[str] = Counter()
    handlings: list[Handling | None] = []
    for incident in incidents:
        if not incident.fault:
            handlings.append(None)
            continue

        seen[incident.fault] += 1
        handlings.append(_handling(seed, system, incident.fault, seen[incident.fault]))

    return handlings


def _handling(seed: int, system: str, fault: str, count: int) -> Handling:
    """The handling of a fault's `count`-th incident."""
    steps = draw(seeded_random("incidents runbooks", seed, system, fault), STEPS)
    # The runbook is revised after incidents whose number is a power of two.
    in_force = max(1, (count - 1).bit_length())
    followed = _procedure(steps, min(in_force, MAX_REVISIONS))
    revision = count.bit_length()
    is_power_of_two = count & (count - 1) == 0
    if not is_power_of_two or revision > MAX_REVISIONS:
        return Handling(steps=followed, revision=None, revised="")

    return Handling(steps=followed, revision=revision, revised=_procedure(steps, revision))


def _procedure(steps: Sequence[str], revision: int) -> str:
    first = STEPS_EACH * (revision - 1)
    return " and ".join(steps[first : first + STEPS_EACH])
