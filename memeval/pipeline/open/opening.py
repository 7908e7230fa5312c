"""Opens the cell of a configuration: its data set, templates, keys and folders."""

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from msgspec import structs

from memeval.config.classes import is_built_in
from memeval.config.identity import (
    Digests,
    IdentityInputs,
    join_digests,
    search_digests,
    settings_stages,
)
from memeval.config.paths import data_dir
from memeval.config.plugins import own_file
from memeval.config.schema import ANSWER, JUDGE, PREPARE, TOOLS, RunConfig
from memeval.config.settings import SHARED_SETTINGS, read_settings
from memeval.datasets.contract import Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.locate import build
from memeval.datasets.settings import CANARY_SETTINGS
from memeval.errors import UserError
from memeval.judges.contract import Judge
from memeval.judges.registry import judge_type
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.cell_checks import (
    check_chunks,
    check_context_budget,
    check_granularity,
    check_models,
    check_reader,
    check_source,
    check_tenants,
    check_writer,
    has_language_model,
    resolve_judge,
)
from memeval.pipeline.open.cell_prompts import (
    answer_digests,
    judge_digests,
    resolve_prompt,
    templates_of,
    writer_digests,
)
from memeval.pipeline.open.code import class_digests, figures_code, stage_code
from memeval.pipeline.open.models import MODELS
from memeval.pipeline.open.retrieving import for_retrieval, retrieves_only
from memeval.pipeline.open.system_source import IMPORTED, ImportedSource, Source, SystemSource
from memeval.results.own_prices import name_prices, prices_mark
from memeval.retrieval.embedding.contract import EMBEDDERS
from memeval.retrieval.rerank import NONE, RERANKERS
from memeval.systems.base import SystemSettings
from memeval.systems.registry import system_class
from memeval.systems.reranking import OWN, RerankedSettings, choose_reranker


@dataclass
class OpenedData:
    """Data sets shared by the cells of a sweep, each opened once."""

    by_settings: dict[str, tuple[Dataset, LoadedDataset]] = dataclasses.field(default_factory=dict)

    def open(self, dataset: Dataset, config: RunConfig) -> tuple[Dataset, LoadedDataset]:
        """The opened data set; built-in ones are shared by cells with equal settings."""
        if not is_built_in(type(dataset)):
            return dataset, dataset.load()

        key = repr(sorted(config.dataset.items()))
        if key not in self.by_settings:
            self.by_settings[key] = dataset, dataset.load()

        return self.by_settings[key]


def open_cell(config: RunConfig, command: str, opened: OpenedData | None = None) -> Cell:
    """Opens a cell; `opened` has data sets of other cells. Raises `UserError` for mistakes."""
    # First: the identity of the figures, below, includes the prices.
    name_prices(config.prices)
    source = _source(config)
    dataset = open_dataset(config)
    config = _resolve_parts(config, source, dataset)
    templates = templates_of(config, source.answer_style, dataset.chooses)
    judge_class = judge_type(config.judge.name, config.judge.class_)
    judge_template = judge_class.template(config.judge.prompt_file)
    if not retrieves_only(config):
        check_models(config, dataset, judge_class)

    check_source(config, source)

    # Last: a data set may take minutes to hash, and the mistakes above are reported first.
    dataset, loaded = (opened or OpenedData()).open(dataset, config)
    check_chunks(config, dataset)
    digests = join_digests(
        _code_digests(config, source, type(dataset), judge_class),
        {PREPARE: {"data": loaded.sha256}},
        source.digests(),
        _label_digests(config, source),
        answer_digests(templates, chooses=dataset.chooses),
        writer_digests(templates),
        judge_digests(judge_class, judge_template),
    )
    wants_evidence = source.wants_evidence
    identity = IdentityInputs(
        digests=digests,
        stages=stages_of(type(dataset), type(source.settings), wants_evidence=wants_evidence),
        uses_llm_at_ingest=_uses_llm_at_ingest(config, source),
        judge_uses_llm=judge_template is not None,
    )
    # Not among the settings by stage: the keys of finished runs must follow from their files.
    digests = join_digests(digests, search_digests(config, identity))
    return Cell(
        config=config,
        dataset=dataset,
        loaded=loaded,
        source=source,
        templates=templates,
        judge_template=judge_template,
        identity=structs.replace(identity, digests=digests),
        # If prices change, the figures are computed again from the rows; no key changes, no call is
        # made.
        figures_code=figures_code(type(dataset)) + prices_mark(),
        command=command,
    )


def _label_digests(config: RunConfig, source: Source) -> Digests:
    """The label, if it names the version of code that memeval can't see."""
    if config.label is None or not source.settings.is_served:
        return {}

    return {PREPARE: {"label": config.label}}


