"""Configs and identity inputs for tests of keys."""

from __future__ import annotations

import functools
from dataclasses import asdict
from typing import Any

from memeval.config.identity import IdentityInputs, keys, run_key, settings_stages
from memeval.config.schema import RunConfig
from memeval.datasets.locomo.adapter import LocomoSettings

STAGES = {
    **settings_stages("dataset", LocomoSettings),
    "system.name": "run",
    "system.class": "run",
    "system.timeout_s": "runtime",
    "system.chunk_size": "prepare",
    "system.rrf_k": "answer",
}
"""Stages of the data set's settings and of the system's settings below."""
DIGESTS = {
    "prepare": {"code": "c" * 16, "data": "d" * 64, "system": "memeval.systems.retrieval.rag:Rag"},
    "answer": {"code": "c" * 16, "prompt": "p" * 64},
    "judge": {"code": "c" * 16, "prompt": "j" * 64},
}


def config(**changes: Any) -> RunConfig:
    """A config whose answers and verdicts come from a language model, with changes at dotted paths
    (`llm__model`).
    """
    base = RunConfig()
    base.dataset = {"name": "demo", **asdict(LocomoSettings())}
    base.system = {"name": "rag", "chunk_size": 512, "rrf_k": 60}
    base.judge.name = "llm"
    base.llm.name, base.llm.model, base.llm.base_url = (
        "openai",
        "gpt-4o-mini",
        "https://api.openai.com/v1",
    )
    return changed(base, {path.replace("__", "."): value for path, value in changes.items()})


def changed(config: RunConfig, values: dict[str, Any]) -> RunConfig:
    """The config with changed values at dotted paths."""
    for path, value in values.items():
        *groups, name = path.split(".")
        place: Any = functools.reduce(getattr, groups, config)
        if isinstance(place, dict):
            place[name] = value
        else:
            field = "class_" if name == "class" else name
            assert hasattr(place, field), path
            setattr(place, field, value)
    return config


def inputs(**changes: Any) -> IdentityInputs:
    known: dict[str, Any] = {
        "digests": DIGESTS,
        "stages": STAGES,
        "uses_llm_at_ingest": False,
        "judge_uses_llm": True,
    }
    return IdentityInputs(**known | changes)


def with_digest(stage: str, name: str, digest: str) -> dict[str, dict[str, str]]:
    """The digests with one of them replaced or added."""
    return {**DIGESTS, stage: {**DIGESTS[stage], name: digest}}


def all_keys(config: RunConfig, inputs: IdentityInputs) -> dict[str, str]:
    """The keys of the first repeat and the run key."""
    first = keys(config, inputs, config.seed)
    return {
        "prepare": first.prepare,
        "answer": first.answer,
        "judge": first.judge,
        "run": run_key(config, inputs),
    }


def differing(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {stage for stage in one if one[stage] != other[stage]}
