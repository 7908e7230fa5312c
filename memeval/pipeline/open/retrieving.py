"""`stages=retrieve`: each question ends after retrieval. No answer, no judge, no model.

Systems are asked as in any run. Their reader counts the tokens of the context and says nothing, so
the row of a question holds what was retrieved, under a status of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

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
from memeval.judges.usual import usual_judge
from memeval.llm.metering import current_ledger
from memeval.llm.tokens import count_tokens
from memeval.pipeline.open.declared import Source
from memeval.records import Query, Status
from memeval.results import AnswerRow
from memeval.systems.base import ReaderReply

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
            f"stages={RETRIEVE} needs a system that answers by the shared reader, but "
            f"system={name} answers with its own prompt",
            f"leave stages={RETRIEVE} out",
        )

    llm = LlmConfig()
    writes = config.writer.name == TOOLS
    if source.uses_llm_at_ingest or source.needs_language_model or writes:
        llm = replace(config.llm, judge=JudgeModelConfig())

    # It is never asked.
    judge = usual_judge(dataset.answers[0], dataset.benchmark, has_model=False)
    return replace(
        config,
        llm=llm,
        judge=JudgeConfig(name=judge),
        prompt=PromptConfig(name="short"),
    )


class SilentReader:
    """The reader of a cell that retrieves only."""

    async def answer(
        self, query: Query, context: Sequence[str], *, order: Sequence[int] = ()
    ) -> ReaderReply:
        """No text, and the size of the context."""
        # The context is counted for the table: that is not the system's work.
        with current_ledger().own.aside():
            return ReaderReply(text="", raw=None, context_tokens=sum(map(count_tokens, context)))


def retrieved_row(row: AnswerRow) -> AnswerRow:
    """The row of a question that ended after its retrieval."""
    return structs.replace(row, status=Status.RETRIEVED, hypothesis=None, raw=None)
