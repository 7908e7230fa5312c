"""Identity: one function from a resolved config (and what its files hold) to the keys under which each stage's results are kept."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memeval.config.schema import ANSWER, JUDGE, PREPARE, RUN, RUNTIME, STAGES, RunConfig
from memeval.config.settings import TIMEOUT

_MEMORY_MODEL_FIELDS = (
    "llm.name",
    "llm.model",
    "llm.base_url",
    "llm.temperature",
    "llm.max_tokens",
    "llm.send_seed",
)
_JUDGE_MODEL_FIELDS = ("llm.base_url", "llm.max_tokens", "llm.send_seed")


@dataclass(frozen=True)
class IdentityInputs:
    """What identity needs to know beyond the config: the content of files, and what the system's class declares."""

    data_sha256: str
    prompt_sha256: str
    judge_prompt_sha256: str | None
    """None where the judge is no model."""
    system_class: str
    """`module:Class` of the system: what it is called changes nothing that is stored."""
    ingest_prompts_sha256: tuple[str, ...]
    """Of the templates under which the system thinks while it ingests."""
    system_stages: Mapping[str, str]
    """Stage by name of the system's settings; a setting that is missing here counts as `prepare`."""
    dataset_stages: Mapping[str, str]
    """Stage by name of the data set's settings, likewise."""
    code: Mapping[str, str]
    """By stage, what stands for the code that it runs through; `run` is that of the figures."""
    ingest_uses_model: bool
    """Whether the system thinks while it ingests: the model and the seed then belong to its memory."""


@dataclass(frozen=True)
class Keys:
    """The keys of one repeat's stages."""

    prepare: str
    answer: str
    judge: str


def field_stages(kind: type[Any], prefix: str = "") -> dict[str, str | None]:
    """Stage of each leaf of a schema class by dotted path; None where a field does not say."""
    stages: dict[str, str | None] = {}
    for field in dataclasses.fields(kind):
        path = f"{prefix}{field.name}".removesuffix("_")
        default = (
            field.default_factory()
            if field.default_factory is not dataclasses.MISSING
            else field.default
        )
        if dataclasses.is_dataclass(default):
            stages |= field_stages(type(default), f"{path}.")
        elif path not in ("dataset", "system"):
            stages[path] = field.metadata.get("stage")
    return stages


def by_stage(config: RunConfig, facts: IdentityInputs) -> dict[str, dict[str, Any]]:
    """The config's leaves, sorted into the stages that they belong to."""
    from memeval.config.resolve import flatten

    declared = field_stages(RunConfig)
    sorted_leaves: dict[str, dict[str, Any]] = {stage: {} for stage in STAGES}
    for path, value in flatten(config).items():
        stage = (
            _own_stage(path, facts)
            or declared.get(path)
            or declared.get(".".join(path.split(".")[:2]))
        )
        assert stage is not None, (
            f"{path} has no stage: declare it with `at(...)` in config/schema.py"
        )
        sorted_leaves[stage][path] = value
    return sorted_leaves


def _own_stage(path: str, facts: IdentityInputs) -> str | None:
    """The stage of a setting that a system or a data set declares itself; None for the other groups' fields."""
    group, _, name = path.partition(".")
    if group == "dataset":
        return facts.dataset_stages.get(name, PREPARE)
    if group == "system":
        if name == TIMEOUT:
            return RUNTIME
        return RUN if name in ("name", "class") else facts.system_stages.get(name, PREPARE)
    return None


def keys(config: RunConfig, facts: IdentityInputs, seed: int) -> Keys:
    """The keys of the repeat that runs under `seed`."""
    leaves = by_stage(config, facts)
    every = {path: value for stage in leaves.values() for path, value in stage.items()}
    stands_on = {"data": facts.data_sha256, "system": facts.system_class}
    prepare: dict[str, Any] = {"code": facts.code[PREPARE], **stands_on, **leaves[PREPARE]}
    if facts.ingest_uses_model:
        prepare |= {
            "seed": seed,
            "memory texts": facts.ingest_prompts_sha256,
            **{f"memory {path}": every[path] for path in _MEMORY_MODEL_FIELDS},
        }
    prepare_key = digest(prepare)
    answer = {
        "code": facts.code[ANSWER],
        "prepare": prepare_key,
        "prompt text": facts.prompt_sha256,
        "seed": seed,
        **leaves[ANSWER],
    }
    answer_key = digest(answer)
    judge: dict[str, Any] = {"code": facts.code[JUDGE], "answer": answer_key}
    judge |= {path: value for path, value in leaves[JUDGE].items() if path != "llm.judge_model"}
    if facts.judge_prompt_sha256 is not None:
        judge |= {
            "judge text": facts.judge_prompt_sha256,
            "judge model": config.llm.judge_model or config.llm.model,
        }
        judge |= {f"judge {path}": every[path] for path in _JUDGE_MODEL_FIELDS}
    return Keys(prepare_key, answer_key, digest(judge))


def run_key(config: RunConfig, facts: IdentityInputs) -> str:
    """The identity of a cell: its repeats' keys and which questions it asks."""
    judges = [keys(config, facts, config.seed + repeat).judge for repeat in range(config.num_runs)]
    return digest({"repeats": judges, **by_stage(config, facts)[RUN]})


def digest(content: Mapping[str, Any]) -> str:
    """The first 16 hex digits of the sha256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
