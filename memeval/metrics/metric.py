"""A metric: its name, its needs, its measurement, and its display."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import isfinite

from memeval.config.classes import explaining
from memeval.metrics.formats import (
    count,
    digits,
    dollars,
    duration,
    milliseconds,
    percent,
    short_count,
    with_interval,
)
from memeval.results import Record, RunSummary, is_imported
from memeval.statistics.clusters import ClusteredMean

TABLE, PAGE, PRICE = "table", "page", "price"
"""Places for several runs: columns of the sweep's and page's tables, and axes against accuracy."""
PAPER = "paper"
"""Place in the table of a paper, whose headings have room for words."""
SHOW, REPORT, TILE, TAGS = "show", "report", "tile", "tags"
"""Places for one run: lines of `memeval show`, report and page, and rounded figures in MLflow."""
REPEATS, SECTION, SECTION_BY_CATEGORY, ROWS = "repeats", "section", "by category", "rows"
"""Places in a report's parts on repeats and retrieval; columns of MLflow's table of records."""
USUAL = 50
"""Default position of a metric at a place; at equal positions, the registry's order counts."""
ROUNDING = 1e-6
"""How far rounding may carry a value over the bounds of its unit."""


@dataclass(frozen=True)
class Unit:
    """Unit of values, and their format."""

    name: str
    short: Callable[[float | None], str] = short_count
    """Writes a value in a column."""
    full: Callable[[float | None], str] = count
    """Writes a value if there is room."""
    tag: Callable[[float], str] = count
    """Writes a value in MLflow."""
    before: str = ""
    after: str = ""
    """Text before and after a value in sentences."""
    word: str = ""
    """Written after a range of values; empty means the name."""
    most: float | None = None
    """The largest possible difference; None if unbounded."""
    scale: float = 1.0
    """Factor by which values are multiplied when they are shown."""


POINTS = Unit("points", percent, percent, percent, after=" %", most=1.0, scale=100.0)
"""Shares in [0, 1], shown times 100."""
DOLLARS = Unit("$", dollars, dollars, digits, before="$", word="dollars")
TOKENS = Unit("tokens", after=" tokens")
MS = Unit("ms", milliseconds, milliseconds, duration)
QUESTIONS = Unit("questions", short=count)


