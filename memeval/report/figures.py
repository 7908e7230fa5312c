"""How figures are written in reports and tables.

What was not measured is a dash or a word, never a zero.
"""

from __future__ import annotations

from memeval.results import RunSummary

NONE = "–"
STAGES = ("ingest", "answer", "judge", "embed")


def percent(value: float | None, digits: int = 1) -> str:
    """A share in [0, 1] as a number of per cent, without the sign: `54.0`."""
    return NONE if value is None else f"{100 * value:.{digits}f}"


def interval(low: float | None, high: float | None) -> str:
    """An interval of shares: `51.2 to 56.8`."""
    return NONE if low is None or high is None else f"{percent(low)} to {percent(high)}"


def half_width(low: float | None, high: float | None) -> float | None:
    """Half the width of an interval: the figure after the ±."""
    return None if low is None or high is None else (high - low) / 2


def with_half_width(value: float | None, low: float | None, high: float | None) -> str:
    """`54.0 ±2.8`, or the value alone where there is no interval."""
    half = half_width(low, high)
    return percent(value) if value is None or half is None else f"{percent(value)} ±{percent(half)}"


def count(value: float | None) -> str:
    """A whole number with thousands marked: `1,540`."""
    return NONE if value is None else f"{round(value):,}"


def short_count(value: float | None) -> str:
    """A number in at most five characters: `812`, `14.2k`, `3.1M`."""
    if value is None:
        return NONE

    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            scaled = value / size
            # Three digits leave no room for a decimal.
            return f"{scaled:.1f}{letter}" if scaled < 99.95 else f"{scaled:.0f}{letter}"

    return f"{value:.0f}"


def dollars(value: float | None) -> str:
    """A cost in US dollars: three significant digits, or cents from one dollar on.

    A cost that is not known is `unknown`.
    """
    if value is None:
        return "unknown"
    if value == 0:
        return "0"

    return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"


def milliseconds(value: float | None) -> str:
    """A duration, in the unit that suits its size: `0.4 ms`, `812 ms`, `3.2 s`."""
    if value is None:
        return NONE
    if value < 10:
        return f"{value:.1f} ms"

    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s"


def deviation(summary: RunSummary, value: float | None) -> str:
    """A standard deviation over repeats.

    The zero of a deterministic reader is named as such: it says nothing about stability.
    """
    if value == 0 and summary.tags.get("deterministic") == "true":
        return "0 (deterministic reader)"

    return percent(value)


def flags(summary: RunSummary) -> list[str]:
    """What a reader must know before comparing the cell with others."""
    marks = {
        "imported": ("true", "imported"),
        "own_prompt": ("true", "own prompt"),
        "data_pinned": ("false", "unpinned"),
        "data_derived": ("true", "derived data"),
        "data_excerpt": ("true", "excerpt"),
        "partial": ("true", "partial"),
        "ranks_part": ("true", "ranks part"),
        "mock": ("true", "mock"),
        "cut_at_ingest": ("true", "cut at ingest"),
    }
    flagged = [word for tag, (value, word) in marks.items() if summary.tags.get(tag) == value]
    flagged += filter(None, [summary.tags.get("system_flags")])

    return flagged if summary.valid else ["INVALID", *flagged]
