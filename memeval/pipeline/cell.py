"""A cell, opened: its data set, templates, keys and folders, before anything is run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from memeval.config.identity import (
    Digests,
    IdentityInputs,
    Keys,
    join_digests,
    keys,
    run_key,
    settings_stages,
)
from memeval.config.options import built_in_classes
from memeval.config.paths import data_dir, outputs_dir, prepared_dir, project_root
from memeval.config.schema import (
    ANSWER,
    JUDGE,
    PREPARE,
    JudgeConfig,
    PromptConfig,
    RerankerConfig,
    RunConfig,
)
from memeval.config.settings import TIMEOUT, read_settings
from memeval.datasets.contract import Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.locate import build
from memeval.embedding.registry import embedder_class
from memeval.errors import UserError
from memeval.granularity import Granularity
from memeval.judges.accuracy import AccuracyJudge
from memeval.judges.contract import Judge, JudgeSettings
from memeval.judges.model import ModelJudge
from memeval.judges.recorded import RECORDED
from memeval.judges.registry import judge_type
from memeval.llm.own_prices import name_prices, own_prices
from memeval.names import file_name
from memeval.pipeline.code import class_digests, figures_code, is_built_in, stage_code
from memeval.pipeline.declared import Declared, Source
from memeval.pipeline.imported_source import IMPORTED, ImportedSource
from memeval.pipeline.retrieving import RETRIEVE, for_retrieval, retrieves_only
from memeval.prompts import PromptTemplate, from_file, load_builtin
from memeval.records import AnswerForm
from memeval.results.files import memory_folders
from memeval.retrieval.rerank import NONE, Reranker, reranker_class
from memeval.systems.registry import system_class
from memeval.systems.reranking import OWN, RerankedSettings, choose_reranker

PRICES_FILE = "prices.yaml"
"""In the home: prices of the user's own models."""
AUTO, SHORT = "auto", "short"
OFFLINE_READER = "extractive"
"""The option of the group `llm` that is not a language model."""


@dataclass(frozen=True)
class Cell:
    """One resolved configuration with what its files hold."""

    config: RunConfig
    dataset: Dataset
    loaded: LoadedDataset
    source: Source
    """Where the answers come from: a memory system, or a file of another program's."""
    granularity: Granularity
    template: PromptTemplate
    form_templates: Mapping[AnswerForm, PromptTemplate]
    """Under `prompt=auto`, the template for each kind of answer; empty where one serves all."""
    choice_template: PromptTemplate
    """Words of questions with choices, which every system answers under, whatever its style."""
    judge_template: PromptTemplate | None
    identity: IdentityInputs
    figures_code: str
    """Identity of the code that makes the figures: another makes them again from the rows."""
    command: str
    """The one command that repeats the cell."""

    @cached_property
    def run_key(self) -> str:
        return run_key(self.config, self.identity)

    @property
    def seeds(self) -> range:
        """The seed of each repeat."""
        return range(self.config.seed, self.config.seed + self.config.num_runs)

    def keys(self, seed: int) -> Keys:
        if seed not in self._keys:
            self._keys[seed] = keys(self.config, self.identity, seed)

        return self._keys[seed]

    @cached_property
    def _keys(self) -> dict[int, Keys]:
        """The keys that were asked for: to make them takes milliseconds."""
        return {}

    @property
    def judge_settings(self) -> JudgeSettings:
        """How a model judge is asked and read."""
        judge = self.config.judge
        return JudgeSettings(
            repeats=judge.repeats,
            reading=judge.reading,
            scoring=judge.scoring,
            fence=judge.fence,
        )

    @property
    def folder(self) -> Path:
        """The run folder."""
        return outputs_dir() / "runs" / self.run_key

    def answers_file(self, seed: int) -> Path:
        return outputs_dir() / "answers" / f"{self.keys(seed).answer}.jsonl"

    def verdicts_file(self, seed: int) -> Path:
        return outputs_dir() / "verdicts" / f"{self.keys(seed).judge}.jsonl"

    def memory_folder(self, seed: int) -> Path:
        """Where the memories of a repeat are saved: `<data set>/<system>-<key>`.

        The names are for people; the key alone identifies. So memories that were saved under
        another name of the system are used where they are.
        """
        key = self.keys(seed).prepare
        saved = memory_folders(prepared_dir(), key)
        if saved:
            return saved[0]

        dataset, system = file_name(self.config.dataset["name"]), file_name(self.system_name)
        return prepared_dir() / dataset / f"{system}-{key}"

    @property
    def system_name(self) -> str:
        """The system's name, without the variant: options with one class share their memories."""
        name = str(self.config.system["name"])
        if not isinstance(self.source, Declared):
            return name

        system = self.source.system_class
        path = f"{system.__module__}:{system.__qualname__}"
        variants = [option for option, own in built_in_classes("system").items() if own == path]
        return min(variants, key=len, default=name)

    @property
    def style(self) -> str:
        """The style of the answers' template."""
        return self.source.answer_style or self.config.prompt.name

    @property
    def name(self) -> str:
        """Short and readable, for tables and MLflow's list."""
        config = self.config
        if config.system["name"] == IMPORTED:
            return f"{IMPORTED} {Path(config.system['file']).stem} {config.judge.name}"

        parts = [config.system["name"], config.granularity.name, f"k={config.top_k}"]
        if config.compression_turn != "never":
            parts.append(f"compress={config.compression_turn}")

        if config.dataset["sample"] is not None:
            parts.append(f"sample {config.dataset['sample']}")
        if retrieves_only(config):
            return " ".join([*parts, RETRIEVE])

        return " ".join(
            [*parts, config.judge.name, config.prompt.name, config.llm.model or config.llm.name]
        )