def _resolve_parts(config: RunConfig, source: Source, dataset: Dataset) -> RunConfig:
    """The config with the final values of its parts: settings, judge, prompt, reranker, `top_k`.

    Raises `UserError` for incompatible parts.
    """
    check_reader(config, source)
    check_writer(config, source)
    source.check_use(reader=config.reader.name, writer=config.writer.name)
    check_context_budget(config, source)
    # Before the judge is resolved: a run that only retrieves needs no judge.
    if retrieves_only(config):
        config = for_retrieval(config, source, dataset)

    config = replace(
        config,
        system=_resolve_system(config.system, source),
        top_k=source.settings.max_shown or config.top_k,
        reranker=choose_reranker(config.reranker, source.settings, config.system["name"]),
        dataset=_resolve_dataset(config.dataset, dataset.settings),
        judge=resolve_judge(config, dataset),
        prompt=resolve_prompt(config),
    )
    check_granularity(config, dataset)
    check_tenants(config, source, dataset)
    return config


def _code_digests(
    config: RunConfig, source: Source, dataset: type[Dataset], judge: type[Judge]
) -> Digests:
    embedder = EMBEDDERS.load(config.embedder.name, config.embedder.class_)
    chosen, reranker = config.reranker, None
    if chosen.name != NONE:
        reranker = RERANKERS.load(chosen.name, chosen.class_)

    reranks_at = PREPARE if config.writer.name == TOOLS else ANSWER

    return join_digests(
        stage_code(
            config,
            system=source.module,
            dataset=dataset,
            judge=judge,
            embedder=embedder,
            reranker=reranker,
        ),
        class_digests(PREPARE, "embedder", embedder),
        _model_digests(config, source),
        class_digests(reranks_at, "reranker", reranker),
        class_digests(PREPARE, "data set", dataset),
    )


def _model_digests(config: RunConfig, source: Source) -> Digests:
    """Digests of a package's model class. The key of the verdicts includes that of the answers."""
    if own_file("llm", config.llm.name) is not None:
        return {}

    model = MODELS.load(config.llm.name)
    digests = dict(class_digests(ANSWER, "model", model))
    if _uses_llm_at_ingest(config, source):
        digests |= class_digests(PREPARE, "model", model)

    return digests


def _uses_llm_at_ingest(config: RunConfig, source: Source) -> bool:
    return source.uses_llm_at_ingest or config.writer.name == TOOLS


def _source(config: RunConfig) -> Source:
    if config.system["name"] == IMPORTED:
        if retrieves_only(config):
            raise UserError("stages=retrieve needs a memory system: leave it out for evaluate")

        return ImportedSource(config.system)

    declared_class = system_class(config.system["name"], config.system.get("class"))
    return SystemSource(
        declared_class,
        read_settings(declared_class.settings_type, config.system),
        has_language_model=has_language_model(config),
        reads_by_tools=config.reader.name == TOOLS,
    )


def stages_of(
    dataset: type[Dataset], system_settings: type[SystemSettings], *, wants_evidence: bool
) -> dict[str, str]:
    """Stages of the settings of data set and system, by dotted path."""
    of_dataset = settings_stages("dataset", dataset.settings_type)
    if wants_evidence:
        # The gold determines the evidence that this system answers from, not only its verdicts.
        for path, stage in of_dataset.items():
            if stage == JUDGE:
                of_dataset[path] = ANSWER

    return of_dataset | settings_stages("system", system_settings)


def system_settings(source: Source) -> dict[str, Any]:
    """A system's settings, without its default reranker, which is in the group `reranker`."""
    settings = asdict(source.settings)
    if isinstance(source.settings, RerankedSettings):
        del settings[OWN]

    return settings


def _resolve_system(values: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """A system's YAML and settings, without shared settings that are not set."""
    kept = dict(values)
    for name in SHARED_SETTINGS:
        if kept.get(name) is None:
            kept.pop(name, None)
    if isinstance(source.settings, RerankedSettings):
        kept.pop(OWN, None)

    return kept | system_settings(source)


def open_dataset(config: RunConfig) -> Dataset:
    """The adapter of the config's data set, not yet opened."""
    values = dict(config.dataset)
    dataset = build(values.pop("name"), data_dir(), **values)
    if dataset.settings.canaries and dataset.settings.canary_seed is None:
        dataset.settings = replace(dataset.settings, canary_seed=config.seed)

    return dataset


def _resolve_dataset(values: Mapping[str, Any], settings: DatasetSettings) -> dict[str, Any]:
    """A data set's YAML with the resulting settings in YAML's types: lists, not tuples."""
    resolved = dict(values)
    for name, value in asdict(settings).items():
        resolved[name] = list(value) if isinstance(value, tuple) else value

    # Runs without canaries keep the settings that they had before canaries existed.
    if not settings.canaries:
        for name in CANARY_SETTINGS:
            resolved.pop(name, None)

    return resolved
