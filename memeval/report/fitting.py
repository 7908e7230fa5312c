"""Which columns of a table of cells fit a width.

Nothing is cut silently: settings fold first, and then columns are dropped and named: those that are
equal in all rows, and after them the least needed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

GAP = 1
"""Spaces between two columns."""
NARROWEST, NARROWEST_FIRST = 8, 14
"""The narrowest widths to which a setting, and the first of them, may fold."""
QUESTIONS, ACCURACY, CORRECTED = "questions", "accuracy [95%]", "accuracy corrected"
RERUN_STD, COVERAGE = "re-run std", "coverage"
"""Columns that every table has; those of metrics have the metrics' own headings."""
KEPT = ("system", "run", QUESTIONS, ACCURACY, "flags")
"""Columns that are dropped only if they are equal in all rows; accuracy and flags never are."""
DROPPED_FIRST = ("retrieval ms", "context", "tokens", "turn R@5", "billed $", "F1")
DROPPED_LAST = ("turn R@10", RERUN_STD, CORRECTED, COVERAGE, "cost $")
"""Figures, in the order in which they are dropped; categories go between the two."""


class Fitted(Struct, frozen=True):
    """The columns that are shown, by position, and their widths."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    dropped: tuple[str, ...]
    """Headers of the hidden columns whose rows differ, in the table's order."""
    equal: Mapping[str, str]
    """Headers of the hidden columns that are equal in all rows, with their value."""


def fit(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    settings: int,
    width: int,
    fold: Callable[[str], str],
) -> Fitted:
    """Chooses columns for a width; the first `settings` columns contain settings, which may fold.

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
    equal = _equal_columns(header, rows, settings)
    others = [column for column in _drop_order(header, settings) if column not in equal]
    for column in [*equal, *others]:
        if sum(least[kept] + GAP for kept in shown) - GAP <= width:
            break

        shown.remove(column)

    widths = {column: least[column] for column in shown}
    # The remaining width goes to the columns from left to right: names first.
    spare = width - sum(size + GAP for size in widths.values()) + GAP
    for column in shown:
        more = min(natural[column] - widths[column], max(spare, 0))
        widths[column] += more
        spare -= more

    hidden = [column for column in range(len(header)) if column not in widths]
    return Fitted(
        columns=tuple(shown),
        widths=tuple(widths[column] for column in shown),
        dropped=tuple(header[column] for column in hidden if column not in equal),
        equal={header[column]: rows[0][column] for column in hidden if column in equal},
    )


def _equal_columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], settings: int
) -> list[int]:
    """The columns of figures with the same value in all rows, so that one line can state them."""
    equal = []
    for column, values in enumerate(zip(*rows, strict=True)):
        is_figure = column >= settings and header[column] not in (ACCURACY, "flags")
        if is_figure and len(rows) > 1 and len(set(values)) == 1:
            equal.append(column)

    return equal


def _drop_order(header: Sequence[str], settings: int) -> list[int]:
    """The columns that may be dropped, the least needed first."""
    figures = range(settings, len(header))
    first = [header.index(name) for name in DROPPED_FIRST if name in header[settings:]]
    last = [header.index(name) for name in DROPPED_LAST if name in header[settings:]]
    categories = [
        column for column in figures if column not in {*first, *last} and header[column] not in KEPT
    ]
    # The settings that a sweep varies distinguish its cells: they are dropped last.
    varied = [column for column in range(settings) if header[column] not in KEPT]
    return [*first, *reversed(categories), *last, *reversed(varied[1:]), *varied[:1]]
