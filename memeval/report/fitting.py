"""Which columns of a table of cells fit a width.

Nothing is cut silently: settings fold first, and then columns are dropped, the least needed first,
and named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

GAP = 1
"""Blanks between two columns."""
NARROWEST, NARROWEST_FIRST = 8, 14
"""How narrow a setting, and the first of them, may fold."""
KEPT = ("system", "run", "n", "acc [95%]", "flags")
"""Columns that are never dropped."""
DROPPED_FIRST = ("retr. ms", "ctx tok", "all tok", "R@5", "billed $", "F1")
DROPPED_LAST = ("R@10", "std", "acc corr.", "cov", "cost $")
"""Figures, in the order in which they are dropped; categories go between the two."""


@dataclass(frozen=True)
class Fitted:
    """The columns that are shown, by position, and their widths."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    dropped: tuple[str, ...]
    """Headers of the others, in the table's order."""


def fit(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    settings: int,
    width: int,
    fold: Callable[[str], str],
) -> Fitted:
    """Chooses columns for a width; the first `settings` columns hold settings, which may fold.

    `fold` puts a header on short lines.
    """
    natural, least = [], []
    for column, name in enumerate(header):
        lines = fold(name).split("\n")
        texts = [*lines, *[row[column] for row in rows]]
        size = max(map(len, texts))
        natural.append(size)
        folds = column < settings or name == "flags"
        is_first = column < settings and (column == 0 or name in KEPT)
        narrowest = max(*map(len, lines), NARROWEST_FIRST if is_first else NARROWEST)
        least.append(min(size, narrowest) if folds else size)

    shown = list(range(len(header)))
    for column in _by_need(header, settings):
        if sum(least[kept] + GAP for kept in shown) - GAP <= width:
            break

        shown.remove(column)

    widths = {column: least[column] for column in shown}
    # The room that is left goes to the columns from the left: names first.
    spare = width - sum(size + GAP for size in widths.values()) + GAP
    for column in shown:
        more = min(natural[column] - widths[column], max(spare, 0))
        widths[column] += more
        spare -= more

    return Fitted(
        columns=tuple(shown),
        widths=tuple(widths[column] for column in shown),
        dropped=tuple(name for column, name in enumerate(header) if column not in widths),
    )


def _by_need(header: Sequence[str], settings: int) -> list[int]:
    """The columns that may be dropped, the least needed first."""
    figures = range(settings, len(header))
    first = [header.index(name) for name in DROPPED_FIRST if name in header[settings:]]
    last = [header.index(name) for name in DROPPED_LAST if name in header[settings:]]
    categories = [
        column for column in figures if column not in {*first, *last} and header[column] not in KEPT
    ]
    # What a sweep varies distinguishes its cells: it goes after all figures but the accuracy.
    varied = [column for column in range(settings) if header[column] not in KEPT]
    return [*first, *reversed(categories), *last, *reversed(varied[1:]), *varied[:1]]
