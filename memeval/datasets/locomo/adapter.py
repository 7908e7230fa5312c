"""LoCoMo (Maharana et al., ACL 2024), and other files in its schema: the demonstration set, a
user's own conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from memeval.config.schema import JUDGE, PREPARE, RUN, at
from memeval.datasets.contract import (
    GRANULARITIES,
    OBSERVATION,
    SUMMARY,
    Dataset,
    DatasetInfo,
    DatasetSettings,
    LoadedDataset,
)
from memeval.datasets.io.fields import Fields, kind_of, parse_json, quoted
from memeval.datasets.locate import check_pin, digest_of, read_file
from memeval.datasets.locomo.audit import Correction, read_corrections
from memeval.datasets.locomo.info import LOCOMO, LOCOMO_AUDIT
from memeval.datasets.locomo.metrics import locomo_metrics, official_evidence_recall
from memeval.datasets.locomo.names import ADVERSARIAL, LOCOMO_HEADLINE, category_names
from memeval.datasets.locomo.schema import read_case, repair_evidence
from memeval.errors import UserError
from memeval.records import AnswerKind, CategoryId, EvalCase, EvalQuestion
from memeval.results import Record
from memeval.statistics.means import mean

OFFICIAL_RECALL = "official/evidence_recall"


@dataclass(frozen=True)
class LocomoSettings(DatasetSettings):
    """Settings of the data sets in LoCoMo's schema."""

    labels: Literal["original", "exclude", "corrected"] = at(JUDGE, "original")
    """`exclude` drops the questions whose gold the audit found wrong, `corrected` takes the audit's
    gold and evidence instead.
    """
    images: Literal["caption", "none"] = at(PREPARE, "caption")
    """Whether captions of shared images are part of a turn."""
    category_names: str = at(RUN, "official")
    """Whose names the tables use, see `memeval.datasets.locomo.names`."""
    evidence_recall: Literal["none", "official", "official_session"] = at(RUN, "none")
    """Adds LoCoMo's own recall of evidence to the metrics: of turns, or of sessions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        category_names(self.category_names)


class Locomo(Dataset):
    """Reads a file in LoCoMo's schema.

    A question's id is `{sample_id}/q{index}`, its position in the file's own list: 12 questions
    occur twice within their conversation, and filters must not renumber the others.
    """

    settings_type = LocomoSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.SENTENCES,)
    granularities: tuple[str, ...] = (*GRANULARITIES, SUMMARY, OBSERVATION)
    settings: LocomoSettings

    def __init__(
        self, path: Path, info: DatasetInfo = LOCOMO, settings: DatasetSettings | None = None
    ) -> None:
        super().__init__(path, info, settings)

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return category_names(self.settings.category_names)

    @property
    def headline(self) -> frozenset[CategoryId]:
        return LOCOMO_HEADLINE

    def open(self) -> LoadedDataset:
        digest, pinned, _ = self._content
        return LoadedDataset(
            info=self.info, path=self.path, sha256=digest, pinned=pinned, notes=tuple(self._notes())
        )

    def read(self) -> Iterator[EvalCase]:
        return iter(self._whole)

    def answer_metrics(self, answer: str, question: EvalQuestion) -> Mapping[str, float | None]:
        return locomo_metrics(answer, question)

    @property
    def measure_names(self) -> Collection[str]:
        return () if self.settings.evidence_recall == "none" else (OFFICIAL_RECALL,)

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        form = self.settings.evidence_recall
        if form == "none":
            return {}

        cited = self._cited
        whole_sessions = form == "official_session"
        recalls = []
        for record in records:
            if record.retrieved is None:
                continue

            shown = [chunk.turn_ids for chunk in record.retrieved]
            gold = cited[record.question_id]
            # By the strings as the file writes them: the official code repairs none.
            recalls.append(official_evidence_recall(shown, gold, sessions=whole_sessions))

        return {OFFICIAL_RECALL: mean(recalls)}

    def repairs(self) -> Iterator[str]:
        said = {case.case_id: _turn_ids(case) for case in self._whole}
        for case, qa in self._raw_questions:
            turns = said[case.case_id]
            for text in (text for text in qa.texts("evidence") if text not in turns):
                read = repair_evidence([text], turns)
                yield f"{qa.record}: evidence '{text}' " + (
                    f"read as {', '.join(read)}" if read else "dropped"
                )

    def asks(self, question: EvalQuestion) -> bool:
        return super().asks(question) and question.question_id not in self._excluded

    @cached_property
    def _content(self) -> tuple[str, bool, bytes]:
        content = read_file(self.info, self.path)
        digest = digest_of(content)
        return (
            digest,
            check_pin(self.info, self.path, digest, allow_unpinned=self.settings.allow_unpinned),
            content,
        )

    @cached_property
    def _samples(self) -> list[Fields]:
        _, _, content = self._content
        samples = parse_json(content, self.path)
        if not isinstance(samples, list):
            raise UserError(f"{self.path} holds {kind_of(samples)}, not a list of conversations.")
        if not samples:
            raise UserError(f"{self.path} holds no conversation.")

        return [
            Fields.of(self.path, f"record {index}", sample) for index, sample in enumerate(samples)
        ]

    @cached_property
    def _whole(self) -> list[EvalCase]:
        """Every case with all its questions, under the chosen labels."""
        corrections = self._corrections if self.settings.labels == "corrected" else {}
        cases = [
            read_case(sample, captions=self.settings.images == "caption")
            for sample in self._samples
        ]
        # The ids of questions begin with it.
        for case_id, count in Counter(case.case_id for case in cases).items():
            if count > 1:
                raise UserError(
                    f"{self.path}: sample_id {quoted(case_id)} occurs {count} times; it must be "
                    "unique."
                )

        return [_correct(case, corrections.get(index, {})) for index, case in enumerate(cases)]

    @cached_property
    def _corrections(self) -> Mapping[int, Mapping[int, Correction]]:
        if self.settings.labels == "original":
            return {}

        digest, _, _ = self._content
        # The audit names questions by their position, which an edited copy may shift. At least a
        # dozen edited copies circulate.
        if digest != LOCOMO.sha256:
            raise UserError(
                f"dataset.labels={self.settings.labels}: the audit goes by the registered "
                f"locomo10.json, and {self.path} is another file.",
                "use dataset.labels=original",
            )

        _, content = self._audit
        return read_corrections(
            content, self._audit_path, [sample.items("qa") for sample in self._samples]
        )

    @property
    def _audit_path(self) -> Path:
        return self.path.with_name(Path(LOCOMO_AUDIT.file).name)

    @cached_property
    def _audit(self) -> tuple[bool, bytes]:
        """Whether the audit's file is the registered one, and its content."""
        content = read_file(LOCOMO_AUDIT, self._audit_path)
        pinned = check_pin(
            LOCOMO_AUDIT,
            self._audit_path,
            digest_of(content),
            allow_unpinned=self.settings.allow_unpinned,
        )
        return pinned, content

    @cached_property
    def _excluded(self) -> frozenset[str]:
        if self.settings.labels != "exclude":
            return frozenset()

        return frozenset(
            case.questions[position].question_id
            for index, case in enumerate(self._whole)
            for position, correction in self._corrections.get(index, {}).items()
            # The other corrections only cite wrong turns: their questions stay.
            if correction.corrupts_score
        )

    def _notes(self) -> Iterator[str]:
        """What was repaired or left out, over the whole file."""
        said = {case.case_id: _turn_ids(case) for case in self._whole}
        cited = [(said[case.case_id], qa.texts("evidence")) for case, qa in self._raw_questions]
        odd = [(turns, text) for turns, strings in cited for text in strings if text not in turns]
        repaired = sum(bool(repair_evidence([text], turns)) for turns, text in odd)
        if odd:
            yield (
                f"evidence: {len(odd)} of {sum(len(strings) for _, strings in cited)} strings are "
                "not turn ids: "
                f"{repaired} repaired, {len(odd) - repaired} dropped"
            )

        without = sum(not question.evidence for case in self._whole for question in case.questions)
        if without:
            yield f"evidence: {without} of {len(cited)} questions name no evidence"

        adversarial = [qa for _, qa in self._raw_questions if qa.values["category"] == ADVERSARIAL]
        # 2 of 446, both in conv-26; all have an `adversarial_answer`, which is what the question
        # pretends.
        ignored = sum("answer" in qa.values for qa in adversarial)
        if ignored:
            yield (
                f"category 5: {ignored} of {len(adversarial)} questions carry an answer, which is "
                "ignored: the right answer is a refusal"
            )

        if self.settings.labels != "original" and not self._audit[0]:
            yield "labels: the audit file is not the registered one"

        if self.settings.labels == "exclude":
            yield (
                f"labels: {len(self._excluded)} questions left out whose gold the audit found wrong"
            )

        if self.settings.labels == "corrected":
            changes = [change for case in self._corrections.values() for change in case.values()]
            yield (
                f"labels: gold of {sum(c.corrupts_score for c in changes)} and evidence of "
                f"{len(changes)} questions taken from the audit"
            )

    @cached_property
    def _cited(self) -> Mapping[str, tuple[str, ...]]:
        """The evidence of each question as the file writes it, by the question's id."""
        cited: dict[str, tuple[str, ...]] = {}
        for case, sample in zip(self._whole, self._samples, strict=True):
            questions = sample.objects("qa", f"{case.case_id} qa[{{}}]")
            for question, qa in zip(case.questions, questions, strict=True):
                cited[question.question_id] = tuple(qa.texts("evidence"))

        return cited

    @cached_property
    def _raw_questions(self) -> list[tuple[EvalCase, Fields]]:
        """Each question as the file has it, with its case."""
        pairs = zip(self._whole, self._samples, strict=True)
        return [
            (case, qa)
            for case, sample in pairs
            for qa in sample.objects("qa", f"{case.case_id} qa[{{}}]")
        ]


def _correct(case: EvalCase, corrections: Mapping[int, Correction]) -> EvalCase:
    """The case with the audit's gold and evidence."""
    turns = _turn_ids(case)
    questions = list(case.questions)
    for position, correction in corrections.items():
        question = questions[position]
        questions[position] = replace(
            question,
            gold=(correction.answer,) if correction.corrupts_score else question.gold,
            # In 57 of the 156 corrections only the evidence is wrong.
            evidence=repair_evidence(list(correction.evidence), turns),
        )

    return replace(case, questions=tuple(questions))


def _turn_ids(case: EvalCase) -> frozenset[str]:
    return frozenset(turn.turn_id for session in case.sessions for turn in session.turns)
