"""Prices of the user's own models."""

from __future__ import annotations

from pathlib import Path

import pytest

from memeval.errors import UserError
from memeval.records import Role, Usage
from memeval.results.own_prices import VARIABLE, name_prices, own_prices
from memeval.results.prices import cost_usd

SOUND = """
date: 2026-01-31
models:
  mine: {input: 0.4, output: 1.6, cached: 0.1}
  whole: {input: 1, output: 2}
  llama3.1: 0
"""


@pytest.fixture(autouse=True)
def _no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    # Set before it is deleted, so that monkeypatch undoes whatever a test sets.
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)


def usage(model: str, prompt: int = 1_000_000, cached: int = 0) -> Usage:
    return Usage(Role.ANSWER, model, "unknown", prompt, 500_000, cached_tokens=cached)


def test_models_in_the_price_file_have_its_prices(tmp_path: Path) -> None:
    assert cost_usd(usage("mine")) is None
    path = tmp_path / "prices.yaml"
    path.write_text(SOUND, encoding="utf-8")
    name_prices(None, path)
    assert cost_usd(usage("mine")) == pytest.approx(0.4 + 0.8)
    assert cost_usd(usage("mine", cached=500_000)) == pytest.approx(0.2 + 0.05 + 0.8)
    assert cost_usd(usage("whole", cached=500_000)) == pytest.approx(1 + 1)
    assert cost_usd(usage("llama3.1")) == 0.0
    assert cost_usd(usage("another")) is None
    own = own_prices()
    assert own is not None and own.date == "2026-01-31"


def test_price_file_of_the_setting_overrides_the_one_in_the_home(tmp_path: Path) -> None:
    home, named = tmp_path / "prices.yaml", tmp_path / "named.yaml"
    home.write_text(SOUND, encoding="utf-8")
    named.write_text(SOUND.replace("mine", "other"), encoding="utf-8")
    name_prices(str(named), home)
    assert cost_usd(usage("other")) is not None and cost_usd(usage("mine")) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "is not YAML"),
        ("models: {a: 0}", "must contain `date` and `models`"),
        ("{date: soon, models: {a: 0}}", "`date` must be a date"),
        ("{date: 2026-01-31, models: {}}", "must name a model"),
        (
            "date: 2026-01-31\nmodels:\n  b: 0\n  a: {input: 1, output: 2}\n  'a': 0",
            "prices.yaml: a occurs twice, in line 4, column 3 and in line 5, column 3",
        ),
        ("{date: 2026-01-31, models: {a: 0, 1: 0, '1': 0}}", "1 occurs twice, in line 1"),
        ("{models: {a: 0}, date: 2026-01-31, models: {b: 0}}", "models occurs twice"),
        (
            "{date: 2026-01-31, models: {a: {input: 1, output: 2, input: 3}}}",
            "input occurs twice",
        ),
        ("&a {date: 2026-01-31, models: *a}", "date must be 0"),
        ("{date: 2026-01-31, models: {a: 1}}", "a must be 0, or have input, output"),
        ("{date: 2026-01-31, models: {a: {input: 1}}}", "a must be 0, or have input, output"),
        ("{date: 2026-01-31, models: {a: {input: -1, output: 1}}}", "a.input must be a number"),
        ("{date: 2026-01-31, models: {a: {input: 1, output: .nan}}}", "a.output must be a number"),
    ],
)
def test_invalid_price_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        name_prices(str(path), path)


def test_missing_price_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read"):
        name_prices(str(tmp_path / "none.yaml"), tmp_path / "prices.yaml")
