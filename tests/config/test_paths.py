"""The folders that the environment names."""

from __future__ import annotations

from pathlib import Path

import pytest

from memeval.config.paths import data_dir, outputs_dir
from memeval.results.own_prices import prices_file


def test_folders_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell does not expand `~` in quotes, and container files don't expand it at all."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMEVAL_HOME", "~/home")
    monkeypatch.setenv("MEMEVAL_DATA_DIR", "~/data")
    prices = tmp_path / "home" / "prices.yaml"
    prices.parent.mkdir()
    prices.touch()

    assert outputs_dir() == tmp_path / "home" / "outputs"
    assert data_dir() == tmp_path / "data"
    assert prices_file() == str(prices)