@dataclass
class OpenedData:
    """The data sets that the cells of a sweep have in common, opened once."""

    by_settings: dict[str, tuple[Dataset, LoadedDataset]] = dataclasses.field(default_factory=dict)

    def open(self, dataset: Dataset, config: RunConfig) -> tuple[Dataset, LoadedDataset]:
        """The data set, opened; the one that another cell opened where the settings are equal.

        A class of the user's own may not be meant to be read by two cells at once.
        """
        if not is_built_in(type(dataset)):
            return dataset, dataset.open()

        key = repr(sorted(config.dataset.items()))
        if key not in self.by_settings:
            self.by_settings[key] = dataset, dataset.open()

        return self.by_settings[key]


def open_cell(config: RunConfig, command: str, opened: OpenedData | None = None) -> Cell:
    """Opens what the config names; `opened` are the data sets of other cells.

    Raises `UserError` for anything that the user has to mend before a run can start.
    """
    system_name = config.system["name"]
    name_prices(config.prices, project_root() / PRICES_FILE)
    source = _source(config)
    dataset = open_dataset(config)
    if retrieves_only(config):
        config = for_retrieval(config, source, dataset)

    config = replace(
        config,
        system=_resolved_system(config.system, source),
        top_k=source.settings.shown_at_most or config.top_k,
        reranker=choose_reranker(config.reranker, source.settings, system_name),
        dataset={**config.dataset, **_as_yaml(dataset.settings)},
        judge=_judge(config, dataset),
        prompt=_prompt(config),
    )
    _check_granularity(config, dataset)
    template, choice_template = (
        answer_template(config, source.answer_style, dataset.chooses),
        _choice_template(config),
    )
    form_templates = _form_templates(config, source.answer_style)
    judge_class = judge_type(config.judge.name, config.judge.class_)
    judge_template = judge_class.template(config.judge.prompt_file)
    if not retrieves_only(config):
        _check_models(config, dataset, judge_class)

    if source.needs_language_model and not has_language_model(config):
        raise UserError(
            f"system={system_name} needs a language model under these settings, but "
            "llm=extractive is not one",
            "with a key:  llm=openai llm.model=gpt-4o-mini",
        )

    embedder = embedder_class(config.embedder.name, config.embedder.class_)
    reranker = _reranker(config.reranker)
    dataset, loaded = (opened or OpenedData()).open(dataset, config)
    identity = IdentityInputs(
        digests=join_digests(
            stage_code(
                config,
                system=source.module,
                dataset=type(dataset),
                judge=judge_class,
                embedder=embedder,
                reranker=reranker,
            ),
            class_digests(PREPARE, "embedder", embedder),
            class_digests(ANSWER, "reranker", reranker),
            {PREPARE: {"data": loaded.sha256}},
            class_digests(PREPARE, "data set", type(dataset)),
            source.digests(),
            answer_digests(template, choice_template if dataset.chooses else None, form_templates),
            judge_digests(judge_class, judge_template),
        ),
        stages=_stages(source, type(dataset)),
        uses_llm_at_ingest=source.uses_llm_at_ingest,
        judge_uses_llm=judge_template is not None,
    )
    return Cell(
        config=config,
        dataset=dataset,
        loaded=loaded,
        source=source,
        granularity=Granularity(**asdict(config.granularity)),
        template=template,
        form_templates=form_templates,
        choice_template=choice_template,
        judge_template=judge_template,
        identity=identity,
        figures_code=figures_code(type(dataset)) + _prices_in_force(),
        command=command,
    )


