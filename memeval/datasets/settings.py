"""The settings of every data set, which select the questions to ask."""

from dataclasses import dataclass
from typing import Literal

from memeval.config.schema import OPTIONAL, PREPARE, RUN, RUNTIME, at
from memeval.config.settings import check_fields
from memeval.errors import UserError

CANARY_SETTINGS = ("canaries", "canary_seed")


@dataclass(frozen=True)
class DatasetSettings:
    """Settings of every data set.

    An adapter's own settings are a subclass; each field declares its stage with `at`, and the range
    of its numbers with `least` and `most`, both included.
    """

    path: str | None = at(RUNTIME)
    """File to read; None looks it up below the data folder."""
    split: Literal["all", "dev", "test"] = at(RUN, "all")
    """Side that is asked (see `memeval.datasets.sampling`): tune on `dev`, report on `test`."""
    categories: tuple[int | str, ...] | None = at(RUN)
    """Ids of the categories that are asked; None asks all."""
    limit_cases: int | None = at(RUN, least=1)
    """Uses the first N cases that have a question to ask."""
    limit_questions: int | None = at(RUN, least=1)
    """Asks the first N questions of each case: a biased cut, which every table flags."""
    sample: int | None = at(RUN, least=1)
    """Asks N questions that are drawn from all cases, stratified by category; figures are weighted
    accordingly.
    """
    sample_seed: int = at(RUN, 0)
    """Another seed draws another sample."""
    question_ids: tuple[str, ...] | None = at(RUN)
    """Asks only these questions; None asks all."""
    only: str | None = at(RUN)
    """`wrong:RUN` asks the questions that a finished run got wrong; the command line fills in the
    `question_ids`.
    """
    allow_unpinned: bool = at(RUNTIME, False)
    canaries: int = at(PREPARE, 0, least=0, most=100, **{OPTIONAL: True})
    """Number of other users' facts, and of injected instructions, to plant into each conversation;
    see `memeval.datasets.canaries`.
    """
    canary_seed: int | None = at(PREPARE, **{OPTIONAL: True})
    """Determines which canaries are planted, and where; None uses the seed of the run."""

    def __post_init__(self) -> None:
        check_fields(self, "dataset")
        if self.question_ids is not None and not self.question_ids:
            raise UserError("dataset.question_ids must name a question", "null asks all")

        # A sample of a selection can't be weighted to represent all questions.
        cuts = {
            "dataset.limit_questions": self.limit_questions,
            # First: it sets question_ids.
            "dataset.only": self.only,
            "dataset.question_ids": self.question_ids,
        }
        for name, value in cuts.items():
            if self.sample is not None and value is not None:
                raise UserError(
                    f"dataset.sample draws from all questions, but {name} excludes some",
                    f"leave {name} or dataset.sample out",
                )
