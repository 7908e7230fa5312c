"""LoCoMo (Maharana et al., ACL 2024), and other files in its schema: the demonstration set, a
user's own conversations.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from msgspec import Struct

from memeval.config.schema import JUDGE, PREPARE, RUN, at
from memeval.datasets.contract import (
    GRANULARITIES,
    OBSERVATION,
    SUMMARY,
    Dataset,
    DatasetSettings,
    LoadedDataset,
)
from memeval.datasets.grouping import repeated
from memeval.datasets.io.fields import Fields, quoted, read_records
from memeval.datasets.locate import PinnedFile, read_pinned
from memeval.datasets.locomo.metrics import locomo_metrics, official_evidence_recall
from memeval.datasets.locomo.names import ADVERSARIAL, LOCOMO_HEADLINE, category_names
from memeval.datasets.locomo.schema import Correction, read_case, read_corrections, repair_evidence
from memeval.datasets.registry import dataset_info
from memeval.errors import UserError
from memeval.records import AnswerKind, CategoryId, EvalCase, EvalQuestion
from memeval.results import Record
from memeval.statistics.means import mean

OFFICIAL_RECALL = "official/evidence_recall"
AUDIT = "locomo_audit"


@dataclass(frozen=True)
class LocomoSettings(DatasetSettings):
    labels: Literal["original", "exclude", "corrected"] = at(JUDGE, "original")
    """`exclude` drops the questions whose gold the audit found wrong, `corrected` uses the audit's
    gold and evidence instead.
    """
    images: Literal["caption", "none"] = at(PREPARE, "caption")
    """Whether captions of shared images are part of a turn."""
    category_names: str = at(RUN, "official")
    """Source of the category names in tables, see `memeval.datasets.locomo.names`."""
    evidence_recall: Literal["none", "official", "official_session"] = at(RUN, "none")
    """Adds LoCoMo's own recall of evidence to the metrics: of turns, or of sessions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        category_names(self.category_names)


