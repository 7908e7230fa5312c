"""The made-up example of 5 conversations of 4 questions each, with its figures."""

from __future__ import annotations


def answers(text: str) -> list[float]:
    """Scores from digits such as `1110 1101`."""
    return [float(digit) for digit in text.replace(" ", "")]


A = answers("1110 1101 1011 1111 0110")
B = answers("1010 0101 1001 1101 0100")
C = answers("1110 0101 1010 1111 1110")
CLUSTERS = [index // 4 for index in range(20)]


def minus(first: list[float], second: list[float]) -> list[float]:
    """Differences per question."""
    return [one - other for one, other in zip(first, second, strict=True)]
