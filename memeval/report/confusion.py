"""Which numbered choice was chosen where which one was right, as a table and as a plot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.datasets.locomo_mc10.metrics import READ, UNREAD, position_bias
from memeval.metrics.formats import count, percent
from memeval.records import ChoiceLabels
from memeval.report.canvas import BLUE, GREY, INK, canvas, save, wrap_title
from memeval.results import Record, read_records

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNPARSED = "unparsed"
SHARE_OF_ALL = "of all, %"
"""Header of the column with the share of all replies that a row holds; it is not an accuracy."""


@dataclass(frozen=True)
class Confusion:
    """Replies by the position of the right choice and of the chosen one, over all repeats."""

    positions: int
    """How many choices there are, at most."""
    chosen: Mapping[tuple[int, int], int]
    """Replies that could be read, by (right, chosen)."""
    unparsed: Mapping[int, int]
    """Replies that could not be read, by right."""

    def row(self, right: int) -> list[int]:
        """Replies to the questions whose right choice is at a position.

        By chosen position, then those that could not be read.
        """
        return [
            *(self.chosen.get((right, chosen), 0) for chosen in range(self.positions)),
            self.unparsed.get(right, 0),
        ]

    def rows(self) -> list[list[int]]:
        """The whole matrix, one row per right position.

        The last column counts the replies that could not be read.
        """
        return [self.row(right) for right in range(self.positions)]

    @property
    def bias(self) -> float | None:
        """`position_bias` over all replies that could be read."""
        pairs: list[tuple[int, int]] = []
        for pair, number in self.chosen.items():
            pairs += [pair] * number

        return position_bias(pairs)


def read_confusion(path: Path) -> Confusion | None:
    """The matrix of a file of records.

    None where no question has numbered choices of which exactly one is right.
    """
    chosen: Counter[tuple[int, int]] = Counter()
    unparsed: Counter[int] = Counter()
    positions = 0

    for record in _numbered(path):
        right = record.right_choices[0]
        positions = max(positions, len(record.choices))
        if record.status is UNREAD:
            unparsed[right] += 1
        elif record.status is READ and record.chosen:
            chosen[right, record.chosen[0]] += 1

    if not positions:
        return None

    return Confusion(positions=positions, chosen=chosen, unparsed=unparsed)


def _numbered(path: Path) -> Iterator[Record]:
    """Records of questions with numbered choices of which exactly one is right."""
    if not path.exists():
        return

    for record in read_records(path):
        numbered = record.choices and record.choice_labels is ChoiceLabels.DIGITS
        if numbered and len(record.right_choices) == 1:
            yield record


def confusion_section(matrix: Confusion) -> list[str]:
    """The matrix in Markdown: right positions down, chosen ones across.

    Each position's share of the right choices is beside it, that of the chosen ones below it.
    """
    rows = matrix.rows()
    header = ["right ↓ chosen →", *map(str, range(matrix.positions)), UNPARSED, SHARE_OF_ALL]
    total = sum(map(sum, rows))
    lines = [f"| {' | '.join(header)} |", f"| --- |{' ---: |' * (len(header) - 1)}"]

    for right, row in enumerate(rows):
        cells = list(map(str, row))
        cells[right] = f"**{cells[right]}**"
        lines.append(f"| {right} | {' | '.join([*cells, share(sum(row), total)])} |")

    columns = [share(sum(column), total) for column in zip(*rows, strict=True)]
    lines.append(f"| chosen, % | {' | '.join([*columns, ''])} |")
    explanation = (
        f"{count(total)} replies, over all repeats; right ones in bold. `{SHARE_OF_ALL}` is the "
        "share of the replies whose right choice is at that position, `chosen, %` the share of "
        "those that chose it; neither is an accuracy. Position bias "
        f"{percent(matrix.bias)} %: the total variation distance between the shares of chosen and "
        "of right positions, 0 where each position is chosen as often as it is right."
    )

    return ["## Positions", "", *lines, "", explanation]


def share(number: int, total: int) -> str:
    """A part in per cent; a dash where the total is 0."""
    return percent(number / total if total else None)


def confusion_plot(matrix: Confusion, name: str, path: Path) -> Path:
    """Draws the matrix: each row's shares as shades, with counts in the cells.

    Replies that could not be read are apart, in grey.
    """
    size = matrix.positions
    figure, axes = canvas(width=1.9 + 0.52 * (size + 2), height=1.7 + 0.46 * size)
    rows = matrix.rows()

    for right, row in enumerate(rows):
        for column, number in enumerate(row):
            is_unparsed = column == size
            draw_cell(
                axes,
                (column + 0.35 if is_unparsed else column, right),
                number=number,
                part=number / sum(row) if number else 0.0,
                colour=GREY if is_unparsed else BLUE,
            )

        axes.add_patch(outline(right))

    axes.set_xlim(-0.55, size + 0.9)
    axes.set_ylim(size - 0.45, -0.55)  # downwards, as a table is read

    total = sum(map(sum, rows))
    shares = [share(sum(column), total) for column in zip(*rows, strict=True)]
    headers = zip([*range(size), UNPARSED], shares, strict=True)
    axes.set_xticks(
        [*range(size), size + 0.35], [f"{header}\n{part} %" for header, part in headers]
    )
    axes.set_yticks(
        range(size), [f"{right}   n = {count(sum(row))}" for right, row in enumerate(rows)]
    )
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)

    axes.set_xlabel("position chosen")
    axes.set_ylabel("position of the right choice")
    axes.set_title(wrap_title(name, width=int(11 * figure.get_figwidth())), loc="left", fontsize=10)

    return save(figure, path)


def draw_cell(
    axes: Axes, at: tuple[float, float], *, number: int, part: float, colour: str
) -> None:
    """Draws one cell: as dark as its share of the row, with its count; a dot where that is 0."""
    from matplotlib.patches import Rectangle

    x, y = at
    axes.add_patch(
        # Below the shade: a cell without replies is a cell all the same.
        Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, facecolor="#F4F4F4", linewidth=0, zorder=1)
    )
    axes.add_patch(
        Rectangle(
            (x - 0.48, y - 0.48),
            0.96,
            0.96,
            facecolor=colour,
            alpha=part**0.7,
            linewidth=0,
            zorder=2,
        )
    )

    ink = INK if number else "#BBBBBB"
    # On a dark shade dark figures can't be read.
    if part > 0.4:
        ink = "white"

    axes.text(
        x,
        y,
        count(number) if number else "·",
        ha="center",
        va="center",
        fontsize=8,
        color=ink,
        zorder=3,
    )


def outline(position: int) -> Any:
    """The frame of a cell whose chosen position is the right one."""
    from matplotlib.patches import Rectangle

    return Rectangle(
        (position - 0.48, position - 0.48),
        0.96,
        0.96,
        fill=False,
        edgecolor=INK,
        linewidth=1.0,
        zorder=4,
    )
