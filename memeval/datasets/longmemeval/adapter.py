"""LongMemEval (Wu et al., ICLR 2025): 500 questions, each with its own chat history."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from memeval.config.schema import PREPARE, at
from memeval.datasets.contract import GRANULARITIES, Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.info import DatasetInfo
from memeval.datasets.io.fields import Fields
from memeval.datasets.io.json_stream import stream_list
from memeval.datasets.locate import check_pin, digest_file, excerpt_notes
from memeval.datasets.longmemeval.metrics import PREFIX, official_means, official_metrics
from memeval.datasets.longmemeval.schema import ABILITIES, read_item
from memeval.records import AnswerKind, CategoryId, EvalCase, EvalQuestion
from memeval.results import Record
from memeval.statistics.means import mean


@dataclass(frozen=True)
class LongMemEvalSettings(DatasetSettings):
    roles: Literal["all", "user"] = at(PREPARE, "all")
    """Whose turns are remembered; `user` is what the official retrieval protocol indexes."""


class LongMemEval(Dataset):
    """Reads a file in LongMemEval's schema, one item at a time: one question is one case with its
    own history.
    """

    settings_type = LongMemEvalSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.SENTENCES,)
    benchmark: ClassVar[str | None] = "longmemeval"
    category_names: Mapping[CategoryId, str] = dict(zip(ABILITIES, ABILITIES, strict=True))
    facet_names: Mapping[str, str] = {"ability": "Ability"}
    irregularity_notes: Mapping[str, str] = {
        "without": (
            "evidence: {without} of {questions} questions flag no remembered turn, and do not "
            "count in retrieval metrics"
        ),
        "early": (
            "time: {early} of {questions} questions are asked before a session of their "
            "history; it is remembered anyway"
        ),
        "repeats": "sessions: {repeats} histories repeat a session; each is a session of its own",
        "silent": "sessions: {silent} hold no turn of dataset.roles={settings.roles}",
    }
    measure_names: Collection[str] = ("abstention_accuracy", "knowledge_update_accuracy", PREFIX)
    settings: LongMemEvalSettings

    def __init__(
        self, path: Path, info: DatasetInfo, settings: DatasetSettings | None = None
    ) -> None:
        super().__init__(path, info, settings)
        # A round ends with the assistant's reply.
        if self.settings.roles == "user":
            self.granularities = tuple(name for name in GRANULARITIES if name != "round")

    def open(self) -> LoadedDataset:
        digest = digest_file(self.info, self.path)
        pinned = check_pin(
            self.info, self.path, digest, allow_unpinned=self.settings.allow_unpinned
        )
        notes = excerpt_notes(self.info, digest)
        return self._loaded(digest, pinned=pinned, notes=notes, excerpt=bool(notes))

    def read(self) -> Iterator[EvalCase]:
        self.irregularities.clear()
        seen: set[str] = set()
        # One item at a time: M is about ten times the 277 MB of S.
        for index, value in enumerate(stream_list(self.path)):
            fields = Fields.of(self.path, f"record {index}", value)
            case, irregularities = read_item(fields, index, self.settings.roles)
            (question,) = case.questions
            fields.check_new("question_id", question.question_id, seen)
            self.irregularities.update(
                questions=1, without=int(not question.evidence), **irregularities
            )
            yield case

    def ranking_metrics(
        self,
        question: EvalQuestion,
        ranking: Sequence[Sequence[str]],
        session_of: Mapping[str, str],
    ) -> Mapping[str, float | None]:
        """The official retrieval metrics of a question, if the official code counts it; they are
        defined only if nothing but user turns is indexed.
        """
        # As in the official code, which leaves out unanswerable questions, and those whose evidence
        # is in no user turn.
        if self.settings.roles != "user" or not question.answerable or not question.evidence:
            return {}

        return official_metrics(ranking, question.evidence, session_of)

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        abstained = [record.score for record in records if not record.answerable]
        updated = [record.score for record in records if record.category == "knowledge-update"]
        return {
            "abstention_accuracy": mean(abstained),
            "knowledge_update_accuracy": mean(updated),
            **official_means(records),
        }
