"""Confusion matrix of numbered choices: counts by right and chosen position, and a table."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from memeval.metrics.formats import count, percent
from memeval.metrics.positions import READ, UNREAD, position_bias
from memeval.records import ChoiceLabels
from memeval.report.tables import table
from memeval.results import Record, read_records
from memeval.statistics.means import mean

UNPARSED = "unparsed"
SHARE_OF_ALL = "of all, %"
"""Header of the column with each row's share of all replies; it is not an accuracy."""


class Confusion(Struct, frozen=True):
    """Replies by the position of the right choice and of the chosen one, over all repeats."""

    positions: int
    """The largest number of choices."""
    chosen: Mapping[tuple[int, int], int]
    """Replies that could be read, by (right, chosen)."""
    unparsed: Mapping[int, int]
    """Replies that could not be read, by the right position."""
    bias: float | None
    """Mean of `position_bias` over the repeats, as in the run's figures."""

    def rows(self) -> list[list[int]]:
        """Replies by right position, and in each row by chosen position.

        The last column counts the replies that could not be read.
        """
        rows = []
        for right in range(self.positions):
            read = [self.chosen.get((right, chosen), 0) for chosen in range(self.positions)]
            rows.append([*read, self.unparsed.get(right, 0)])

        return rows


def read_confusion(path: Path) -> Confusion | None:
    """The matrix of a file of records.

    None if no question has numbered choices of which exactly one is right.
    """
    chosen: Counter[tuple[int, int]] = Counter()
    unparsed: Counter[int] = Counter()
    by_repeat: dict[int, list[tuple[int, int]]] = {}
    positions = 0

    for record in _numbered_records(path):
        right = record.right_choices[0]
        positions = max(positions, len(record.choices))
        if record.status is UNREAD:
            unparsed[right] += 1
        elif record.status is READ and record.chosen:
            chosen[right, record.chosen[0]] += 1
            by_repeat.setdefault(record.repeat, []).append((right, record.chosen[0]))

    if not positions:
        return None

    bias = mean(map(position_bias, by_repeat.values()))
    return Confusion(positions=positions, chosen=chosen, unparsed=unparsed, bias=bias)


def _numbered_records(path: Path) -> Iterator[Record]:
    """Records of questions with numbered choices of which exactly one is right."""
    if not path.exists():
        return

    for record in read_records(path):
        numbered = record.choices and record.choice_labels is ChoiceLabels.DIGITS
        if numbered and len(record.right_choices) == 1:
            yield record


def confusion_section(matrix: Confusion) -> list[str]:
    """The matrix in Markdown: right positions down, chosen ones across.

    The last column has each position's share of the right choices, the last row of the chosen ones.
    """
    rows = matrix.rows()
    header = ["right ↓ chosen →", *map(str, range(matrix.positions)), UNPARSED, SHARE_OF_ALL]
    total = sum(map(sum, rows))
    lines = []
    for right, row in enumerate(rows):
        cells = list(map(str, row))
        cells[right] = f"**{cells[right]}**"
        lines.append([str(right), *cells, share(sum(row), total)])

    columns = [share(sum(column), total) for column in zip(*rows, strict=True)]
    lines.append(["chosen, %", *columns, ""])
    explanation = (
        f"{count(total)} replies, over all repeats; right ones in bold. `{SHARE_OF_ALL}` is the "
        "share of the replies whose right choice is at that position, `chosen, %` the share of "
        "those that chose it; neither is an accuracy. Position bias "
        f"{percent(matrix.bias)} %: the total variation distance between the shares of chosen and "
        "of right positions, 0 if each position is chosen as often as it is right; of several "
        "repeats, the mean."
    )

    return ["## Positions", "", *table(header, lines), "", explanation]


def share(number: int, total: int) -> str:
    """A part in per cent; a dash if the total is 0."""
    return percent(number / total if total else None)