def _prices_in_force() -> str:
    """What other prices of the user's own change in the identity of the figures."""
    own = own_prices()
    return "" if own is None else f"-prices-{own.digest}"


def _source(config: RunConfig) -> Source:
    """Where the config's answers come from."""
    if config.system["name"] == IMPORTED:
        if retrieves_only(config):
            raise UserError("stages=retrieve asks a system: leave it out for evaluate")

        return ImportedSource(config.system)

    declared_class = system_class(config.system["name"], config.system.get("class"))
    return Declared(
        declared_class,
        read_settings(declared_class.settings_type, config.system),
        has_language_model=has_language_model(config),
    )


def has_language_model(config: RunConfig) -> bool:
    """Whether the cell has a language model; the mock counts as the model that it replaces."""
    return config.llm.name != OFFLINE_READER


def _stages(source: Source, dataset: type[Dataset]) -> dict[str, str]:
    """Stages of the settings of data set and system, by dotted path."""
    of_dataset = settings_stages("dataset", dataset.settings_type)
    if source.wants_evidence:
        # What is gold decides what this system answers from, and not only how it is judged.
        of_dataset = {
            path: ANSWER if stage == JUDGE else stage for path, stage in of_dataset.items()
        }

    return of_dataset | settings_stages("system", type(source.settings))


def answer_digests(
    template: PromptTemplate,
    choice_template: PromptTemplate | None,
    form_templates: Mapping[AnswerForm, PromptTemplate],
) -> Digests:
    """What the prompt templates of the answers contribute to the keys."""
    digests = [template.sha256]
    digests += [form_templates[form].sha256 for form in sorted(form_templates)]
    if choice_template is not None:
        digests.append(choice_template.sha256)

    return {ANSWER: {"prompt": " ".join(digests)}}


def judge_digests(judge_class: type[Judge], template: PromptTemplate | None) -> Digests:
    """What a judge contributes to the keys: its prompt template, and a class of the user's own."""
    prompt = {} if template is None else {"prompt": template.sha256}
    return {JUDGE: prompt | dict(class_digests(JUDGE, "judge", judge_class).get(JUDGE, {}))}


def _reranker(settings: RerankerConfig) -> type[Reranker] | None:
    """The class of the cell's reranker; None where nothing reranks."""
    return None if settings.name == NONE else reranker_class(settings)


def system_settings(source: Source) -> dict[str, Any]:
    """The settings of a system, without what it reranks by unless told otherwise: what the cell
    reranks by is in its group `reranker`.
    """
    settings = asdict(source.settings)
    if isinstance(source.settings, RerankedSettings):
        del settings[OWN]

    return settings


