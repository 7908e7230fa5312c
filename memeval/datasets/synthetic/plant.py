"""A planted question, and the statements that it rests on."""

from __future__ import annotations

from dataclasses import dataclass

IE, MR, TR, KU, CR, ABS = ABILITIES = ("IE", "MR", "TR", "KU", "CR", "ABS")

ANSWERED = ABILITIES[:5]

Key = tuple[str, str, str]
"""What a fact is about: its kind, the person, and what about that person."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One turn that states something."""

    depth: float
    """Where in the haystack it is due, as a share of the tokens, in [0, 1)."""
    speaker: int
    """0 or 1."""
    text: str
    days_ago: int = 0
    """How long before the session the thing happened."""


@dataclass(frozen=True, slots=True)
class Plant:
    """A question with the statements that it rests on, in the order in which they are made."""

    ability: str
    question: str
    gold: tuple[str, ...] = ()
    """Empty for a refusal, and where dates decide."""
    statements: tuple[Statement, ...] = ()
    evidence: tuple[int, ...] = ()
    """Which statements hold the answer."""
    rivals: tuple[tuple[str, ...], ...] = ()
    """The golds of both possible answers to the question which of two things happened first."""
    else_asked: str = ""
    """The question that is asked instead where both happened on one day: when the last one did."""
