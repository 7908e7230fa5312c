"""Reads a comparison's JSON, as `memeval compare` writes it, into what the page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memeval.report.page.data import CategoryDelta, ComparisonData, DifferenceData
from memeval.text.redaction import redacted


def comparison_data(
    comparison: Mapping[str, Any], lead: Sequence[str], sentences: Sequence[str]
) -> ComparisonData:
    """What the page shows of a comparison: `lead` first; `sentences` say its differences, in their
    order.
    """
    labels = {run["key"]: run["label"] for run in comparison["runs"]}
    baseline = comparison["baseline"]
    differences = tuple(
        _difference(row, sentence, labels, baseline)
        for row, sentence in zip(comparison["differences"], sentences, strict=True)
    )
    remarks = [
        *_forced(comparison),
        *_raw_verdicts(comparison),
        *_refusals(comparison, labels),
    ]
    return ComparisonData(
        metric=comparison["metric"],
        unit=comparison["unit"],
        scale=comparison["scale"],
        sentences=tuple(lead),
        baseline=baseline,
        differences=differences,
        letters={run["key"]: run.get("letters", "") for run in comparison["runs"]},
        remarks=tuple(map(redacted, remarks)),
        adjusted_how=_adjusted_how(comparison),
    )


def _adjusted_how(comparison: Mapping[str, Any]) -> str:
    if comparison.get("adjustment") == "bh":
        return (
            f"by Benjamini and Hochberg’s rule, over {comparison['tests']:,} tests of all metrics"
        )

    return "for all rows together"


def _raw_verdicts(comparison: Mapping[str, Any]) -> list[str]:
    """That differences are not corrected, where accuracies are."""
    if not any(run.get("corrected") for run in comparison["runs"]):
        return []

    return [
        "Differences, their intervals and p rest on the raw verdicts, not on the accuracies "
        "corrected for the judge’s error."
    ]


def _difference(
    row: Mapping[str, Any], sentence: str, labels: Mapping[str, str], baseline: str | None
) -> DifferenceData:
    first, second, result = labels[row["first"]], labels[row["second"]], row["result"]
    return DifferenceData(
        cell=row["first"],
        label=first if baseline else f"{first} − {second}",
        delta=result["mean"],
        low=result["low"],
        high=result["high"],
        p=row["p"],
        adjusted_p=row["adjusted_p"],
        mde=result["mde"],
        n=result["count"],
        is_shown=row["is_shown"],
        sentence=sentence,
        categories=tuple(map(_category, row.get("categories", ()))),
        same_prompts=row.get("same_prompts", False),
    )


def _category(row: Mapping[str, Any]) -> CategoryDelta:
    result = row["result"]
    return CategoryDelta(
        name=row["category"],
        delta=result["mean"],
        low=result["low"],
        high=result["high"],
        n=result["count"],
    )


def _forced(comparison: Mapping[str, Any]) -> list[str]:
    reasons = comparison.get("forced", ())
    return [f"Forced, not comparable: {'; '.join(reasons)}."] if reasons else []


def _refusals(comparison: Mapping[str, Any], labels: Mapping[str, str]) -> list[str]:
    """Pairs of cells that were not compared, and why."""
    return [
        f"Not compared: {labels[row['first']]} with {labels[row['second']]}: "
        f"{'; '.join(row['reasons'])}."
        for row in comparison.get("refusals", ())
    ]