def _resolved_system(given: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """What a system's YAML says and its settings come to, without what all systems share and nobody
    set.
    """
    settings = system_settings(source)
    kept = {name: value for name, value in given.items() if name != TIMEOUT or value is not None}
    if isinstance(source.settings, RerankedSettings):
        kept.pop(OWN, None)

    return kept | settings


def answer_template(
    config: RunConfig, own_style: str | None, chooses: bool = False
) -> PromptTemplate:
    """The words of the answers: the cell's, unless the system answers in a style of its own."""
    if own_style is not None:
        return load_builtin(f"answer_{own_style}")
    if config.prompt.file and not (chooses and _lists_choices(config.prompt.file)):
        return from_file(config.prompt.file, ("question", "context"))

    return load_builtin(f"answer_{SHORT if config.prompt.name == AUTO else config.prompt.name}")


def _form_templates(
    config: RunConfig, own_style: str | None
) -> Mapping[AnswerForm, PromptTemplate]:
    """The template for each kind of answer under `prompt=auto`.

    Empty where one template serves all: a style of the system's own, or a user's file.
    """
    if config.prompt.name != AUTO or config.prompt.file or own_style is not None:
        return {}

    return {form: load_builtin(f"answer_{form.value}") for form in AnswerForm}


def _prompt(config: RunConfig) -> PromptConfig:
    """The prompt's config, with `auto` decided where no template is read."""
    is_read = has_language_model(config) and config.system["name"] != IMPORTED
    if config.prompt.name != AUTO or is_read:
        return config.prompt

    return replace(config.prompt, name=SHORT)


def _choice_template(config: RunConfig) -> PromptTemplate:
    """The words under which is chosen: ours, or those of a `prompt.file` that has a place for the
    choices.
    """
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
    """The judge's config, under its own name where it said `auto`.

    Raises `UserError` for a judge that does not apply to the data set.
    """
    name, own_class = config.judge.name, config.judge.class_
    if name == "auto" and own_class:
        name = judge_type(name, own_class).name
    elif name == "auto":
        name = dataset.default_judge(has_language_model=has_language_model(config))

    judge_class = judge_type(name, own_class)
    _check_judging(config.judge, name, judge_class)
    if name == RECORDED and config.system["name"] == IMPORTED and not dataset.chooses:
        return replace(config.judge, name=name)

    if not _applies(judge_class, name, dataset):
        task = "choosing among answers" if dataset.chooses else "its own protocol"
        raise UserError(
            f"judge={name} does not apply to dataset={config.dataset['name']}, whose task is "
            f"{task}",
            f"use:  {', '.join(f'judge={applicable}' for applicable in dataset.judges)}",
        )

    return replace(config.judge, name=name)


def _applies(judge: type[Judge], name: str, dataset: Dataset) -> bool:
    """Whether a judge can judge the data set's answers; one of the user's own, all but choices."""
    if is_built_in(judge):
        return name in dataset.judges

    return set(dataset.judges) != {AccuracyJudge.name}


def _check_judging(judge: JudgeConfig, name: str, kind: type[Judge]) -> None:
    """Raises `UserError` for settings that mean nothing to a judge."""
    default = JudgeConfig()
    for field in ("repeats", "fence"):
        if getattr(judge, field) != getattr(default, field) and not issubclass(kind, ModelJudge):
            raise UserError(
                f"judge.{field}={getattr(judge, field)} needs a judge that is a model, but "
                f"judge={name} is not one",
                f"leave judge.{field} out",
            )

    if judge.reading != default.reading and not (
        issubclass(kind, ModelJudge) and kind.says_yes_or_no
    ):
        raise UserError(
            f"judge.reading={judge.reading} does not apply to judge={name}, whose replies are "
            "not yes or no",
            "leave judge.reading out",
        )

    if judge.scoring != default.scoring and not (
        issubclass(kind, ModelJudge) and kind.counts_rubrics
    ):
        raise UserError(
            f"judge.scoring={judge.scoring} does not apply to judge={name}, which has no rubric",
            "leave judge.scoring out",
        )


def _check_granularity(config: RunConfig, dataset: Dataset) -> None:
    if config.granularity.name not in dataset.granularities:
        raise UserError(
            f"granularity={config.granularity.name} does not apply to "
            f"dataset={config.dataset['name']}",
            f"use:  {', '.join(f'granularity={one}' for one in dataset.granularities)}",
        )


def _check_models(config: RunConfig, dataset: Dataset, judge: type[Judge]) -> None:
    if not has_language_model(config):
        judged = dataset.judged_by_model(config.judge.name)
        if judge.needs_model or judged:
            what = f" for {', '.join(judged)}" if judged else ""
            raise UserError(
                f"judge={config.judge.name} needs a language model{what}, but llm=extractive is "
                "not one",
                "with a key:  llm=openai llm.model=gpt-4o-mini",
                "offline:     judge=keyword, judge=token_f1, judge=exact_match or judge=contains",
            )

        if config.prompt.file:
            raise UserError(
                "prompt.file needs a language model: the offline reader reads no template",
                "with a key:  llm=openai",
            )
