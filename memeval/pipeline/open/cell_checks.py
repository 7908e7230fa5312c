"""Checks that the parts of a cell are compatible: judge, granularity, models and data set."""

from dataclasses import replace

from memeval.config.roles import JUDGE, OFFLINE_READER, settings_of_role
from memeval.config.schema import TOOLS, JudgeConfig, RunConfig
from memeval.config.settings import SHARED, TENANTS
from memeval.datasets.contract import GRANULARITIES, SUMMARY, Dataset
from memeval.datasets.granularity import has_chunks
from memeval.errors import UserError
from memeval.judges.contract import Judge
from memeval.judges.model import ModelJudge
from memeval.judges.registry import applicable_judges, judge_type, usual_judge
from memeval.pipeline.open.system_source import IMPORTED, Source, SystemSource
from memeval.records import IN_WORDS
from memeval.results.judge import RECORDED


def has_language_model(config: RunConfig) -> bool:
    """Whether the cell has a language model; the mock counts as the model that it replaces."""
    return config.llm.name != OFFLINE_READER


def has_judging_model(config: RunConfig) -> bool:
    """Whether there is a language model in the judge's role."""
    return settings_of_role(config.llm, JUDGE).name != OFFLINE_READER


def resolve_judge(config: RunConfig, dataset: Dataset) -> JudgeConfig:
    """The judge's config with `auto` resolved. Raises `UserError` if it does not apply."""
    name, own_class = config.judge.name, config.judge.class_
    if name == "auto" and own_class:
        name = judge_type(name, own_class).name
    elif name == "auto":
        has_model = has_judging_model(config)
        name = usual_judge(dataset.answers[0], dataset.benchmark, has_model=has_model)

    judge_class = judge_type(name, own_class)
    _check_judging(config.judge, name, judge_class)
    if name == RECORDED and config.system["name"] == IMPORTED and _asks_for_words(dataset):
        return replace(config.judge, name=name)

    if not judge_class.applies_to(dataset.answers[0], dataset.benchmark):
        why = "" if _asks_for_words(dataset) else ", whose questions are multiple choice"
        others = [
            f"judge={other}" for other in applicable_judges(dataset.answers[0], dataset.benchmark)
        ]
        raise UserError(
            f"judge={name} does not apply to dataset={config.dataset['name']}{why}",
            f"use:  {', '.join(others)}",
        )

    return replace(config.judge, name=name)


def _asks_for_words(dataset: Dataset) -> bool:
    """Whether some questions may be answered in words; choices alone are parsed, not judged."""
    return not IN_WORDS.isdisjoint(dataset.answers)


def _check_judging(judge: JudgeConfig, name: str, judge_class: type[Judge]) -> None:
    """Raises `UserError` for settings that a judge does not use."""
    is_model = issubclass(judge_class, ModelJudge)
    is_binary = issubclass(judge_class, ModelJudge) and judge_class.says_yes_or_no
    has_rubric = issubclass(judge_class, ModelJudge) and judge_class.counts_rubrics
    needs_model = f"needs a judge that is a model, but judge={name} is not one"
    other = f"does not apply to judge={name}"
    default = JudgeConfig()
    for field, is_used, why in (
        ("repeats", is_model, needs_model),
        ("fence", is_model, needs_model),
        ("reading", is_binary, f"{other}, whose replies are not yes or no"),
        ("scoring", has_rubric, f"{other}, which has no rubric"),
    ):
        value = getattr(judge, field)
        # Only values that differ from the default: the group `judge` has all fields of all judges.
        if value != getattr(default, field) and not is_used:
            raise UserError(f"judge.{field}={value} {why}", f"leave judge.{field} out")


def check_granularity(config: RunConfig, dataset: Dataset) -> None:
    """Raises `UserError` for a granularity that the data set does not have."""
    if config.granularity.name not in dataset.granularities:
        raise UserError(
            f"granularity={config.granularity.name} does not apply to "
            f"dataset={config.dataset['name']}",
            f"use:  {', '.join(f'granularity={name}' for name in dataset.granularities)}",
        )

    if dataset.settings.canaries and config.system["name"] == IMPORTED:
        raise UserError(
            "dataset.canaries plants turns, but imported answers ignore them",
            "leave dataset.canaries out",
        )
    if dataset.settings.canaries and config.granularity.name not in GRANULARITIES:
        raise UserError(
            f"dataset.canaries plants turns, but granularity={config.granularity.name} stores none",
            "use:  granularity=turn or granularity=session",
        )


