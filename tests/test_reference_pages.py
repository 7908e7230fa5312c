"""The pages of docs/ that are generated from the code are up to date."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("commands_reference", "metrics_reference", "settings_reference")


@pytest.mark.parametrize("page", PAGES)
def test_reference_page_is_up_to_date(page: str) -> None:
    made = runpy.run_path(str(DOCS / f"{page}.py"))["reference"]()
    assert (DOCS / f"{page}.md").read_text(encoding="utf-8") == made, (
        "run:  make reference (or python docs/PAGE.py for one page)"
    )
