"""Facts that `run.json` states twice: settings, flags and tags, compared with their sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memeval.config.leaves import flatten
from memeval.config.roles import with_roles_filled
from memeval.config.schema import RunConfig
from memeval.pipeline.verify.figures import same_figure
from memeval.results import FOUND_NOTHING, RunSummary
from memeval.text.shown import one_line
from memeval.witness.figures import figures

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