def check_chunks(config: RunConfig, dataset: Dataset) -> None:
    """Raises `UserError` if the file has no summaries, or no observations, to ingest."""
    name = config.granularity.name
    if name in GRANULARITIES:
        return

    if not any(has_chunks(case, name) for case in dataset.cases()):
        chunks = {SUMMARY: "summaries of sessions"}.get(name, "observations")
        raise UserError(
            f"granularity={name}: the file of dataset={config.dataset['name']} has no {chunks}",
            "use:  granularity=turn or granularity=session",
        )


def check_source(config: RunConfig, source: Source) -> None:
    """Raises `UserError` for a system that needs a language model in a cell without one."""
    if source.needs_language_model and not has_language_model(config):
        raise UserError(
            f"system={config.system['name']} needs a language model with these settings, but "
            "llm=extractive is not one",
            "with a key:  llm=openai llm.model=gpt-4o-mini",
        )


def check_reader(config: RunConfig, source: Source) -> None:
    """Raises `UserError` for a reader with tools in a cell that can't use them."""
    if config.reader.name != TOOLS:
        return

    name = f"system={config.system['name']}"
    way_out = "use:  reader=direct"
    if not source.has_tools:
        raise UserError(f"reader=tools: {name} has no tools", way_out)
    if source.own_prompt:
        raise UserError(
            f"reader=tools: {name} answers with its own prompt, not with a model that can use "
            "tools",
            way_out,
        )
    if config.stages == "retrieve":
        raise UserError("reader=tools needs answers, but stages=retrieve ends before them", way_out)
    if config.prompt.name == "con":
        raise UserError(
            "prompt=con takes notes of the chunks that a system shows, but reader=tools shows none",
            way_out,
            "or:   prompt=auto",
        )


def check_writer(config: RunConfig, source: Source) -> None:
    """Raises `UserError` for a writer with tools in a cell that can't use them."""
    if config.writer.name != TOOLS:
        return

    way_out = "use:  writer=chunks"
    if not source.has_tools:
        raise UserError(f"writer=tools: system={config.system['name']} has no tools", way_out)
    if config.compression_turn != "never":
        raise UserError(
            f"compression_turn={config.compression_turn} cuts the window of an agent that was "
            "given the chunks, but writer=tools gives it none",
            way_out,
            "or:   compression_turn=never",
        )


def check_tenants(config: RunConfig, source: Source, dataset: Dataset) -> None:
    """Raises `UserError` if the cell can't have the requested store with several users."""
    if config.system.get(TENANTS) is None:
        return

    name = f"system.{TENANTS}={SHARED}"
    if not dataset.has_tenants:
        raise UserError(
            f"{name}: dataset={config.dataset['name']} has no second user",
            "use:  dataset=lifecycle",
        )

    assert isinstance(source, SystemSource), "evaluate takes no settings of a system"
    if config.writer.name == TOOLS:
        raise UserError(f"{name}: writer=tools only writes for one user", "use:  writer=chunks")
    if config.reader.name == TOOLS and not source.needs_instances:
        raise UserError(
            f"{name}: reader=tools calls tools that don't name a user, but "
            f"system={config.system['name']} has one store",
            "use:  reader=direct",
        )


def check_models(config: RunConfig, dataset: Dataset, judge: type[Judge]) -> None:
    """Raises `UserError` for a judge or a prompt that lacks the language model that it needs."""
    judged = dataset.judged_by_model(config.judge.name)
    if not has_judging_model(config) and (judge.needs_model or judged):
        purpose = f" for {', '.join(judged)}" if judged else ""
        raise UserError(
            f"judge={config.judge.name} needs a language model{purpose}, but llm=extractive is "
            "not one",
            "with a key:  llm=openai llm.model=gpt-4o-mini",
            "judge only:  llm.judge.model=gpt-4o-mini",
            "offline:     judge=keyword, judge=token_f1, judge=exact_match or judge=contains",
        )

    if config.prompt.name == "con" and not has_language_model(config):
        raise UserError(
            "prompt=con needs a language model to take notes, but llm=extractive is not one",
            "with a key:  llm=openai llm.model=gpt-4o-mini",
        )
    if config.prompt.file and not has_language_model(config):
        raise UserError(
            "prompt.file needs a language model: the offline reader uses no prompt template",
            "with a key:  llm=openai",
        )


def check_context_budget(config: RunConfig, source: Source) -> None:
    """Raises `UserError` if `context_tokens` is set and the reader is not shown search results."""
    if config.context_tokens is None:
        return
    if source.own_prompt:
        raise UserError(
            "context_tokens needs a system that answers with the shared reader, but "
            f"system={config.system['name']} answers with its own prompt",
            "leave context_tokens out",
        )
