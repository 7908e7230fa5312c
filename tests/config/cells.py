"""Configs and facts to take keys of."""

from __future__ import annotations

import functools
from dataclasses import asdict
from typing import Any

from memeval.config.identity import IdentityInputs, field_stages, keys, run_key
from memeval.config.schema import RunConfig
from memeval.datasets.locomo.adapter import LocomoSettings

STAGES = {"chunk_size": "prepare", "rerank": "answer"}
"""Stages of the settings of the system below."""
DATASET_STAGES = {name: stage or "" for name, stage in field_stages(LocomoSettings).items()}


def config(**changes: Any) -> RunConfig:
    """A config whose answers and verdicts come from a language model, with other values at dotted paths (`llm__model`)."""
    base = RunConfig()
    base.dataset = {"name": "demo", **asdict(LocomoSettings())}
    base.system = {"name": "rag", "chunk_size": 512, "rerank": "none"}
    base.judge.name = "llm"
    base.llm.name, base.llm.model, base.llm.base_url = (
        "openai",
        "gpt-4o-mini",
        "https://api.openai.com/v1",
    )
    return changed(base, {path.replace("__", "."): value for path, value in changes.items()})


def changed(config: RunConfig, values: dict[str, Any]) -> RunConfig:
    """The config with other values at dotted paths."""
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


def facts(**changes: Any) -> IdentityInputs:
    known: dict[str, Any] = {
        "data_sha256": "d" * 64,
        "prompt_sha256": "p" * 64,
        "judge_prompt_sha256": "j" * 64,
        "system_class": "memeval.systems.retrieval.rag:Rag",
        "ingest_prompts_sha256": ("i" * 64,),
        "system_stages": STAGES,
        "dataset_stages": DATASET_STAGES,
        "code": dict.fromkeys(("prepare", "answer", "judge", "run"), "c" * 16),
        "ingest_uses_model": False,
    }
    return IdentityInputs(**known | changes)


def all_keys(config: RunConfig, facts: IdentityInputs) -> dict[str, str]:
    """The keys of the first repeat, and the run key."""
    first = keys(config, facts, config.seed)
    return {
        "prepare": first.prepare,
        "answer": first.answer,
        "judge": first.judge,
        "run": run_key(config, facts),
    }


def differing(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {stage for stage in one if one[stage] != other[stage]}
