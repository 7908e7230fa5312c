"""docs/architecture.md: all functions that its walkthroughs name exist."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
HOPS = sorted(set(re.findall(r"`(memeval[\w.]*:[\w.]+)`", PAGE.read_text(encoding="utf-8"))))


def test_walkthroughs_are_found() -> None:
    assert len(HOPS) > 40


@pytest.mark.parametrize("hop", HOPS)
def test_named_function_exists(hop: str) -> None:
    module, _, path = hop.partition(":")
    *owners, name = path.split(".")
    owner = reduce(getattr, owners, importlib.import_module(module))
    fields = getattr(owner, "__dataclass_fields__", {})

    assert hasattr(owner, name) or name in fields
