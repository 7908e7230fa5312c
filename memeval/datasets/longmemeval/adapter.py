"""LongMemEval (Wu et al., ICLR 2025): 500 questions, each with its own chat history."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from memeval.config.schema import PREPARE, at
from memeval.datasets.contract import (
    GRANULARITIES,
    Dataset,
    DatasetInfo,
    DatasetSettings,
    LoadedDataset,
)
from memeval.datasets.io.fields import Fields
from memeval.datasets.io.json_stream import stream_list
from memeval.datasets.locate import check_pin, digest_file, excerpt_notes
from memeval.datasets.longmemeval.metrics import (
    PREFIX,
    official_means,
    official_metrics,
    share_right,
)
from memeval.datasets.longmemeval.schema import ABILITIES, Item, read_item
from memeval.errors import UserError
from memeval.records import AnswerKind, CategoryId, EvalCase, EvalQuestion
from memeval.results import Record


@dataclass(frozen=True)
class LongMemEvalSettings(DatasetSettings):
    """Settings of the data sets in LongMemEval's schema."""

    roles: Literal["all", "user"] = at(PREPARE, "all")
    """Whose turns are remembered; `user` is what the official retrieval protocol indexes."""


class LongMemEval(Dataset):
    """Reads a file in LongMemEval's schema, one item at a time: one question is one case with its
    own history.
    """

    settings_type = LongMemEvalSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.SENTENCES,)
    benchmark: ClassVar[str | None] = "longmemeval"
    settings: LongMemEvalSettings

    def __init__(
        self, path: Path, info: DatasetInfo, settings: DatasetSettings | None = None
    ) -> None:
        super().__init__(path, info, settings)
        # A round ends with the assistant's reply.
        if self.settings.roles == "user":
            self.granularities = tuple(name for name in GRANULARITIES if name != "round")

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return {kind: kind for kind in ABILITIES}

    @property
    def facet_names(self) -> Mapping[str, str]:
        return {"ability": "Ability"}

    def open(self) -> LoadedDataset:
        pinned = check_pin(
            self.info, self.path, self._digest, allow_unpinned=self.settings.allow_unpinned
        )
        notes = excerpt_notes(self.info, self._digest)
        return LoadedDataset(
            info=self.info,
            path=self.path,
            sha256=self._digest,
            pinned=pinned,
            notes=notes,
            excerpt=bool(notes),
        )

    @cached_property
    def _digest(self) -> str:
        return digest_file(self.info, self.path)

    def read(self) -> Iterator[EvalCase]:
        self.odd.clear()
        seen: set[str] = set()
        # One item at a time: M is about ten times the 277 MB of S.
        for index, value in enumerate(stream_list(self.path)):
            fields = Fields.of(self.path, f"record {index}", value)
            item = read_item(fields, index, self.settings.roles)
            (question,) = item.case.questions
            fields.check_new("question_id", question.question_id, seen)
            self._count(item, question)
            yield item.case

        if not seen:
            raise UserError(f"{self.path} holds no question.")

    def _count(self, item: Item, question: EvalQuestion) -> None:
        self.odd.update(
            questions=1,
            without=int(not question.evidence),
            early=int(item.asked_early),
            repeats=int(item.repeats_session),
            silent=item.silent_sessions,
        )

    def odd_notes(self) -> Mapping[str, str]:
        odd, total = self.odd, self.odd["questions"]
        return {
            "without": (
                f"evidence: {odd['without']} of {total} questions flag no turn that is "
                "remembered, and enter no retrieval metric"
            ),
            "early": (
                f"time: {odd['early']} of {total} questions are asked before a session of their "
                "history; it is remembered too"
            ),
            "repeats": (
                f"sessions: {odd['repeats']} histories repeat a session; each is a session of its "
                "own"
            ),
            "silent": (
                f"sessions: {odd['silent']} hold no turn of dataset.roles={self.settings.roles}"
            ),
        }

    def ranking_metrics(
        self,
        question: EvalQuestion,
        ranking: Sequence[Sequence[str]],
        session_of: Mapping[str, str],
    ) -> Mapping[str, float | None]:
        """The official retrieval metrics of a question that they count; they are only defined if
        nothing but user turns is indexed.
        """
        # As in the official code, which leaves out questions without an answer, and those whose
        # evidence no user turn holds.
        if self.settings.roles != "user" or not question.answerable or not question.evidence:
            return {}

        return official_metrics(ranking, question.evidence, session_of)

    @property
    def measure_names(self) -> Collection[str]:
        return ("abstention_accuracy", "knowledge_update_accuracy", PREFIX)

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        abstained = [record for record in records if not record.answerable]
        updated = [record for record in records if record.category == "knowledge-update"]
        return {
            "abstention_accuracy": share_right(abstained),
            "knowledge_update_accuracy": share_right(updated),
            **official_means(records),
        }
