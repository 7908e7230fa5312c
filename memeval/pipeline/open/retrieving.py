"""`stages=retrieve`: each question ends after retrieval. No answer, no judge, no model.

Systems are called as in any run. Their reader counts the tokens of the context and returns no text,
so that a question's row contains the retrieved chunks, under a separate status.
"""

from dataclasses import replace

from memeval.config.schema import (
    TOOLS,
    JudgeConfig,
    JudgeModelConfig,
    LlmConfig,
    PromptConfig,
    RunConfig,
)
from memeval.datasets.contract import Dataset
from memeval.errors import UserError
from memeval.judges.registry import usual_judge
from memeval.pipeline.open.system_source import Source

ALL, RETRIEVE = "all", "retrieve"


def retrieves_only(config: RunConfig) -> bool:
    """Whether the questions of a cell end after retrieval."""
    return config.stages == RETRIEVE


def for_retrieval(config: RunConfig, source: Source, dataset: Dataset) -> RunConfig:
    """The config without settings of answers and judge, but with a model used at ingest.

    Raises `UserError` for a system that answers without the reader.
    """
    name = config.system["name"]
    if source.own_prompt:
        raise UserError(
            f"stages={RETRIEVE} needs a system that answers with the shared reader, but "
            f"system={name} answers with its own prompt",
            f"leave stages={RETRIEVE} out",
        )

    llm = LlmConfig()
    writes = config.writer.name == TOOLS
    if source.uses_llm_at_ingest or source.needs_language_model or writes:
        llm = replace(config.llm, judge=JudgeModelConfig())

    # This judge is never called.
    judge = usual_judge(dataset.answers[0], dataset.benchmark, has_model=False)
    return replace(
        config, llm=llm, judge=JudgeConfig(name=judge), prompt=PromptConfig(name="short")
    )
