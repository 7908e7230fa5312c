"""Long tables of cases, of which `make test` runs a part."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest


def sampled(values: Collection[Any], kept: int) -> list[Any]:
    """The values as parameters: `kept` of them, spread over the table, run with `make test`, all of
    them with `make test-all`.
    """
    step = max(1, len(values) // kept)
    chosen = set(range(0, step * kept, step))
    return [value if index in chosen else _slow(value) for index, value in enumerate(values)]


def _slow(value: Any) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.slow)
