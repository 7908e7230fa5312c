"""Where a value is on an axis, as a percentage of the plot's width or height.

The plots are SVG without a fixed size, so that words and lines keep theirs on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

EDGE = 4.0
"""Per cent that are left free at either end of an axis."""
LOG_FROM = 20.0
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""


@dataclass(frozen=True)
class Tick:
    """A mark of an axis."""

    at: float
    text: str


class Axis:
    """Maps values to per cent of a width."""

    def __init__(self, low: float, high: float, *, logarithmic: bool = False) -> None:
        self.logarithmic = logarithmic
        # A single value would make an axis of no length, and a division by it.
        self.low, self.high = low, high if high > low else low + 1.0

    def at(self, value: float) -> float:
        """Where a value is. On a logarithmic axis 0 is at its beginning."""
        low, high, here = self.low, self.high, value
        if self.logarithmic:
            here = max(here, low)
            low, high, here = math.log(low), math.log(high), math.log(here)

        share = (here - low) / (high - low)
        return round(EDGE + (100 - 2 * EDGE) * share, 2)

    def ticks(self) -> list[float]:
        """Round values to mark."""
        if self.logarithmic:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            powers = [10.0**power for power in range(first, last + 1)]
            inside = self._inside(powers)
            # Within two powers of ten, two marks would say too little.
            return inside if len(inside) > 2 else self._inside(_with_thirds(powers))

        step = _round_step((self.high - self.low) / 5)
        # Rounding must not cost the first mark, or the last.
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _inside(self, values: Sequence[float]) -> list[float]:
        return [value for value in values if self.low <= value <= self.high * (1 + 1e-9)]


def _with_thirds(powers: Sequence[float]) -> list[float]:
    """1, 3, 10, 30, 100 …"""
    return [power * digit for power in powers for digit in (1, 3)]


def _round_step(about: float) -> float:
    """The next of 1, 2, 5, 10, 20 … that is not smaller."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= about * 0.999)
