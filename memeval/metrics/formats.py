"""Format of figures.

A value that was not measured is a dash or a word, never a zero.
"""

from decimal import Decimal
from math import floor

NONE = "–"


def decimals(value: float | None, digits: int = 1, *, factor: float = 1.0) -> str:
    """A number with this many decimals, times `factor`: `2.5`."""
    if value is None:
        return NONE

    return f"{factor * value:.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share in [0, 1] in per cent, without the sign: `54.0`."""
    return decimals(value, digits, factor=100)


def coverage_percent(coverage: float | None, digits: int = 1) -> str:
    """A coverage in per cent, rounded down, so a value below a minimum never equals it."""
    if coverage is None:
        return NONE

    # The addition is for products and means that rounding left just below the exact value.
    return percent(floor(1000 * coverage + 1e-9) / 1000, digits)


def span(low: float | None, high: float | None) -> str:
    """A range of shares, such as that over kinds of wrong answer: `51.2 to 56.8`."""
    return NONE if low is None or high is None else f"{percent(low)} to {percent(high)}"


def interval(low: float | None, high: float | None) -> str:
    """A 95 % interval of shares: `[28.1, 48.2]`."""
    return NONE if low is None or high is None else f"[{percent(low)}, {percent(high)}]"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """`37.6 [28.1, 48.2]`, or only the value if there is no interval.

    Never written with ± and half its width: the interval of a share is not symmetric.
    """
    ends = interval(low, high)
    if value is None or ends == NONE:
        return percent(value)

    return f"{percent(value)} {ends}"


def count(value: float | None) -> str:
    """A whole number with thousands separators: `1,540`."""
    if value is None:
        return NONE

    return f"{round(value):,}"


def short_count(value: float | None) -> str:
    """A number of at most five characters: `812`, `14.2k`, `3.1M`."""
    if value is None:
        return NONE

    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            scaled = value / size
            if scaled < 99.95:
                return f"{scaled:.1f}{letter}"

            return f"{scaled:.0f}{letter}"  # three digits leave no room for a decimal

    return f"{value:.0f}"


def dollars(value: float | None) -> str:
    """A cost in US dollars: three significant digits below one dollar, else dollars and cents.

    An unknown cost is `unknown`.
    """
    if value is None:
        return "unknown"
    if value == 0:
        return "0"
    if value >= 1:
        return f"{value:,.2f}"

    return significant(value)


def paid_calls(calls: int, cached: int, cost_usd: float | None) -> str:
    """A line on model calls, `cached` of them from the cache, and their cost."""
    reused = f", {cached:,} of them from the cache" if cached else ""
    return f"model calls: {calls:,}{reused}; cost $ {dollars(cost_usd)}"


def significant(value: float, digits: int = 3) -> str:
    """A number with this many significant digits, without an exponent: `0.0000298`."""
    return f"{Decimal(f'{value:.{digits}g}'):f}"


def _tenths(value: float) -> str:
    """One decimal, or two digits if it would look like 0: `2.5`, `0.048`."""
    return significant(value, digits=2) if 0 < value < 0.095 else f"{value:.1f}"


def milliseconds(value: float | None) -> str:
    """A duration, in the unit that suits its size: `0.4 ms`, `812 ms`, `3.2 s`."""
    if value is None:
        return NONE
    if value < 10:
        return f"{_tenths(value)} ms"
    if value < 1000:
        return f"{value:.0f} ms"

    return f"{value / 1000:.1f} s"


def short_ms(value: float) -> str:
    """Milliseconds with two significant digits below ten, else whole ones."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def digits(value: float) -> str:
    """A cost with enough digits to distinguish small ones: `$0.0123`."""
    return f"${significant(value)}" if 0 < value < 0.1 else f"${value:,.2f}"


def duration(value: float) -> str:
    """A time in milliseconds, in the unit that suits it, with three digits: `2.5 s`."""
    return f"{value / 1000:.3g} s" if value >= 1000 else f"{value:.3g} ms"


def figure(value: float | None, unit: str, *, signed: bool = False) -> str:
    """A value or a difference, formatted by the name of its unit: points, which are shares, with
    one decimal, dollars with three significant digits. Points that would look like 0 have one
    significant digit, down to 0.001: an interval that begins there does not include 0.
    """
    if value is None:
        return NONE

    size = abs(value)
    if unit == "points":
        text = f"{100 * size:.1g}" if 1e-5 <= size < 5e-4 else percent(size)
    elif size >= 100:
        text = count(size)
    elif unit == "$":
        text = significant(size)
    elif unit == "ms":
        text = _tenths(size)
    else:
        text = f"{size:.3g}"

    if value < 0:
        return f"−{text}"
    if value > 0 and signed:
        return f"+{text}"

    return text  # keeps the sign of −0.0: an interval that begins there is not above 0


def probability(p: float | None) -> str:
    """A p as `.008`, `<.001` or `1`; `>.050` if it would look like the .05 that it exceeds."""
    if p is None:
        return NONE
    if p < 0.001:
        return "<.001"
    if p >= 0.9995:
        return "1"

    text = f"{p:.3f}".lstrip("0")
    return f">{text}" if p > 0.05 and text == ".050" else text
