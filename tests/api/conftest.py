"""A home shared by the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMEVAL_HOME", str(folder))
        patch.setenv("MEMEVAL_PLOTS", "false")
        patch.delenv("MEMEVAL_DATA_DIR", raising=False)
        yield folder
