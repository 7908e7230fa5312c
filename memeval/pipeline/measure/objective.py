"""Checks that `objective` names a metric that a cell will have."""

from collections.abc import Collection
from functools import cache

from memeval.datasets.contract import Dataset
from memeval.errors import UserError, unknown
from memeval.metrics.lifecycle import BREACH, OBEYED
from memeval.metrics.registry import metrics
from memeval.metrics.retrieval import retrieval_metrics
from memeval.pipeline.measure.figures import measure_cell, measure_repeat
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.retrieving import retrieves_only

_GROUPED = ("accuracy_std", "latency_ms", "tokens", "calls", "cost_usd", "cost_usd_uncached")
"""Prefixes of metric names with a slash, such as `tokens/answer/prompt`."""


def check_objective(cell: Cell, direction: str) -> None:
    """Raises `UserError` with the nearest names if a cell can't have the metric, or if the sweeper
    minimizes it although more is better (minimizing is Optuna's default).

    A data set names the metrics of its own protocol. A custom data set may name none before there
    are records: the metric is then looked up at the end.
    """
    name = cell.config.objective
    first = name.partition("/")[0]
    metric = metrics().get(name) or metrics().get(first)
    # `Direction.minimize` as Hydra's default, and `minimize` from the command line.
    if direction.endswith("minimize") and metric is not None and metric.higher_is_better:
        raise UserError(
            f"the search minimizes {name}, but more is better",
            "use:  hydra.sweeper.direction=maximize",
        )

    measures = names_of_measures(cell.dataset)
    known = {*_plain_names(), *(measures or ())}
    if cell.dataset.settings.canaries:
        known |= {BREACH, OBEYED}

    # Only a run without answers has them by category.
    of_retrieval = first if retrieves_only(cell.config) else name
    if name in known or of_retrieval in retrieval_metrics(None, None, None):
        return
    if "/" in name and (first in known or first in _GROUPED):
        return
    # A name that ends in a slash covers all metrics below it, which depend on the records.
    if measures is None or any(word[-1] == "/" and name.startswith(word) for word in measures):
        return

    raise unknown("metric as objective", name, {*known, "recall_at_10", "mrr", "ndcg_at_10"})


def names_of_measures(dataset: Dataset) -> Collection[str] | None:
    """Names of a data set's own metrics; None if unknown before there are records."""
    for cls in type(dataset).__mro__:
        if "measure_names" in vars(cls):
            return dataset.measure_names
        if "measures" in vars(cls):
            break

    return None


@cache
def _plain_names() -> frozenset[str]:
    # Measuring no records returns every name with the value None: no list to keep in step.
    repeat = measure_repeat([], [])
    return frozenset({*measure_cell([repeat], []), "duration_s", *repeat})
