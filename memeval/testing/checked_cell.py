"""The system of a cell, as `python -m memeval check` tests it."""

from dataclasses import replace

from memeval.llm.contract import Completion, Prompt
from memeval.llm.model import LanguageModel
from memeval.pipeline.execute.reader import BudgetedReader, cell_reader
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.records import Role
from memeval.retrieval.embedding.contract import Embedder
from memeval.systems.base import MemorySystem, Reader, SystemContext
from memeval.testing.model import ScriptedModel
from memeval.testing.under_test import SystemUnderTest

CONSTANT = "constant"
WITHOUT_MEMORY = (CONSTANT, "no_memory")
"""Control systems that discard everything they are given."""


class ModelByRole(LanguageModel):
    """The model of `llm.ingest` for calls while a system ingests, and that of `llm` for others."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self.name = models.reader.name

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        is_ingest = role is Role.INGEST
        model = self._models.ingest_model if is_ingest else self._models.reader
        return await model.complete(prompt, role=role, seed=seed)


class CheckedCell(SystemUnderTest):
    """The system of a cell, with the cell's own models and embedder."""

    def __init__(self, cell: Cell, models: Models, most: int | None = None) -> None:
        """`most`: maximum number of tokens of its results that are shown to the reader."""
        self._cell, self._models, self._most = cell, models, most
        source = cell.source
        self._name = cell.config.system["name"]
        self.top_k = cell.config.top_k
        self.timeout_s = cell.timeout_s
        self.remembers = self._name not in WITHOUT_MEMORY
        self.bound_by_top_k = source.settings.max_shown is None and not source.wants_evidence

    def build(self, parts: SystemContext) -> MemorySystem:
        source = self._cell.source
        system: MemorySystem = source.system_class(source.settings, parts)  # type: ignore[attr-defined]
        return system

    def parts(
        self, model: ScriptedModel, *, top_k: int | None = None, case_id: str = "sample"
    ) -> SystemContext:
        parts = super().parts(model, top_k=top_k, case_id=case_id)
        reader: Reader = cell_reader(self._cell, model, parts.seed)
        if self._most is not None:
            reader = BudgetedReader(reader, self._most)

        return replace(parts, reader=reader, reranker=self._models.reranker)

    def model(self) -> ScriptedModel:
        return ScriptedModel(inner=ModelByRole(self._models))

    def embedder(self) -> Embedder:
        return self._models.embedder()

    def silent(self) -> bool:
        return self._cell.source.own_prompt or self._name == CONSTANT
