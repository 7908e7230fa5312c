"""The Python API: the command line as functions.

Overrides are those of the command line (`"system=bm25"`), or keyword arguments (`system="bm25"`,
`llm={"name": "openai", "model": "gpt-4o-mini"}`); a dotted name goes into a dictionary:
`**{"dataset.limit_cases": 1}`.
"""

from __future__ import annotations

from typing import Any

import memeval

__all__ = memeval.__all__


def __getattr__(name: str) -> Any:
    """A public name of memeval: `memeval.api.table` is `memeval.table`."""
    return getattr(memeval, name)


def __dir__() -> list[str]:
    return dir(memeval)
