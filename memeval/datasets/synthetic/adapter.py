"""Synthetic conversations of any length, with planted facts, updates, contradictions and questions
without an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import IO, Any, ClassVar

from memeval.config.schema import PREPARE, at
from memeval.datasets.contract import Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.locate import digest_of, read_file
from memeval.datasets.synthetic.case import Size, make_case
from memeval.datasets.synthetic.file import read_cases, write_cases
from memeval.errors import UserError
from memeval.records import AnswerKind, CategoryId, EvalCase

GENERATOR = 1
"""Version of what is generated: raise it with every change of the words, the templates or the order
of draws.
"""


@dataclass(frozen=True)
class SyntheticSettings(DatasetSettings):
    """Settings of the generator."""

    tokens: int = at(PREPARE, 20_000, least=10, most=10_000_000)
    """Size of each haystack, 10 to 10 million, by the offline count of `speaker: text` over its
    turns.
    """
    n_cases: int = at(PREPARE, 4, least=1)
    questions_per_case: int = at(PREPARE, 30, least=1, most=200)
    """At most, 1 to 200: a haystack too small for all of the facts has fewer."""
    turns_per_session: int = at(PREPARE, 20, least=1)
    distractors: float = at(PREPARE, 0.1, least=0, most=0.5)
    """Share of the chat's turns that say something like a planted fact about other people, or
    mention a subject of the questions; 0 to 0.5.
    """
    seed: int = at(PREPARE, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        changed = [name for name, value in self.generating.items() if value != DEFAULTS[name]]
        if self.path and changed:
            raise UserError(
                f"dataset.{changed[0]} sets what is generated, but dataset.path={self.path} reads "
                "a file.",
                "leave one of them out",
            )

    @property
    def generating(self) -> dict[str, Any]:
        """The settings that affect the generation."""
        return {name: getattr(self, name) for name in DEFAULTS}


_SHARED = {field.name for field in fields(DatasetSettings)}

DEFAULTS: Mapping[str, Any] = {
    field.name: field.default for field in fields(SyntheticSettings) if field.name not in _SHARED
}
"""The default of each setting that affects the generation."""


class Synthetic(Dataset):
    """Generates its cases from a seed, or reads a file that `data make synthetic` wrote.

    A case is generated when it is its turn, and depends only on the settings and its number.
    """

    settings_type = SyntheticSettings
    category_names: Mapping[CategoryId, str] = {
        "IE": "information_extraction",
        "MR": "multi_session_reasoning",
        "TR": "temporal_reasoning",
        "KU": "knowledge_update",
        "CR": "contradiction_resolution",
        "ABS": "abstention",
    }
    facet_names: Mapping[str, str] = {"depth": "depth of the evidence"}
    settings: SyntheticSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.VALUES,)
    """Golds are exact, and half of them are dates and figures, for which a judge by shared words
    would be too lenient.
    """

    def open(self) -> LoadedDataset:
        if self.settings.path:
            content = read_file(self.info, self.path)
            for _ in read_cases(content, self.path):
                pass

            return LoadedDataset(
                info=self.info, path=self.path, sha256=digest_of(content), pinned=False
            )

        decides = json.dumps({"generator": GENERATOR, **self.settings.generating}, sort_keys=True)
        return LoadedDataset(
            info=self.info, path=self.path, sha256=digest_of(decides.encode()), pinned=True
        )

    def read(self) -> Iterator[EvalCase]:
        if self.settings.path:
            yield from read_cases(read_file(self.info, self.path), self.path)
            return

        chosen = self.settings
        size = Size(
            tokens=chosen.tokens,
            questions=chosen.questions_per_case,
            turns_per_session=chosen.turns_per_session,
            distractors=chosen.distractors,
        )
        for number in range(1, chosen.n_cases + 1):
            case = make_case(number, chosen.seed, size)
            if len(case.questions) < chosen.questions_per_case:
                self.odd[case.case_id] = len(case.questions)

            yield case

    def write(self, file: IO[str]) -> tuple[int, int]:
        """As a JSON list in LoCoMo's schema."""
        if self.settings.path:
            raise UserError(
                "data make writes generated data, but dataset.path reads a file.",
                "leave dataset.path out",
            )

        return write_cases(self.cases(), file)

    def notes(self) -> tuple[str, ...]:
        if not self.odd:
            return ()

        wanted = self.settings.questions_per_case
        counts = [f"{case_id} {count} of {wanted}" for case_id, count in self.odd.items()]
        listed = ", ".join(counts[:5])
        return (f"haystacks too small for all of their questions: {len(counts)} ({listed})",)
