"""docs/troubleshooting.md quotes messages exactly as in the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^#### `(.+)`$", PAGE, re.MULTILINE)


def texts() -> list[str]:
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

    return found


def test_at_least_thirty_distinct_messages_are_quoted() -> None:
    assert len(MESSAGES) >= 30
    assert len(set(MESSAGES)) == len(MESSAGES)


def test_quoted_messages_are_in_the_code() -> None:
    code = "\0".join(texts())
    changed = [message for message in MESSAGES if message not in code]
    assert changed == [], "mend docs/troubleshooting.md"
