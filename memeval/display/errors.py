"""How a user's mistake is reported."""

from __future__ import annotations

import sys

from memeval.errors import UserError


def report_error(error: UserError) -> None:
    """One clear line, and below it the ways out."""
    print(f"memeval: {error.message}", file=sys.stderr)
    for hint in error.hints:
        print(f"  {hint}", file=sys.stderr)


def report_damage(message: str) -> None:
    """Something that can't be read, and that the command goes on without."""
    print(f"memeval: {message}", file=sys.stderr)
