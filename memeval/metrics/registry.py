"""Metrics by name, for tables, the page, MLflow, `compare` and `gate`."""

import sys
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from multiprocessing import parent_process

from memeval.config.options import Registry
from memeval.config.plugins import METRIC, Plugin, plugins
from memeval.errors import UserError, unknown
from memeval.metrics.metric import USUAL, Metric
from memeval.results import RunSummary
from memeval.text.shown import one_line

_MODULES = ("accuracy", "answer", "retrieval", "spending", "tools", "lifecycle", "stored")
"""Modules of this package with `METRICS`, in table order."""
METRICS = Registry(METRIC, Metric)
"""Metrics of installed packages."""
_ADDED: dict[str, Metric] = {}


def metrics() -> Mapping[str, Metric]:
    """All metrics by name: memeval's own, those of packages, and those that were added."""
    from_packages = tuple(chain.from_iterable(plugins(METRIC).values()))
    return {**_built_in(), **_package_metrics(from_packages), **_ADDED}


@cache
def _built_in() -> dict[str, Metric]:
    built_in: dict[str, Metric] = {}
    for name in _MODULES:
        module = import_module(f"memeval.metrics.{name}")
        built_in.update((metric.name, metric) for metric in module.METRICS)

    return built_in


@cache
def _package_metrics(from_packages: tuple[Plugin, ...]) -> dict[str, Metric]:
    """The metrics that were found in packages.

    Every command needs them: a metric that can't be loaded is left out and reported on one line.
    """
    brought: dict[str, Metric] = {}
    for name in sorted({plugin.name for plugin in from_packages}):
        try:
            metric = METRICS.load_object(name)
            _check(metric, [*_built_in().values(), *brought.values()])
        except UserError as error:
            # Reported once, and not by each worker process.
            if parent_process() is None:
                sys.stderr.write(f"memeval: {error}; the metric is left out\n")
        else:
            brought[metric.name] = metric

    return brought


def add(metric: Metric) -> None:
    """Adds a metric. Raises `UserError` if this name or heading is taken."""
    _check(metric, metrics().values())
    _ADDED[metric.name] = metric


def is_extended() -> bool:
    """Whether metrics were added in this process, which another process would lack."""
    return bool(_ADDED)


def _check(metric: Metric, others: Iterable[Metric]) -> None:
    for other in others:
        if other.name == metric.name:
            raise UserError(f"metric '{one_line(metric.name)}' is defined twice")

        for place, title in sorted(metric.titles.items() & other.titles.items()):
            raise UserError(
                f"metrics '{one_line(metric.name)}' and '{one_line(other.name)}' have the same "
                f"heading at '{one_line(place)}': {one_line(title)}"
            )


def added_metrics() -> list[Metric]:
    """The metrics that are not memeval's own."""
    return [metric for name, metric in metrics().items() if name not in _built_in()]


def metrics_at(place: str) -> list[Metric]:
    """The metrics that a place shows, in its order."""
    shown = [metric for metric in metrics().values() if place in metric.titles]
    return sorted(shown, key=lambda metric: metric.order.get(place, USUAL))


def texts_at(place: str, summary: RunSummary) -> dict[str, str]:
    """A run's figures by their headings at a place; a figure that is left out there is empty."""
    return {metric.titles[place]: metric.shown(place, summary) for metric in metrics_at(place)}


def metric_named(word: str) -> Metric:
    """The metric that a command-line word names: `accuracy`, `f1`, `recall@5`, `cost`, `latency` …

    Any other word names a metric of the records themselves, such as those of one data set.
    """
    known = _question_metrics()
    aliases: dict[str, str] = {}
    for metric in known.values():
        aliases |= dict.fromkeys(metric.aliases, metric.name)

    name = aliases.get(word.strip().lower(), word.strip()).replace("@", "_at_")
    return known.get(name) or Metric(name)


def _question_metrics() -> dict[str, Metric]:
    return {name: metric for name, metric in metrics().items() if metric.is_of_questions}


def unknown_metric(name: str, recorded: Iterable[str], figures: Collection[str]) -> UserError:
    """The error for a metric that no question of some runs with these `figures` has."""
    known = _question_metrics()
    # The name is right: these runs were not judged, or retrieved nothing.
    if name in known:
        return UserError(
            f"no question of these runs has a value for {name}",
            "after stages=retrieve:  --metric recall@10",
            "imported answers have no retrieval metrics and no cost",
            "questions with choices have an accuracy, and no f1",
        )

    if name in metrics() or name in figures:
        return UserError(
            f"{name} is a figure of a whole run, and no question has a value for it",
            "its values are in comparison.csv, run.json and MLflow",
        )

    return unknown("metric", one_line(name), sorted({*known, *map(one_line, recorded)}))
