"""docs/troubleshooting.md quotes messages exactly as in the code."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^#### `(.+)`$", PAGE, re.MULTILINE)


@cache
def texts() -> tuple[str, ...]:
    """Every string in the code, with `…` for interpolated values."""
    found = []
    for path in sorted((ROOT / "memeval").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [
                    part.value if isinstance(part, ast.Constant) else "…" for part in node.values
                ]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)

    return tuple(found)


def test_at_least_thirty_distinct_messages_are_quoted() -> None:
    assert len(MESSAGES) >= 30
    assert len(set(MESSAGES)) == len(MESSAGES)


@pytest.mark.slow
@pytest.mark.parametrize("message", MESSAGES)
def test_quoted_message_is_in_the_code(message: str) -> None:
    assert any(message in text for text in texts()), "changed? mend docs/troubleshooting.md"
