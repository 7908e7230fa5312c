"""The order of a sweep's runs changes no figure that runs are compared by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import Command
from doubles.endpoint import ScriptedEndpoint

pytestmark = pytest.mark.slow

LATENCY_S = 0.03
CALLS_OF_AN_ANSWER = {"rag": 2, "bm25": 1}
"""Number of requests for an answer: a vector of the question (rag only), and the answer itself."""
MEASURED = ("latency_ms/", "duration_s", "ingest_ready_s", "retry_wait_s")
BILLED = "cost_usd/"


def figures_of_cells(home: Path) -> dict[tuple[str, str], Mapping[str, Any]]:
    """The metrics of each run, by system and top_k."""
    cells = {}
    for path in (home / "outputs" / "runs").glob("*/run.json"):
        run = json.loads(path.read_text(encoding="utf-8"))
        cells[str(run["params"]["system"]), str(run["params"]["top_k"])] = run["metrics"]

    return cells


def test_order_of_runs_does_not_change_compared_figures(memeval: Command, tmp_path: Path) -> None:
    """The runs share prepared memories, vectors, replies and verdicts: the first to need one
    pays.
    """
    homes = [tmp_path / "one", tmp_path / "other"]
    orders = [("rag,bm25", "3,5"), ("bm25,rag", "5,3")]
    for home, (systems, top_ks) in zip(homes, orders, strict=True):
        with ScriptedEndpoint(latency_s=LATENCY_S) as endpoint:
            memeval(
                *("-m", f"system={systems}", f"top_k={top_ks}", "judge=llm", "tracking=none"),
                *("dataset=demo", "dataset.limit_cases=4", "dataset.limit_questions=3"),
                *("llm=openai", "llm.model=gpt-4o-mini", f"llm.base_url={endpoint.base_url}"),
                *("embedder=openai", "embedder.model=text-embedding-3-small"),
                f"embedder.base_url={endpoint.base_url}",
                home=home,
            )

    one, other = map(figures_of_cells, homes)
    assert one.keys() == other.keys() and len(one) == 4
    billed_differs = False
    for cell, figures in one.items():
        compared = [name for name in figures if not name.startswith((*MEASURED, BILLED))]
        assert {name: figures[name] for name in compared} == {
            name: other[cell][name] for name in compared
        }
        assert figures["cost_usd_uncached/total"] > 0
        billed_differs |= figures["cost_usd/total"] != other[cell]["cost_usd/total"]

        for measured in (figures, other[cell]):
            paid_ms = 1e3 * LATENCY_S * CALLS_OF_AN_ANSWER[cell[0]]
            assert measured["latency_ms/answer/p50"] >= paid_ms, cell
            retrieval_ms = measured["latency_ms/retrieval/p50"]
            assert (retrieval_ms >= 1e3 * LATENCY_S) == (cell[0] == "rag"), cell

    # Otherwise nothing was shared, and the test would prove nothing.
    assert billed_differs
