"""A cell, opened: its data set, templates, keys and folders, before anything is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from memeval.config.identity import IdentityInputs, Keys, field_stages, keys, run_key
from memeval.config.options import class_path
from memeval.config.paths import data_dir, outputs_dir, prepared_dir
from memeval.config.schema import PREPARE, JudgeConfig, RunConfig
from memeval.config.settings import TIMEOUT, read_settings
from memeval.datasets.contract import Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.locate import build
from memeval.embedding.registry import embedder_class
from memeval.errors import UserError
from memeval.granularity import Granularity
from memeval.judges.model import JudgeSettings, ModelJudge
from memeval.judges.registry import judge_type, template_of
from memeval.pipeline.code import class_identity, stage_code
from memeval.pipeline.declared import Declared
from memeval.prompts import PromptTemplate, from_file, load_builtin
from memeval.retrieval.rerank import NONE, Reranker, reranker_class
from memeval.systems.base import MemorySystem, SystemSettings
from memeval.systems.registry import system_class
from memeval.systems.reranking import RerankedSettings

IMPORTED = "imported"
"""Name of the system of a run whose answers another program gave."""


@dataclass(frozen=True)
class Cell:
    """One resolved configuration with what its files hold."""

    config: RunConfig
    dataset: Dataset
    loaded: LoadedDataset
    system: type[MemorySystem]
    settings: SystemSettings
    granularity: Granularity
    template: PromptTemplate
    choice_template: PromptTemplate
    """Words of questions with choices, which every system answers under, whatever its style."""
    judge_template: PromptTemplate | None
    facts: IdentityInputs
    command: str
    """The one command that repeats the cell."""

    @cached_property
    def run_key(self) -> str:
        return run_key(self.config, self.facts)

    @property
    def seeds(self) -> range:
        """The seed of each repeat."""
        return range(self.config.seed, self.config.seed + self.config.num_runs)

    def keys(self, seed: int) -> Keys:
        return keys(self.config, self.facts, seed)

    @property
    def judge_settings(self) -> JudgeSettings:
        """How a model judge is asked and read."""
        judge = self.config.judge
        return JudgeSettings(repeats=judge.repeats, reading=judge.reading, fence=judge.fence)

    @property
    def folder(self) -> Path:
        """The run folder."""
        return outputs_dir() / "runs" / self.run_key

    def answers_file(self, seed: int) -> Path:
        return outputs_dir() / "answers" / f"{self.keys(seed).answer}.jsonl"

    def verdicts_file(self, seed: int) -> Path:
        return outputs_dir() / "verdicts" / f"{self.keys(seed).judge}.jsonl"

    def memory_folder(self, seed: int) -> Path:
        return prepared_dir() / self.keys(seed).prepare

    @property
    def style(self) -> str:
        """The style of the answers' template."""
        return self.system.answer_style(self.settings) or self.config.prompt.name

    @property
    def name(self) -> str:
        """Short and readable, for tables and MLflow's list."""
        config = self.config
        if config.system["name"] == IMPORTED:
            return f"{IMPORTED} {Path(config.system['file']).stem} {config.judge.name}"
        parts = [config.system["name"], config.granularity.name, f"k={config.top_k}"]
        if config.compression_turn != "never":
            parts.append(f"compress={config.compression_turn}")
        return " ".join(
            [*parts, config.judge.name, config.prompt.name, config.llm.model or config.llm.name]
        )


def open_cell(config: RunConfig, command: str) -> Cell:
    """Opens what the config names. Raises `UserError` for anything that the user has to mend before a run can start."""
    system_name = config.system["name"]
    kind = system_class(system_name, config.system.get("class"))
    settings = read_settings(kind.settings_type, config.system)
    declared = Declared(kind, settings)
    dataset = open_dataset(config)
    config = replace(
        config,
        system={**_without_defaults(config.system), **asdict(settings)},
        dataset={**config.dataset, **_as_yaml(dataset.settings)},
        judge=_judge(config, dataset),
    )
    _check_granularity(config, dataset)
    template, choice_template = (
        answer_template(config, declared.answer_style, dataset.chooses),
        _choice_template(config),
    )
    judge_template = template_of(config.judge.name, config.judge.prompt_file)
    _check_models(config, dataset)
    if config.llm.name == "extractive" and declared.needs_language_model:
        raise UserError(
            f"system={system_name} with these settings asks a language model, and llm=extractive is none",
            "with a key:  llm=openai llm.model=gpt-4o-mini",
        )
    loaded = dataset.open()
    facts = IdentityInputs(
        data_sha256=_data_identity(dataset, loaded),
        prompt_sha256=f"{template.sha256} {choice_template.sha256}"
        if dataset.chooses
        else template.sha256,
        judge_prompt_sha256=judge_template.sha256 if judge_template else None,
        system_class=class_identity(kind),
        ingest_prompts_sha256=tuple(
            load_builtin(name).sha256 for name in declared.ingest_templates
        ),
        system_stages=stages_of(kind),
        dataset_stages={
            path: stage or PREPARE for path, stage in field_stages(dataset.settings_type).items()
        },
        code=stage_code(
            config,
            system=kind,
            dataset=type(dataset),
            judge=judge_type(config.judge.name),
            embedder=embedder_class(config.embedder.name, config.embedder.class_path),
            reranker=_reranker(settings),
        ),
        ingest_uses_model=declared.uses_llm_at_ingest,
    )
    granularity = Granularity(**asdict(config.granularity))
    return Cell(
        config,
        dataset,
        loaded,
        kind,
        settings,
        granularity,
        template,
        choice_template,
        judge_template,
        facts,
        command,
    )