@dataclass(frozen=True)
class Metric:
    """A figure of a question, of a run, or of both."""

    name: str
    """As in records, in MLflow and on the command line: `accuracy`, `token_f1` …"""
    unit: Unit = POINTS
    figure: str = ""
    """Name of a run's figure; empty means the metric's own, for the mean over its questions."""
    aliases: Collection[str] = ()
    """Other names for it on the command line."""

    of_answer: Callable[[str, str], float] | None = None
    """Measures an answer against a gold; the best over the golds is stored in the record."""
    of_record: Callable[[Record], float | None] | None = None
    """Reads the value from a record; None reads `metrics` of the record by the metric's name."""
    of_run: Callable[[Mapping[str, float | None]], float | None] | None = None
    """Reads the value from the figures of a run; None reads the one named `figure`."""

    needs_gold: bool = True
    """For `of_answer`: whether questions without a gold have no value; else the gold is empty."""
    needs_words: bool = False
    """Whether it is undefined for scripts whose words can't be separated."""
    more_is_better: bool = True
    """Whether more is better; it never is for dollars, tokens and milliseconds."""
    judged: bool = False
    """Whether it depends on the judge: values by different judges are not comparable."""
    is_main: bool = False
    """Whether runs also have it by facet and with deviation; under `dataset.only`, not at all."""
    averaged: bool = True
    """Whether the mean over its questions is a figure of a run, unless `figure` names another."""
    all_categories: bool = False
    """Whether it counts every question; otherwise only the categories of the accuracy."""
    of_calls: bool = False
    """Whether it counts the cost of calls, which is unknown for imported answers."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Headings by place, for tables of several runs."""
    lines: Mapping[str, str] = field(default_factory=dict)
    """Headings by place, about one run. A metric is shown only at places in `columns` and here."""
    texts: Mapping[str, Callable[[RunSummary], str]] = field(default_factory=dict)
    """Its format at a place, if it is not that of the unit."""
    hint: str = ""
    """Explanation of its column on the page."""
    optional: Collection[str] = ()
    """Places that leave it out if it was not measured."""
    order: Mapping[str, int] = field(default_factory=dict)
    """Its position at a place, if that is not the usual one."""

    @property
    def titles(self) -> dict[str, str]:
        """Its headings by place."""
        return {**self.columns, **self.lines}

    @property
    def higher_is_better(self) -> bool:
        return self.more_is_better and self.unit not in (DOLLARS, TOKENS, MS)

    @property
    def paper_title(self) -> str:
        """Its heading in a table for a paper."""
        return self.columns.get(PAPER, self.name)

    @property
    def is_of_questions(self) -> bool:
        """Whether single questions have a value, so that runs can be compared by it."""
        return self.of_answer is not None or self.of_record is not None

    @property
    def has_mean(self) -> bool:
        """Whether a run has the mean over its questions, under the metric's name."""
        return self.is_of_questions and self.averaged and not self.figure

    def of_question(self, record: Record) -> float | None:
        """The value of a question. Raises `UserError` if it can't be measured."""
        read = self.of_record
        if read is None:
            return record.metrics.get(self.name)

        with self._measuring():
            value = read(record)
            return None if value is None else self._checked(float(value))

    def compare(self, answer: str, gold: str) -> float:
        """The value of an answer against a gold. Raises `UserError` if it can't be measured."""
        measure = self.of_answer
        assert measure is not None, f"{self.name} is not a metric of answers"
        with self._measuring():
            return self._checked(float(measure(answer, gold)))

    def _measuring(self) -> AbstractContextManager[None]:
        hint = "fix the metric, then repeat the command: no answer is lost"
        return explaining(f"metric '{self.name}' failed", hint)

    def _checked(self, value: float) -> float:
        most = self.unit.most
        if not isfinite(value):
            raise ValueError(f"its value must be a finite number, but is {value}")
        if most is not None and not -ROUNDING <= value <= most + ROUNDING:
            raise ValueError(f"its value must be in [0, {most:g}], but is {value:g}")

        return value

    def of_figures(self, figures: Mapping[str, float | None]) -> float | None:
        """The value of a run, from its figures."""
        if self.of_run:
            return self.of_run(figures)

        return figures.get(self.figure or self.name)

    def of_summary(self, summary: RunSummary) -> float | None:
        """The value of a run. The cost of imported answers is unknown: the run's calls are the
        judge's.
        """
        if self.of_calls and is_imported(summary):
            return None

        return self.of_figures(summary.metrics)

    def shown(self, place: str, summary: RunSummary) -> str:
        """The figure of a run at a place; empty if it is left out there."""
        if place in self.texts:
            return self.texts[place](summary)

        value, unit = self.of_summary(summary), self.unit
        if value is None and (place == TAGS or place in self.optional):
            return ""
        if value is not None and place == TAGS:
            return unit.tag(value)
        if place in self.columns:
            return unit.short(value)

        text = unit.full(value)
        if place == REPORT and value is not None:
            text = unit.before + text + unit.after

        return text


def interval_figures(name: str, result: ClusteredMean | None) -> dict[str, float | None]:
    """A mean and the ends of its 95 % interval, by name; empty if it was not measured."""
    if result is None:
        return {}

    return {name: result.mean, f"{name}_ci95_low": result.low, f"{name}_ci95_high": result.high}


def with_interval_of(name: str, summary: RunSummary) -> str:
    """A figure of a run with its interval: `37.6 [28.1, 48.2]`, or a dash."""
    return with_interval(*summary.share(name))


def percent_of(name: str, summary: RunSummary) -> str:
    """A figure with its interval, followed by `%`; empty if it was not measured."""
    if summary.metrics.get(name) is None:
        return ""

    return f"{with_interval_of(name, summary)} %"
