"""Measures of numbered choices by position: does a system choose by content or by position?"""

from collections import Counter
from collections.abc import Iterable, Sequence

from memeval.records import Status
from memeval.results import Record
from memeval.statistics.means import mean

READ, UNREAD = Status.OK, Status.UNPARSED
"""Statuses of readable and of unreadable replies."""
POSITION_MEASURES = tuple(
    "accuracy_all_types unparsed_rate position_bias random_accuracy accuracy_at_position/".split()
)
"""Names of `position_measures`; the last is the prefix of one name per position."""


def position_measures(records: Sequence[Record]) -> dict[str, float | None]:
    """The metrics of the section on choosing in docs/metrics.md."""
    replied = [record for record in records if record.choices and record.status in (READ, UNREAD)]
    pairs = read_pairs(replied)
    read = [record for record in replied if record.status == READ]
    measures: dict[str, float | None] = {
        "accuracy_all_types": mean(record.score for record in read),
        "unparsed_rate": mean(float(record.status == UNREAD) for record in replied),
        "position_bias": position_bias(pairs),
        "random_accuracy": mean(1 / len(record.choices) for record in replied),
    }
    for position in sorted(dict(pairs)):
        scores = [record.score for record in read if record.right_choices == (position,)]
        measures[f"accuracy_at_position/{position}"] = mean(scores)

    return measures


def read_pairs(records: Iterable[Record]) -> list[tuple[int, int]]:
    """The positions of the right and of the chosen choice, for each question with one right choice
    whose reply could be read.
    """
    pairs = []
    for record in records:
        chosen = record.chosen or ()
        if record.status is READ and len(record.right_choices) == 1 and len(chosen) == 1:
            pairs.append((record.right_choices[0], chosen[0]))

    return pairs


def position_bias(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Total variation distance between how often each position is chosen and how often it is right,
    in [0, 1]; None without a reply.

    Half the sum over positions of |share chosen - share right|. 0: each position is chosen as often
    as it is right, which is also true if all answers are right. Always choosing one position gives
    about 0.9 among ten. Chance alone gives about 1.7 / sqrt(n) for n guesses among ten.
    """
    if not pairs:
        return None

    right, chosen = map(Counter, zip(*pairs, strict=True))
    distance = sum(abs(chosen[position] - right[position]) for position in right | chosen)
    return distance / (2 * len(pairs))