def _reranker(settings: SystemSettings) -> type[Reranker] | None:
    """The class of the reranker that a system's settings choose; None where they choose none."""
    if not isinstance(settings, RerankedSettings) or settings.rerank == NONE:
        return None
    return reranker_class(settings.rerank)


def _without_defaults(system: Mapping[str, Any]) -> dict[str, Any]:
    """What a system's YAML says, without what its name or a default already says.

    The class of a built-in system is found by its name, so it is no difference between two runs.
    """
    implied = {"class": class_path("system", system["name"]), TIMEOUT: None}
    return {
        name: value
        for name, value in system.items()
        if name not in implied or value != implied[name]
    }


def answer_template(
    config: RunConfig, own_style: str | None, chooses: bool = False
) -> PromptTemplate:
    """The words of the answers: the cell's, unless the system answers in a style of its own."""
    if own_style is not None:
        return load_builtin(f"answer_{own_style}")
    if config.prompt.file and not (chooses and _lists_choices(config.prompt.file)):
        return from_file(config.prompt.file, ("question", "context"))
    return load_builtin(f"answer_{config.prompt.name}")


def _choice_template(config: RunConfig) -> PromptTemplate:
    """The words under which is chosen: ours, or those of a `prompt.file` that has a place for the choices."""
    if config.prompt.file and _lists_choices(config.prompt.file):
        return from_file(config.prompt.file, ("question", "context", "choices"))
    return load_builtin("choose")


def _lists_choices(file: str) -> bool:
    return "{choices}" in from_file(file, ()).user


def open_dataset(config: RunConfig) -> Dataset:
    """The adapter of the config's data set, not yet opened."""
    return build(
        config.dataset["name"],
        data_dir(),
        **{name: value for name, value in config.dataset.items() if name != "name"},
    )


def _as_yaml(settings: DatasetSettings) -> dict[str, Any]:
    """Settings as YAML holds them, with lists."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(settings).items()
    }


def _judge(config: RunConfig, dataset: Dataset) -> JudgeConfig:
    """The judge's config, under its own name where it said `auto`. Raises `UserError` for a judge that does not apply to the data set."""
    name = dataset.judges[0] if config.judge.name == "auto" else config.judge.name
    _check_judging(config.judge, name)
    if name not in dataset.judges:
        task = "choosing among answers" if dataset.chooses else "its own protocol"
        raise UserError(
            f"judge={name} does not apply to dataset={config.dataset['name']}, whose task is {task}",
            f"take:  {', '.join(f'judge={one}' for one in dataset.judges)}",
        )
    return replace(config.judge, name=name)


def _check_judging(judge: JudgeConfig, name: str) -> None:
    """Raises `UserError` for a judge that there is not, and for settings that mean nothing to it."""
    kind = judge_type(name)
    default = JudgeConfig()
    for field in ("repeats", "fence"):
        if getattr(judge, field) != getattr(default, field) and not issubclass(kind, ModelJudge):
            raise UserError(
                f"judge.{field}={getattr(judge, field)} means nothing for judge={name}, which asks no model",
                f"leave judge.{field} out",
            )
    if judge.reading != default.reading and not (
        issubclass(kind, ModelJudge) and kind.says_yes_or_no
    ):
        raise UserError(
            f"judge.reading={judge.reading} means nothing for judge={name}, which is not asked for yes or no",
            "leave judge.reading out",
        )


def _check_granularity(config: RunConfig, dataset: Dataset) -> None:
    if config.granularity.name not in dataset.granularities:
        raise UserError(
            f"granularity={config.granularity.name} means nothing for dataset={config.dataset['name']}",
            f"take:  {', '.join(f'granularity={one}' for one in dataset.granularities)}",
        )


def _data_identity(dataset: Dataset, loaded: LoadedDataset) -> str:
    """The sha256 of the data; for an adapter of the user's own with that of its code, which decides what is read from it."""
    adapter = class_identity(type(dataset))
    return f"{loaded.sha256} {adapter}" if "@" in adapter else loaded.sha256


def stages_of(kind: type[MemorySystem]) -> dict[str, str]:
    """Stage of each setting of a system by dotted path, as its settings type declares it."""
    return {path: stage or PREPARE for path, stage in field_stages(kind.settings_type).items()}


def _check_models(config: RunConfig, dataset: Dataset) -> None:
    judge = judge_type(config.judge.name)
    if config.llm.name == "extractive":
        judged = dataset.judged_by_model(config.judge.name)
        if judge.needs_model or judged:
            what = f" for {', '.join(judged)}" if judged else ""
            raise UserError(
                f"judge={config.judge.name} asks a language model{what}, and llm=extractive is none",
                "with a key:  llm=openai llm.model=gpt-4o-mini",
                "offline:     judge=keyword, judge=token_f1 or judge=exact_match",
            )
        if config.prompt.file:
            raise UserError(
                "prompt.file needs a language model: the offline reader reads no template",
                "with a key:  llm=openai",
            )
