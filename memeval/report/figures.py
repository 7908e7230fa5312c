"""How figures are written in reports and tables.

What was not measured is a dash or a word, never a zero.
"""

from __future__ import annotations

from memeval.results import RunSummary, fresh_cost_usd
from memeval.shown import one_line

NONE = "–"
STAGES = ("ingest", "answer", "judge", "embed")


def percent(value: float | None, digits: int = 1) -> str:
    """A share in [0, 1] as a number of per cent, without the sign: `54.0`."""
    return NONE if value is None else f"{100 * value:.{digits}f}"


def span(low: float | None, high: float | None) -> str:
    """A range of shares, such as that over kinds of wrong answer: `51.2 to 56.8`."""
    return NONE if low is None or high is None else f"{percent(low)} to {percent(high)}"


def interval(low: float | None, high: float | None) -> str:
    """A 95 % interval of shares: `[28.1, 48.2]`."""
    return NONE if low is None or high is None else f"[{percent(low)}, {percent(high)}]"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """`37.6 [28.1, 48.2]`, or only the value where there is no interval.

    Never half a width after a ±: the interval of a share is not symmetric.
    """
    ends = interval(low, high)
    return percent(value) if value is None or ends == NONE else f"{percent(value)} {ends}"


def corrected(summary: RunSummary) -> str:
    """The accuracy that allows for the judge's errors, by labels: `57.4 [31.8, 83.1]`.

    A range over kinds of wrong answer is not one number: `54.5 to 64.6`. Empty where no labels
    were given, see `memeval.results.calibration`.
    """
    get = summary.metrics.get
    name = "accuracy_corrected"
    value, low, high = get(name), get(f"{name}_low"), get(f"{name}_high")

    text = span(low, high) if value is None else with_interval(value, low, high)
    return "" if text == NONE else text


def fresh_cost(summary: RunSummary) -> float | None:
    """US dollars that the run would cost without memeval's own cache; None where unknown."""
    return fresh_cost_usd(summary.metrics)


def billed(summary: RunSummary) -> str:
    """What was billed, where that is less than a fresh run costs; else empty."""
    own = summary.metrics.get("cost_usd/total")
    return "" if own == fresh_cost(summary) else dollars(own)


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


def retrieval_times(summary: RunSummary) -> str:
    """Median and 95th percentile of one retrieval, in milliseconds: `0.04 / 0.11`."""
    median, slow = (summary.metrics.get(f"latency_ms/retrieval/p{p}") for p in (50, 95))
    if median is None or slow is None:
        return NONE

    return f"{short_ms(median)} / {short_ms(slow)}"


def short_ms(value: float) -> str:
    """Milliseconds with two digits, or whole ones from ten on."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def deviation(summary: RunSummary, value: float | None) -> str:
    """A standard deviation over repeats.

    The zero of a deterministic reader is named as such: it says nothing about stability.
    """
    if value == 0 and summary.tags.get("deterministic") == "true":
        return "0 (deterministic reader)"

    return percent(value)


def asked_flags(summary: RunSummary) -> list[str]:
    """How the questions were chosen, where not all were asked: `sample 200`, `biased cut: …`."""
    words = {
        "split": "split {}",
        "sample": "sample {}",
        "biased_cut": "biased cut: {}",
        "only": "no score: only {}",
        "named_questions": "{} named questions",
    }
    return [
        word.format(one_line(summary.tags[tag], 60))
        for tag, word in words.items()
        if tag in summary.tags
    ]


def flags(summary: RunSummary) -> list[str]:
    """What a reader must know before comparing the cell with others."""
    marks = {
        "imported": ("true", "imported"),
        "recorded": ("true", "recorded"),
        "own_prompt": ("true", "own prompt"),
        "data_pinned": ("false", "unpinned"),
        "data_derived": ("true", "derived data"),
        "data_excerpt": ("true", "excerpt"),
        "partial": ("true", "partial"),
        "ranks_part": ("true", "ranks part"),
        "mock": ("true", "mock"),
        "stages": ("retrieve", "retrieval only"),
        "cut_at_ingest": ("true", "cut at ingest"),
    }
    flagged = [word for tag, (value, word) in marks.items() if summary.tags.get(tag) == value]
    flagged += asked_flags(summary)
    flagged += filter(None, [summary.tags.get("system_flags")])

    return [*warning(summary), *flagged]


def warning(summary: RunSummary) -> list[str]:
    """The word above all flags of a run whose figures can't be trusted; none for another one."""
    if summary.is_stopped:
        return ["STOPPED"]

    return [] if summary.valid else ["INVALID"]
