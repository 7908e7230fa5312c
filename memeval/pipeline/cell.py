"""A cell, opened: its data set, wordings, keys and folders, before anything is run."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from memeval.config.identity import Facts, Keys, field_stages, keys, run_key
from memeval.config.paths import data_dir, outputs_dir, prepared_dir
from memeval.config.schema import PREPARE, RunConfig
from memeval.datasets.contract import Dataset, LoadedDataset
from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.granularity import Granularity
from memeval.judges.registry import judge_type, wording_of
from memeval.prompts import Wording, from_file, shipped
from memeval.systems.contract import MemorySystem, SystemSettings
from memeval.systems.registry import read_settings, system_class

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
    wording: Wording
    judge_wording: Wording | None
    facts: Facts
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
        """The style of the answers' wording."""
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
        return " ".join([*parts, config.judge.name, config.prompt.name, config.llm.model or config.llm.name])


def open_cell(config: RunConfig, command: str) -> Cell:
    """Opens what the config names. Raises `UserError` for anything that the user has to mend before a run can start."""
    system_name, class_path = config.system["name"], config.system.get("class")
    kind = system_class(system_name, class_path)
    settings = read_settings(kind.settings_type, config.system)
    config = replace(config, system={**config.system, **asdict(settings)})
    wording = answer_wording(config, kind.answer_style(settings))
    judge_wording = wording_of(config.judge.name, config.judge.prompt_file)
    _check_models(config)
    if config.llm.name == "extractive" and kind.needs_language_model(settings):
        raise UserError(
            f"system={system_name} with these settings asks a language model, and llm=extractive is none",
            "with a key:  llm=openai llm.model=gpt-4o-mini",
        )
    dataset = open_dataset(config)
    loaded = dataset.open()
    facts = Facts(
        data_sha256=loaded.sha256,
        prompt_sha256=wording.sha256,
        judge_prompt_sha256=judge_wording.sha256 if judge_wording else None,
        system_class=class_identity(kind),
        ingest_prompts_sha256=tuple(shipped(name).sha256 for name in kind.ingest_wordings(settings)),
        system_stages=stages_of(kind),
        ingest_uses_model=kind.thinks_at_ingest(settings),
    )
    granularity = Granularity(config.granularity.name, config.granularity.size, config.granularity.overlap)
    return Cell(config, dataset, loaded, kind, settings, granularity, wording, judge_wording, facts, command)


def answer_wording(config: RunConfig, own_style: str | None) -> Wording:
    """The words of the answers: the cell's, unless the system answers in a style of its own."""
    if own_style is not None:
        return shipped(f"answer_{own_style}")
    return from_file(config.prompt.file, ("question", "context")) if config.prompt.file else shipped(f"answer_{config.prompt.name}")


def open_dataset(config: RunConfig) -> Dataset:
    """The adapter of the config's data set, not yet opened."""
    dataset = config.dataset
    settings: dict[str, Any] = {
        "path": dataset.path,
        "labels": dataset.labels,
        "images": dataset.images,
        "limit_cases": dataset.limit_cases,
        "limit_questions": dataset.limit_questions,
        "allow_unpinned": dataset.allow_unpinned,
        "naming": dataset.category_names,
    }
    if dataset.categories is not None:
        settings["categories"] = tuple(dataset.categories)
    return build(dataset.name, data_dir(), **settings)


def class_identity(kind: type[MemorySystem]) -> str:
    """`module:Class`; for a class of the user's own with the sha256 of its file, so that an edit makes its results anew.

    What such a file imports is not looked at. Our own classes go by the version of memeval.
    """
    name = f"{kind.__module__}:{kind.__qualname__}"
    if kind.__module__.split(".")[0] == "memeval":
        return name
    try:
        source = Path(inspect.getfile(kind)).read_bytes()
    except (OSError, TypeError):
        return name
    return f"{name}@{hashlib.sha256(source).hexdigest()}"


def stages_of(kind: type[MemorySystem]) -> dict[str, str]:
    """Stage of each setting of a system by dotted path, as its settings type declares it."""
    return {path: stage or PREPARE for path, stage in field_stages(kind.settings_type).items()}


def _check_models(config: RunConfig) -> None:
    judge = judge_type(config.judge.name)
    if config.llm.name == "extractive":
        if judge.needs_model:
            raise UserError(
                f"judge={config.judge.name} asks a language model, and llm=extractive is none",
                "with a key:  llm=openai llm.model=gpt-4o-mini",
                "offline:     judge=keyword, judge=token_f1 or judge=exact_match",
            )
        if config.prompt.file:
            raise UserError("prompt.file needs a language model: the offline reader reads no wording", "with a key:  llm=openai")
