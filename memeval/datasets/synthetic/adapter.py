"""Synthetic conversations of any length, with planted facts, updates, contradictions and questions
without an answer.
"""

import json
from collections.abc import Iterator, Mapping
from typing import IO, ClassVar

from memeval.datasets.contract import Dataset, LoadedDataset
from memeval.datasets.locate import digest_of, read_file
from memeval.datasets.synthetic.case import SyntheticSettings, make_case
from memeval.datasets.synthetic.file import read_cases, write_cases
from memeval.errors import UserError
from memeval.records import AnswerKind, CategoryId, EvalCase

GENERATOR = 1
"""Version of the generated cases: increase it whenever the words, the templates or the order of
draws change.
"""


class Synthetic(Dataset):
    """Generates its cases from a seed, or reads a file that `data make synthetic` wrote.

    A case is generated only when it is reached, and depends only on the settings and its number.
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
    """Golds are exact, and half of them are dates and figures, for which a judge that compares
    words would be too lenient.
    """

    def open(self) -> LoadedDataset:
        if self.settings.path:
            content = read_file(self.info, self.path)
            for _ in read_cases(content, self.path):
                pass

            return self._loaded(digest_of(content), pinned=False)

        decides = json.dumps({"generator": GENERATOR, **self.settings.generating}, sort_keys=True)
        return self._loaded(digest_of(decides.encode()), pinned=True)

    def read(self) -> Iterator[EvalCase]:
        if self.settings.path:
            yield from read_cases(read_file(self.info, self.path), self.path)
            return

        for number in range(1, self.settings.n_cases + 1):
            case = make_case(number, self.settings)
            if len(case.questions) < self.settings.questions_per_case:
                self.irregularities[case.case_id] = len(case.questions)

            yield case

    def write(self, file: IO[str]) -> tuple[int, int]:
        """Writes the cases as a JSON list in LoCoMo's schema."""
        if self.settings.path:
            raise UserError(
                "data make writes generated data, but dataset.path reads a file.",
                "leave dataset.path out",
            )

        return write_cases(self.cases(), file)

    def notes(self) -> tuple[str, ...]:
        if not self.irregularities:
            return ()

        wanted = self.settings.questions_per_case
        counts = [
            f"{case_id} {count} of {wanted}" for case_id, count in self.irregularities.items()
        ]
        listed = ", ".join(counts[:5])
        return (f"haystacks too small for all of their questions: {len(counts)} ({listed})",)
