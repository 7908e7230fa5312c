"""Identity: from a resolved config to each stage's keys.

Settings declare their stage. Data, templates, classes and code contribute digests.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct

from memeval.config.leaves import flatten
from memeval.config.roles import with_roles_filled
from memeval.config.schema import (
    ANSWER,
    AT_INGEST,
    BY_TOOLS,
    JUDGE,
    LLM_INGEST,
    LLM_JUDGE,
    OPTIONAL,
    PREPARE,
    RUN,
    RUNTIME,
    STAGES,
    TOOLS,
    RunConfig,
)
from memeval.config.settings import TENANTS, TIMEOUT, default_of

V = TypeVar("V")

Digests = Mapping[str, Mapping[str, str]]
"""Contributions of a part to the keys: by stage, then by name."""

Settings = Mapping[str, dict[str, Any]]
"""The leaves of a config, by stage and then by dotted path."""

PRESENTABLE = ("dataset.path", "prompt.file", "judge.prompt_file")
"""Runtime fields that name inputs of a run, and are therefore shown with its settings."""
_SHARED_STAGES = {
    "dataset": {},
    # A system's name does not affect stored results: its class is among the digests.
    "system": {"name": RUN, "class": RUN, TIMEOUT: RUNTIME, TENANTS: PREPARE},
}
"""Stages of the settings that every option of a group has."""


class IdentityInputs(Struct, frozen=True):
    """Parts of the keys besides the values of the config."""

    digests: Digests
    """The contributions of data set, prompt templates, system, judge and code, joined."""
    stages: Mapping[str, str]
    """Stages of the settings of data set and system; a setting without one belongs to `prepare`."""
    uses_llm_at_ingest: bool
    """Whether the system calls a language model at ingest: model and seed then shape its memory."""
    judge_uses_llm: bool
    """Whether the judge is a language model."""


class Keys(Struct, frozen=True):
    """The keys of one repeat's stages."""

    prepare: str
    answer: str
    judge: str


def join_digests(*contributions: Digests) -> dict[str, dict[str, str]]:
    """Merges all contributions. A name may occur once per stage."""
    joined: dict[str, dict[str, str]] = {PREPARE: {}, ANSWER: {}, JUDGE: {}}
    for contribution in contributions:
        for stage, digests in contribution.items():
            twice = joined[stage].keys() & digests.keys()
            assert not twice, f"{stage} has two digests named {', '.join(sorted(twice))}"
            joined[stage] |= digests

    return joined


def field_metadata(settings_type: type[Any], prefix: str = "") -> dict[str, Mapping[str, Any]]:
    """Metadata of each leaf of a schema class, by dotted path."""
    metadata: dict[str, Mapping[str, Any]] = {}
    for field in dataclasses.fields(settings_type):
        path = f"{prefix}{field.name}".removesuffix("_")  # `class_` is written `class`
        default = default_of(field)
        if dataclasses.is_dataclass(default):
            metadata |= field_metadata(type(default), f"{path}.")
        # `dataset` and `system` are mappings: the code that reads them declares their leaves.
        elif path not in _SHARED_STAGES:
            metadata[path] = field.metadata

    return metadata


@cache
def field_stages(settings_type: type[Any], prefix: str = "") -> dict[str, str | None]:
    """Stage of each leaf of a schema class by dotted path; None if a field declares none."""
    fields = field_metadata(settings_type, prefix)
    return {path: metadata.get("stage") for path, metadata in fields.items()}


