"""PersonaMem (Jiang et al., COLM 2025): which response suits a user now, after many sessions in
which their preferences changed.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from memeval.config.schema import ANSWER, PREPARE, at
from memeval.datasets.contract import Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.io.fields import quoted
from memeval.datasets.io.folder import check_files, digest_of_files
from memeval.datasets.locate import read_file
from memeval.datasets.personamem.schema import (
    Message,
    PersonaMemRow,
    read_contexts,
    read_rows,
    read_sessions,
)
from memeval.metrics.positions import POSITION_MEASURES, READ, UNREAD, position_measures
from memeval.records import AnswerKind, CategoryId, EvalCase
from memeval.results import Record
from memeval.statistics.means import mean

QUESTIONS: Mapping[str, int] = {"32k": 589, "128k": 2_727, "1m": 2_674}
"""Number of questions of each size of the published files."""


@dataclass(frozen=True)
class PersonaMemSettings(DatasetSettings):
    size: Literal["32k", "128k", "1m"] = at(PREPARE, "32k")
    """Which pair of files is read, by the approximate length of a conversation in tokens."""
    persona: bool = at(PREPARE, True)
    """Whether the system messages, which describe the user, are remembered."""
    instruction: bool = at(ANSWER, True)
    """Whether a question states its task."""


class PersonaMem(Dataset):
    """Reads a pair of files. The questions asked at one position of a conversation are a case,
    which remembers the conversation up to there.
    """

    settings_type = PersonaMemSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.CHOICES,)
    # Empty, because only the file names its types, and its versions name them differently.
    category_names: Mapping[CategoryId, str] = {}
    facet_names: Mapping[str, str] = {"topic": "Topic"}
    irregularity_notes: Mapping[str, str] = {
        "beyond": (
            "context: {beyond} of {questions} questions are asked after the end of their "
            "conversation; the whole conversation is remembered"
        ),
        "repeating": (
            "choices: {repeating} of {questions} questions list a choice twice; if it is right, "
            "it is right in both positions"
        ),
    }
    measure_names: Collection[str] = ("official/accuracy", *POSITION_MEASURES)
    settings: PersonaMemSettings

    def expected_counts(self) -> Mapping[str, int]:
        if self.info.name != "personamem":
            return self.info.counts

        return {"questions": QUESTIONS[self.settings.size]}

    def open(self) -> LoadedDataset:
        digests, pinned = check_files(self, self._paths)
        return self._loaded(digest_of_files(digests), pinned=pinned)

    @property
    def _paths(self) -> tuple[Path, Path]:
        """The files of questions and of contexts."""
        size = "1M" if self.settings.size == "1m" else self.settings.size
        return self.path / f"questions_{size}.csv", self.path / f"shared_contexts_{size}.jsonl"

    @cached_property
    def _rows(self) -> Sequence[PersonaMemRow]:
        path, _ = self._paths
        content = read_file(self.info, path)
        return read_rows(content, path, instruction=self.settings.instruction)

    @cached_property
    def _contexts(self) -> Mapping[str, tuple[Message, ...]]:
        _, path = self._paths
        return read_contexts(read_file(self.info, path), path)

    def read(self) -> Iterator[EvalCase]:
        self.irregularities.clear()
        # Also by position: each position remembers another part of the conversation, as in the
        # official protocol.
        asked: dict[tuple[str, int], list[PersonaMemRow]] = {}
        for row in self._rows:
            if row.context_id not in self._contexts:
                mistake = f"is {quoted(row.context_id)}, which {self._paths[1].name} does not have"
                raise row.fields.wrong("shared_context_id", mistake)

            asked.setdefault((row.context_id, row.end), []).append(row)

        for number, ((context_id, end), rows) in enumerate(asked.items(), start=1):
            messages = self._contexts[context_id]
            for row in rows:
                choices = row.question.choices
                # A position beyond the end means the whole conversation, as in the official code.
                self.irregularities.update(
                    questions=1,
                    beyond=int(end > len(messages)),
                    repeating=int(len(set(choices)) < len(choices)),
                )

            yield EvalCase(
                case_id=f"c{number}",
                sessions=read_sessions(messages[:end], persona=self.settings.persona),
                questions=tuple(row.question for row in rows),
                speakers=("user", "assistant"),
            )

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        return {"official/accuracy": official_accuracy(records), **position_measures(records)}


def official_accuracy(records: Sequence[Record]) -> float | None:
    """Share of the replies that choose the right option; a reply without a readable choice counts
    as wrong. None without a reply.

    Source: Jiang et al., COLM 2025, inference_standalone_openai.py.
    """
    return mean(record.score or 0.0 for record in records if record.status in (READ, UNREAD))
