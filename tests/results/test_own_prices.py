"""Prices of the user's own models."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections.abc import Iterator
from contextvars import Context
from functools import partial
from pathlib import Path

import pytest
from doubles.endpoint import ScriptedEndpoint

import memeval
from memeval.errors import UserError
from memeval.records import Role, Usage
from memeval.report.stamp import PAGE_FILE
from memeval.results.own_prices import (
    PRICES_FILE,
    VARIABLE,
    name_prices,
    own_prices,
    prices_from,
)
from memeval.results.prices import cost_usd

SOUND = """
date: 2026-01-31
models:
  mine: {input: 0.4, output: 1.6, cached: 0.1}
  whole: {input: 1, output: 2}
  llama3.1: 0
"""


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The project's root, in which no price file has been named yet."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    with prices_from(""):
        yield tmp_path


def usage(model: str, prompt: int = 1_000_000, cached: int = 0) -> Usage:
    return Usage(Role.ANSWER, model, "unknown", prompt, 500_000, cached_tokens=cached)


def test_models_in_the_price_file_have_its_prices(root: Path) -> None:
    assert cost_usd(usage("mine")) is None
    (root / PRICES_FILE).write_text(SOUND, encoding="utf-8")
    name_prices(None)
    assert cost_usd(usage("mine")) == pytest.approx(0.4 + 0.8)
    assert cost_usd(usage("mine", cached=500_000)) == pytest.approx(0.2 + 0.05 + 0.8)
    assert cost_usd(usage("whole", cached=500_000)) == pytest.approx(1 + 1)
    assert cost_usd(usage("llama3.1")) == 0.0
    assert cost_usd(usage("another")) is None
    own = own_prices()
    assert own is not None and own.date == "2026-01-31"


def test_price_file_of_the_setting_overrides_the_one_in_the_home(root: Path) -> None:
    named = root / "named.yaml"
    (root / PRICES_FILE).write_text(SOUND, encoding="utf-8")
    named.write_text(SOUND.replace("mine", "other"), encoding="utf-8")
    name_prices(str(named))
    assert cost_usd(usage("other")) is not None and cost_usd(usage("mine")) is None


def test_prices_of_the_home_hold_where_no_run_named_any(root: Path) -> None:
    """`compare` and `show` price finished runs as the run's own table did."""
    (root / PRICES_FILE).write_text(SOUND, encoding="utf-8")
    assert Context().run(cost_usd, usage("mine")) == pytest.approx(0.4 + 0.8)


def test_price_file_of_a_run_is_not_that_of_the_next(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two runs in one process names a file, and the second does not."""
    prices = root / "first.yaml"
    prices.write_text(SOUND.replace("mine", "gpt-4o-mini"), encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with ScriptedEndpoint() as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
        words = ("dataset=demo", "system=bm25", "llm=openai", "dataset.limit_cases=1")
        run = partial(memeval.run, *words, "judge=contains", "tracking=none", progress=False)
        # Both have the same folder: the second replaces the first.
        dear = costs(run(f"prices={prices}"))
        cheap = costs(run(fresh="answer"))

    assert all(high > 2 * low > 0 for high, low in zip(dear, cheap, strict=True))
    assert VARIABLE not in os.environ


def costs(run: memeval.FinishedRun) -> tuple[float, float]:
    """What the answers cost, according to the figures and to the page."""
    page = (run.folder / PAGE_FILE).read_text(encoding="utf-8")
    (block,) = re.findall(r'<script type="text/plain" class="block">(.*?)</script>', page)
    questions = json.loads(gzip.decompress(base64.b64decode(block)))["questions"].values()
    (answers,) = zip(*[question["answers"] for question in questions], strict=True)
    on_page = sum(answer["cost"] for (answer,) in answers)
    return run.metrics["cost_usd_uncached/total"] or 0.0, on_page


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "is not YAML"),
        ("models: {a: 0}", "must contain `date` and `models`"),
        ("{date: soon, models: {a: 0}}", "`date` must be a date"),
        ("{date: 2026-13-45, models: {a: 0}}", "is not YAML: month must be in 1..12"),
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
        (f"{{date: 2026-01-31, models: {{a: {{input: 1, output: {10**400}}}}}}}", "must be a"),
        ("{date: !!timestamp soon, models: {a: 0}}", "is not YAML"),
        ("{date: 2026-01-31, models: {a: !!map [1]}}", "is not YAML"),
    ],
)
def test_invalid_price_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        name_prices(str(path))


def test_missing_price_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read"):
        name_prices(str(tmp_path / "none.yaml"))