def recorded_stages(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The stage of each field that a run may have, by path; `identity` is from its `run.json`."""
    stages: dict[str, Any] = dict(field_stages(RunConfig))
    inputs = identity.get("inputs")
    if isinstance(inputs, dict) and isinstance(inputs.get("stages"), dict):
        stages |= inputs["stages"]

    return stages


def is_runtime(path: str, stages: Mapping[str, Any]) -> bool:
    """Whether a setting changes no result, by the stages of its run's settings."""
    if path in PRESENTABLE:
        return False

    return stages.get(_field_of(path, stages)) == RUNTIME


def result_settings(params: Mapping[str, V], identity: Mapping[str, Any]) -> dict[str, V]:
    """A run's settings that can change a result, by path; `identity` is from its `run.json`."""
    stages = recorded_stages(identity)
    return {path: value for path, value in params.items() if not is_runtime(path, stages)}


def _field_of(path: str, fields: Mapping[str, Any]) -> str:
    """The field of a leaf: a field may be a dictionary, such as `llm.headers`. Empty if unknown."""
    while path and path not in fields:
        path = path.rpartition(".")[0]

    return path


def settings_stages(group: str, settings_type: type[Any]) -> dict[str, str]:
    """Stages that a settings type declares; optional ones count as `prepare` if given."""
    stages: dict[str, str] = {}
    for path, metadata in field_metadata(settings_type, f"{group}.").items():
        if not metadata.get(OPTIONAL):
            stages[path] = metadata.get("stage") or PREPARE

    for name, stage in _SHARED_STAGES[group].items():
        stages[f"{group}.{name}"] = stage

    return stages


@cache
def run_metadata() -> Mapping[str, Mapping[str, Any]]:
    """Metadata of each setting of a run, by dotted path."""
    return field_metadata(RunConfig)


def by_stage(config: RunConfig, inputs: IdentityInputs) -> Settings:
    """The config's leaves, sorted into the stages whose keys they are part of."""
    fields = run_metadata()
    # Keys contain a role's final settings: naming the answers' model in a role changes nothing.
    leaves = flatten(dataclasses.replace(config, llm=with_roles_filled(config.llm)))
    leaves_of_stage: dict[str, dict[str, Any]] = {stage: {} for stage in STAGES}

    for path, value in leaves.items():
        metadata = _metadata_of(path, fields, inputs)
        if metadata.get(LLM_JUDGE) and not inputs.judge_uses_llm:
            continue
        by_tools = metadata.get(BY_TOOLS)
        if by_tools and getattr(config, by_tools).name != TOOLS:
            continue
        if metadata.get(LLM_INGEST) and not inputs.uses_llm_at_ingest:
            continue
        if value is None and metadata.get(OPTIONAL):
            continue

        leaves_of_stage[metadata["stage"]][path] = value
        if metadata.get(AT_INGEST) and inputs.uses_llm_at_ingest:
            leaves_of_stage[PREPARE][path] = value

    return leaves_of_stage


def search_digests(config: RunConfig, inputs: IdentityInputs) -> Digests:
    """The settings that a writer with tools searches with: its memory depends on them, too."""
    if config.writer.name != TOOLS:
        return {}

    answers, groups = by_stage(config, inputs)[ANSWER], ("system.", "reranker.")
    searches = {path: answers[path] for path in answers if path.startswith(groups)}
    return {PREPARE: {"search": digest(searches)}}


def _metadata_of(
    path: str, fields: Mapping[str, Mapping[str, Any]], inputs: IdentityInputs
) -> Mapping[str, Any]:
    group, _, _ = path.partition(".")
    if group in _SHARED_STAGES:
        return {"stage": inputs.stages.get(path, PREPARE)}

    metadata = fields.get(_field_of(path, fields), {})
    assert metadata.get("stage"), (
        f"{path} has no stage: declare it with `at(...)` in config/schema.py"
    )
    return metadata


def keys(config: RunConfig, inputs: IdentityInputs, seed: int) -> Keys:
    """The keys of the repeat that runs under `seed`."""
    return keys_of_seed(by_stage(config, inputs), inputs, seed)


def keys_of_seed(settings: Settings, inputs: IdentityInputs, seed: int) -> Keys:
    """The keys of the repeat that runs under `seed`, from the settings by stage."""

    def key(stage: str, **more: Any) -> str:
        return digest({"settings": settings[stage], "digests": inputs.digests[stage], **more})

    seed_at_ingest = seed if inputs.uses_llm_at_ingest else None
    prepare = key(PREPARE, seed=seed_at_ingest)
    # Each key contains the previous one: a change that rebuilds a memory also repeats its answers.
    answer = key(ANSWER, prepare=prepare, seed=seed)
    return Keys(prepare=prepare, answer=answer, judge=key(JUDGE, answer=answer))


def run_key(config: RunConfig, inputs: IdentityInputs) -> str:
    """The identity of a cell: its repeats' keys and which questions it asks."""
    settings = by_stage(config, inputs)
    seeds = range(config.seed, config.seed + config.num_runs)
    judges = [keys_of_seed(settings, inputs, seed).judge for seed in seeds]
    return digest({"repeats": judges, "settings": settings[RUN]})


def digest(content: Mapping[str, Any]) -> str:
    """The first 16 hex digits of the sha256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
