"""Synthetic conversations of any length, with planted facts, updates, contradictions and questions
without an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, ClassVar

from memeval.config.schema import PREPARE, at
from memeval.datasets.contract import Dataset, DatasetInfo, DatasetSettings, LoadedDataset
from memeval.datasets.locate import digest_of, read_file
from memeval.datasets.synthetic.case import Size, make_case
from memeval.datasets.synthetic.file import read_cases, write_cases
from memeval.datasets.synthetic.info import SYNTHETIC
from memeval.errors import UserError
from memeval.records import AnswerKind, CategoryId, EvalCase

GENERATOR = 1
"""Version of what is generated: raised with every change of the words, the templates or the order
of draws.
"""

FEWEST_TOKENS, MOST_TOKENS, MOST_QUESTIONS, MOST_DISTRACTORS = 10, 10_000_000, 200, 0.5


@dataclass(frozen=True)
class SyntheticSettings(DatasetSettings):
    """What is generated."""

    tokens: int = at(PREPARE, 20_000)
    """Size of each haystack, 10 to 10 million, by the offline count of `speaker: text` over its
    turns.
    """
    n_cases: int = at(PREPARE, 4)
    questions_per_case: int = at(PREPARE, 30)
    """At most, 1 to 200: a haystack too small for all of the facts has fewer."""
    turns_per_session: int = at(PREPARE, 20)
    distractors: float = at(PREPARE, 0.1)
    """Share of the chat's turns that say something like a planted fact about other people, or name
    what is asked about; 0 to 0.5.
    """
    seed: int = at(PREPARE, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        _within(name="tokens", value=self.tokens, least=FEWEST_TOKENS, most=MOST_TOKENS)
        _within("n_cases", self.n_cases, 1)
        _within(
            name="questions_per_case", value=self.questions_per_case, least=1, most=MOST_QUESTIONS
        )
        _within("turns_per_session", self.turns_per_session, 1)
        _within(name="distractors", value=self.distractors, least=0, most=MOST_DISTRACTORS)
        changed = [name for name, value in self.generating.items() if value != DEFAULTS[name]]
        if self.path and changed:
            raise UserError(
                f"dataset.{changed[0]} sets what is generated, but dataset.path={self.path} reads "
                "a file.",
                "leave one of them out",
            )

    @property
    def generating(self) -> dict[str, Any]:
        """The settings that decide what is generated."""
        return {name: getattr(self, name) for name in DEFAULTS}


_SHARED = {field.name for field in fields(DatasetSettings)}

DEFAULTS: Mapping[str, Any] = {
    field.name: field.default for field in fields(SyntheticSettings) if field.name not in _SHARED
}
"""The default of each setting that decides what is generated."""


class Synthetic(Dataset):
    """Generates its cases from a seed, or reads a file that `data make synthetic` wrote.

    A case is generated when it is its turn, and depends only on the settings and its number.
    """

    settings_type = SyntheticSettings
    settings: SyntheticSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.VALUES,)
    """Golds are exact, and half of them are dates and figures, for which a judge by shared words
    would be too lenient.
    """

    def __init__(
        self, path: Path, info: DatasetInfo = SYNTHETIC, settings: DatasetSettings | None = None
    ) -> None:
        super().__init__(path, info, settings)
        self._small: dict[str, str] = {}

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return {
            "IE": "information_extraction",
            "MR": "multi_session_reasoning",
            "TR": "temporal_reasoning",
            "KU": "knowledge_update",
            "CR": "contradiction_resolution",
            "ABS": "abstention",
        }

    @property
    def facet_names(self) -> Mapping[str, str]:
        return {"depth": "depth of the evidence"}

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
                self._small[case.case_id] = f"{len(case.questions)} of {chosen.questions_per_case}"

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
        if not self._small:
            return ()

        listed = ", ".join(f"{case_id} {count}" for case_id, count in list(self._small.items())[:5])
        return (f"haystacks too small for all of their questions: {len(self._small)} ({listed})",)


def _within(name: str, value: float, least: float, most: float | None = None) -> None:
    if value < least or (most is not None and value > most):
        bounds = f"at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise UserError(f"dataset.{name} must be {bounds}, not {value:,}")
