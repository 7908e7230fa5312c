"""Facts that `run.json` states twice: settings, flags and tags, compared with their sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memeval.config.leaves import flatten
from memeval.config.roles import with_roles_filled
from memeval.config.schema import RunConfig
from memeval.judges.recorded import RECORDED
from memeval.pipeline.measure.provenance import (
    BIASED_CUT,
    NAMED,
    OF_IMPORTED,
    ONLY,
    SAMPLE,
    STAGES,
    UNPUBLISHED,
    asked_tags,
)
from memeval.pipeline.open.imported_source import IMPORTED
from memeval.pipeline.open.retrieving import RETRIEVE, retrieves_only
from memeval.pipeline.verify.figures import same_figure
from memeval.results import FOUND_NOTHING, RunSummary
from memeval.results.summary import FINISHED, STOPPED
from memeval.text.shown import one_line
from memeval.witness.figures import figures

Row = Mapping[str, Any]


def setting_problems(summary: RunSummary, config: RunConfig) -> Iterator[str]:
    """Settings, and tags that come from them, that `run.json` shows otherwise than the config has
    them.
    """
    filled = replace(config, llm=with_roles_filled(config.llm))
    leaves = {path.removesuffix(".name"): value for path, value in flatten(filled).items()}
    unlike = [name for name in summary.params if name not in leaves and name != "label"]
    unlike += [name for name in leaves if name not in summary.params and _is_shown(name, config)]
    for name in unlike:
        yield f"run.json: the setting {one_line(name, 60)} is only there, or only in config.yaml"

    for name, told in _told_tags(config).items():
        if summary.tags.get(name) != told:
            yield f"run.json: the tag {name} is not that of config.yaml"

    for name, value in leaves.items():
        shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
        if name in summary.params and summary.params[name] != shown:
            yield (
                f"run.json: the setting {name} is {one_line(summary.params[name], 60)}, and "
                f"{one_line(shown, 60)} in config.yaml"
            )


def _is_shown(name: str, config: RunConfig) -> bool:
    """Whether each run.json has a setting: not those of an option that it might not have."""
    group, dot, _ = name.partition(".")
    if (dot and group != "dataset") or group in (*UNPUBLISHED, "sweep_name", "label"):
        return False
    if config.system["name"] == IMPORTED:
        return group in OF_IMPORTED

    return not (retrieves_only(config) and group in ("judge", "prompt"))


def _told_tags(config: RunConfig) -> dict[str, str | None]:
    """Tags that come from settings alone; None for one that must not be there."""
    retrieves = retrieves_only(config)
    asked = asked_tags(config.dataset)
    return {
        "imported": str(config.system["name"] == IMPORTED).lower(),
        "recorded": "true" if config.judge.name == RECORDED else None,
        "partial": "true" if config.system.get("only_listed") else None,
        "mock": "true" if config.llm.name == "mock" else None,
        STAGES: RETRIEVE if retrieves else None,
        **{name: asked.get(name) for name in (SAMPLE, BIASED_CUT, ONLY, NAMED)},
    }


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
        if value is not None and tags.get(name) != value:
            yield f"run.json: the tag {name} is not that of the run"

    if summary.status not in (FINISHED, STOPPED):
        yield f"run.json: there is no status {one_line(summary.status, 40)}"

    seeds = [(repeat["seed"], number) for number, repeat in enumerate(summary.identity["keys"])]
    if summary.repeats and [(one.seed, one.repeat) for one in summary.repeats] != seeds:
        yield "run.json: the repeats have other seeds than the keys"

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
