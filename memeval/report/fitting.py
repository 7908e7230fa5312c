"""Selects the columns of a table that fit a width.

Nothing is cut silently: settings fold first, and then columns are dropped and named: those that are
equal in all rows, and after them the least needed first.
"""

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
    natural, least = _widths(header, rows, settings, fold)
    equal = _equal_columns(header, rows, settings)
    # The width that is left over; the last column has no gap after it.
    spare = width - sum(least) - GAP * (len(least) - 1)
    hidden = set()
    for column in dict.fromkeys([*equal, *_drop_order(header, settings)]):
        if spare >= 0:
            break

        hidden.add(column)
        spare += least[column] + GAP

    # It goes to the columns from left to right: names first.
    widths, dropped, constant = {}, [], {}
    for column, name in enumerate(header):
        if column not in hidden:
            more = min(natural[column] - least[column], max(spare, 0))
            widths[column] = least[column] + more
            spare -= more
        elif column in equal:
            constant[name] = rows[0][column]
        else:
            dropped.append(name)

    return Fitted(tuple(widths), tuple(widths.values()), tuple(dropped), constant)


def _widths(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    settings: int,
    fold: Callable[[str], str],
) -> tuple[list[int], list[int]]:
    """The width of each column on one line, and the least one: settings and flags may fold."""
    natural, least = [], []
    for column, name in enumerate(header):
        lines = fold(name).split("\n")
        size = max(map(len, [*lines, *(row[column] for row in rows)]))
        natural.append(size)
        if column < settings or name == "flags":
            is_first = column < settings and (column == 0 or name in KEPT)
            narrowest = NARROWEST_FIRST if is_first else NARROWEST
            size = min(size, max(*map(len, lines), narrowest))

        least.append(size)

    return natural, least


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
    first = [header.index(name) for name in DROPPED_FIRST if name in header[settings:]]
    last = [header.index(name) for name in DROPPED_LAST if name in header[settings:]]
    varied, categories = [], []
    for column, name in enumerate(header):
        if name in KEPT:
            continue
        if column < settings:
            varied.append(column)
        elif column not in {*first, *last}:
            categories.append(column)

    # The settings that a sweep varies distinguish its cells: they are dropped last.
    return [*first, *reversed(categories), *last, *reversed(varied[1:]), *varied[:1]]
