"""docs/architecture.md: the walks through the code name functions that exist."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
HOPS = sorted(set(re.findall(r"`(memeval[\w.]*:[\w.]+)`", PAGE.read_text(encoding="utf-8"))))


def test_the_walks_have_hops() -> None:
    assert len(HOPS) > 40


@pytest.mark.parametrize("hop", HOPS)
def test_a_hop_exists(hop: str) -> None:
    module, _, path = hop.partition(":")
    *owners, name = path.split(".")
    owner = reduce(getattr, owners, importlib.import_module(module))
    fields = getattr(owner, "__dataclass_fields__", {})

    assert hasattr(owner, name) or name in fields
