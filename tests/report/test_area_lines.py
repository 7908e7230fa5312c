"""The area below the frontier, as lines of comparison.md."""

from __future__ import annotations

from dataclasses import replace

from sample_runs import summary

from memeval.report.comparison import area_lines
from memeval.results import RunSummary


def run(system: str, budget: int | None, tokens: float, accuracy: float | None) -> RunSummary:
    return summary(
        system,
        params={"system": system, "context_tokens": budget},
        metrics={"context_tokens": tokens, "accuracy": accuracy},
    )


def test_each_system_has_the_area_of_its_own_runs() -> None:
    runs = [
        run("bm25", 100, 100.0, 0.2),
        run("bm25", 1000, 1000.0, 0.4),
        run("dense", 100, 10.0, 0.1),
        run("dense", 1000, 10_000.0, 0.5),
        replace(run("dense", 100, 1.0, 0.9), valid=False),
    ]
    # From 100 tokens (bm25's first run) to 10,000: two decades.
    assert area_lines(runs) == [
        "area below the frontier, bm25: 30.0 % on average over 100 to 10,000 tokens of context",
        "area below the frontier, dense: 10.0 % on average over 100 to 10,000 tokens of context",
    ]


def test_without_budgets_or_accuracies_there_is_no_area() -> None:
    assert area_lines([run("bm25", None, 100.0, 0.2), run("dense", None, 50.0, 0.2)]) == []
    assert area_lines([run("bm25", 10, 100.0, None), run("bm25", 20, 200.0, 0.2)]) == []
    assert area_lines([]) == []
