"""Compares figures, settings and tags of `run.json` with what they are made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import isclose
from typing import Any

from memeval.config.leaves import flatten
from memeval.config.roles import with_roles_filled
from memeval.config.schema import RunConfig
from memeval.pipeline.measure.chosen import measure
from memeval.pipeline.measure.figures import measure_repeat
from memeval.pipeline.measure.records import Ingest
from memeval.pipeline.measure.spending import Metrics
from memeval.results import FOUND_NOTHING, CategoryResult, Record, RunSummary
from memeval.text.shown import one_line
from memeval.witness.figures import figures

SHOWN = 5
"""Figures that a line names; it counts the others."""
OF_INGEST = (
    "tokens",
    "cost",
    "calls",
    "latency",
    "ingest",
    "duration",
    "retries",
    "wait",
    "stored",
)
"""First words of the metrics that are made from ingests, too."""


def figure_problems(
    summary: RunSummary, records: Sequence[Record], ingests: Sequence[Ingest] | None
) -> Iterator[str]:
    """Differences of `run.json` from the records, and from the ingests if given."""
    names = {row.category for row in summary.categories if row.headline}
    headline = frozenset(record.category for record in records if str(record.category) in names)
    whole = all(row.headline for row in summary.categories)
    repeats = []
    for repeat in summary.repeats:
        own = [record for record in records if record.repeat == repeat.repeat]
        made = [ingest for ingest in ingests or () if ingest.seed == repeat.seed]
        repeats.append(measure_repeat(own, made, None if whole else headline))

    scored = summary.params.get("dataset.only") is None
    figures = measure(repeats, records, None if whole else headline, has_score=scored)

    unlike = list(_unlike("", summary.metrics, figures.metrics, alone=ingests is None))
    for repeat, own_metrics in zip(summary.repeats, figures.repeats, strict=True):
        begin = f"repeat {repeat.repeat}: "
        unlike += _unlike(begin, repeat.metrics, own_metrics, alone=ingests is None)

    unlike += _unlike_rows("category", summary.categories, figures.categories)
    for name, rows in figures.facets.items():
        unlike += _unlike_rows(name, summary.facets.get(name, ()), rows)

    if unlike:
        more = f" and {len(unlike) - SHOWN} more" if len(unlike) > SHOWN else ""
        yield f"run.json: figures unlike those of the rows: {'; '.join(unlike[:SHOWN])}{more}"


def _unlike(
    begin: str, said: Mapping[str, float | None], made: Metrics, *, alone: bool
) -> Iterator[str]:
    for name, value in made.items():
        if alone and name.startswith(OF_INGEST):
            continue

        if not same_figure(said.get(name), value):
            yield f"{begin}{one_line(name, 60)} {_shown(said.get(name))}, not {_shown(value)}"


def _unlike_rows(
    group: str, said: Sequence[CategoryResult], made: Sequence[CategoryResult]
) -> Iterator[str]:
    by_name = {row.category: row for row in said}
    for row in made:
        other = by_name.pop(row.category, None)
        if other is None or not all(
            same_figure(value, asdict(other)[name])
            for name, value in asdict(row).items()
            if isinstance(value, int | float | None)
        ):
            yield f"{group} {one_line(row.name, 60)}"

    yield from (f"{group} {one_line(name, 60)}" for name in by_name)


def same_figure(one: float | None, other: float | None) -> bool:
    """Whether two figures are equal but for the rounding of another order of sums."""
    if one is None or other is None:
        return one is other

    return isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _shown(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.6g}"


Row = Mapping[str, Any]


def setting_problems(summary: RunSummary, config: RunConfig) -> Iterator[str]:
    """Settings that `run.json` shows otherwise than the config has them."""
    filled = replace(config, llm=with_roles_filled(config.llm))
    for path, value in flatten(filled).items():
        name = path.removesuffix(".name")
        shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
        if name in summary.params and summary.params[name] != shown:
            yield (
                f"run.json: the setting {name} is {one_line(summary.params[name], 60)}, and "
                f"{one_line(shown, 60)} in config.yaml"
            )


def tag_problems(summary: RunSummary) -> Iterator[str]:
    """Tags and flags of `run.json` that contradict its other members."""
    tags, params = summary.tags, summary.params
    inputs = summary.identity.get("inputs", {}).get("digests", {})
    made = {
        "run_key": summary.run_key,
        "command": summary.command,
        "data_sha256": inputs.get("prepare", {}).get("data"),
        "prompt_sha256": inputs.get("answer", {}).get("prompt"),
        "judge_key": None if summary.judge is None else summary.judge.digest,
    }
    for name, value in made.items():
        if value is not None and tags.get(name, value) != value:
            yield f"run.json: the tag {name} is not that of the run"

    least, coverage = params.get("min_coverage"), summary.metrics.get("coverage")
    if isinstance(least, int | float):
        is_whole = coverage is not None and coverage >= least
        valid = is_whole and not summary.is_stopped and tags.get(FOUND_NOTHING) != "true"
        if summary.valid != valid:
            yield f"run.json: it says {'valid' if summary.valid else 'invalid'}, and is not"


def witness_problems(summary: RunSummary, rows: Sequence[Row]) -> Iterator[str]:
    """Figures that a second implementation makes otherwise; see `memeval.witness`."""
    if summary.params.get("dataset.only") is not None:
        return  # a choice by verdicts has no accuracy

    get = summary.metrics.get
    said: dict[str, float | None] = {
        "accuracy": get("accuracy"),
        "accuracy:low": get("accuracy_ci95_low"),
        "accuracy:high": get("accuracy_ci95_high"),
        "coverage": get("coverage"),
    }
    for row in summary.categories:
        begin = f"category:{row.category}"
        said |= {begin: row.accuracy, f"{begin}:low": row.ci95_low, f"{begin}:high": row.ci95_high}
        said |= {f"{begin}:n": row.n, f"{begin}:scored": row.scored}

    made = figures(rows, {row.category for row in summary.categories if row.headline})
    unlike = [name for name in {**said, **made} if not same_figure(said.get(name), made.get(name))]
    if unlike:
        names = ", ".join(one_line(name, 60) for name in unlike[:3])
        yield f"run.json: the witness makes {len(unlike)} figures otherwise: {names}"