class RawQuestion(Struct, frozen=True):
    """A question, with its fields in the file."""

    question: EvalQuestion
    fields: Fields
    cited: tuple[str, ...]
    """The evidence as in the file."""
    turns: frozenset[str]
    """Ids of the conversation's turns."""

    @property
    def repairs(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The strings of the evidence that are not turn ids, with the ids read from each."""
        for text in self.cited:
            if text not in self.turns:
                yield text, repair_evidence([text], self.turns)


class Locomo(Dataset):
    """Reads a file in LoCoMo's schema.

    A question's id is `{sample_id}/q{index}`, with its index in the file's own list: 12 questions
    occur twice within their conversation, and filters must not renumber the others.
    """

    settings_type = LocomoSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.SENTENCES,)
    granularities: tuple[str, ...] = (*GRANULARITIES, SUMMARY, OBSERVATION)
    headline: frozenset[CategoryId] = LOCOMO_HEADLINE
    settings: LocomoSettings

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return category_names(self.settings.category_names)

    def open(self) -> LoadedDataset:
        notes = tuple(self._notes())
        return self._loaded(self._file.sha256, pinned=self._file.pinned, notes=notes)

    def read(self) -> Iterator[EvalCase]:
        return iter(self._all_cases)

    def answer_metrics(self, answer: str, question: EvalQuestion) -> Mapping[str, float | None]:
        return locomo_metrics(answer, question)

    @property
    def measure_names(self) -> Collection[str]:
        return () if self.settings.evidence_recall == "none" else (OFFICIAL_RECALL,)

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        form = self.settings.evidence_recall
        if form == "none":
            return {}

        whole_sessions = form == "official_session"
        recalls = []
        for record in records:
            if record.retrieved is None:
                continue

            shown = [chunk.turn_ids for chunk in record.retrieved]
            # The strings as in the file: the official code repairs none.
            cited = self._raw_questions[record.question_id].cited
            recalls.append(official_evidence_recall(shown, cited, sessions=whole_sessions))

        return {OFFICIAL_RECALL: mean(recalls)}

    def repairs(self) -> Iterator[str]:
        for raw in self._raw_questions.values():
            for text, read in raw.repairs:
                outcome = f"read as {', '.join(read)}" if read else "dropped"
                yield f"{raw.fields.record}: evidence '{text}' {outcome}"

    def asks(self, question: EvalQuestion) -> bool:
        return super().asks(question) and question.question_id not in self._excluded_ids

    @cached_property
    def _file(self) -> PinnedFile:
        return read_pinned(self.info, self.path, allow_unpinned=self.settings.allow_unpinned)

    @cached_property
    def _samples(self) -> list[Fields]:
        return read_records(self._file.content, self.path, "conversation")

    @cached_property
    def _all_cases(self) -> list[EvalCase]:
        """Every case with all its questions, under the chosen labels."""
        corrections: Mapping[int, Mapping[int, Correction]] = {}
        if self.settings.labels == "corrected":
            corrections = self._corrections

        cases = []
        for index, sample in enumerate(self._samples):
            case = read_case(sample, captions=self.settings.images == "caption")
            cases.append(_correct(case, corrections.get(index, {})))

        # Question ids begin with the case id.
        for case_id, count in repeated(case.case_id for case in cases):
            raise UserError(
                f"{self.path}: sample_id {quoted(case_id)} occurs {count} times; it must be unique."
            )

        return cases

    @cached_property
    def _corrections(self) -> Mapping[int, Mapping[int, Correction]]:
        if self.settings.labels == "original":
            return {}

        # The audit names questions by their position, which an edited copy may shift. At least a
        # dozen edited copies circulate.
        if self._file.sha256 != dataset_info("locomo").sha256:
            raise UserError(
                f"dataset.labels={self.settings.labels}: the audit is about the registered "
                f"locomo10.json, but {self.path} is a different file.",
                "use dataset.labels=original",
            )

        asked = [sample.items("qa") for sample in self._samples]
        return read_corrections(self._audit.content, self._audit_path, asked)

    @property
    def _audit_path(self) -> Path:
        return self.path.with_name(Path(dataset_info(AUDIT).file).name)

    @cached_property
    def _audit(self) -> PinnedFile:
        return read_pinned(
            dataset_info(AUDIT), self._audit_path, allow_unpinned=self.settings.allow_unpinned
        )

    @cached_property
    def _excluded_ids(self) -> frozenset[str]:
        if self.settings.labels != "exclude":
            return frozenset()

        excluded = set()
        for index, case in enumerate(self._all_cases):
            for position, correction in self._corrections.get(index, {}).items():
                # Other corrections only concern wrong citations: their questions stay.
                if correction.corrupts_score:
                    excluded.add(case.questions[position].question_id)

        return frozenset(excluded)

    def _notes(self) -> Iterator[str]:
        """Repairs and omissions, over the whole file."""
        repaired = Counter[bool]()
        total = without = adversarial = ignored = 0
        for raw in self._raw_questions.values():
            total += len(raw.cited)
            without += not raw.question.evidence
            for _, read in raw.repairs:
                repaired[bool(read)] += 1

            if raw.question.category == ADVERSARIAL:
                adversarial += 1
                # 2 of 446, both in conv-26; all have an `adversarial_answer`, which the question
                # falsely suggests.
                ignored += raw.fields.values.get("answer") is not None

        if repaired:
            yield (
                f"evidence: {repaired.total()} of {total} strings are not turn ids: "
                f"{repaired[True]} repaired, {repaired[False]} dropped"
            )

        if without:
            yield f"evidence: {without} of {len(self._raw_questions)} questions have no evidence"
        if ignored:
            yield (
                f"category 5: {ignored} of {adversarial} questions carry an answer, which is "
                "ignored: the right answer is a refusal"
            )

        yield from self._label_notes()

    def _label_notes(self) -> Iterator[str]:
        if self.settings.labels != "original" and not self._audit.pinned:
            yield "labels: the audit file is not the registered one"
        if self.settings.labels == "exclude":
            yield (
                f"labels: {len(self._excluded_ids)} questions with a wrong gold according to the "
                "audit are left out"
            )
        if self.settings.labels == "corrected":
            golds = changed = 0
            for corrections in self._corrections.values():
                changed += len(corrections)
                golds += sum(correction.corrupts_score for correction in corrections.values())

            yield (
                f"labels: gold of {golds} and evidence of {changed} questions taken from the audit"
            )

    @cached_property
    def _raw_questions(self) -> Mapping[str, RawQuestion]:
        questions = {}
        for case, sample in zip(self._all_cases, self._samples, strict=True):
            asked = sample.objects("qa", f"{case.case_id} qa[{{}}]")
            turns = case.turn_ids
            for question, fields in zip(case.questions, asked, strict=True):
                cited = tuple(fields.texts("evidence"))
                questions[question.question_id] = RawQuestion(question, fields, cited, turns)

        return questions


def _correct(case: EvalCase, corrections: Mapping[int, Correction]) -> EvalCase:
    """The case with the audit's gold and evidence."""
    questions = list(case.questions)
    for position, correction in corrections.items():
        evidence = repair_evidence(correction.evidence, case.turn_ids)
        question = replace(questions[position], evidence=evidence)
        # In 57 of the 156 corrections only the evidence is wrong.
        if correction.corrupts_score:
            question = replace(question, gold=(correction.answer,))

        questions[position] = question

    return replace(case, questions=tuple(questions))
