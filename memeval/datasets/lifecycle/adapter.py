"""A memory's life: facts that change, must be forgotten or must stay separate."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

from memeval.config.schema import PREPARE, at
from memeval.datasets.contract import Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.invented import WORDS
from memeval.datasets.lifecycle.case import Plan, make_case
from memeval.datasets.locate import digest_of
from memeval.errors import UserError
from memeval.metrics.lifecycle import AFTER, RATES, SELECTIVE, life_measures
from memeval.records import AnswerKind, CategoryId, EvalCase
from memeval.results import Record

GENERATOR = 3
"""Version of what is generated: raise it with every change of words, traces or the order of draws.
"""

KINDS = (
    "current",
    "updated",
    "history",
    "corrected",
    "deleted",
    "neighbour",
    "expired",
    "tenant",
    "injected",
    "returned",
)


@dataclass(frozen=True)
class LifecycleSettings(DatasetSettings):
    """Settings of the generator."""

    n_cases: int = at(PREPARE, 24, least=1)
    languages: tuple[str, ...] = at(PREPARE, ("en", "de", "zh"))
    """Languages that the cases take turns in."""
    channel: Literal["conversation", "operation", "both"] = at(PREPARE, "both")
    """How a wish to forget or to correct is uttered: in the conversation, as an operation on the
    memory, or both.
    """
    tokens: int = at(PREPARE, 300, least=0, most=1_000_000)
    """Tokens of filler in each session."""
    later_tokens: int = at(PREPARE, 50_000, least=0, most=10_000_000)
    """Tokens of filler after which a deleted value is looked for once more."""
    seed: int = at(PREPARE, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.path:
            raise UserError("dataset.path: lifecycle is generated, and reads no file")
        if self.canaries:
            raise UserError(
                "dataset.canaries: lifecycle already has values of other users and stored orders",
                "leave dataset.canaries out",
            )
        if not self.languages or not set(self.languages) <= set(WORDS.languages):
            raise UserError(
                f"dataset.languages={list(self.languages)}: must be one or more of "
                f"{list(WORDS.languages)}"
            )

    @property
    def plan(self) -> Plan:
        """Settings that the generator needs."""
        return Plan(
            seed=self.seed,
            languages=self.languages,
            channel=self.channel,
            tokens=self.tokens,
            later_tokens=self.later_tokens,
        )


class Lifecycle(Dataset):
    """Generates its cases from a seed. They are judged by code: see `memeval.metrics.lifecycle`."""

    settings_type = LifecycleSettings
    settings: LifecycleSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.VALUES,)
    has_tenants = True
    benchmark = "lifecycle"

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return {kind: kind for kind in KINDS}

    @property
    def facet_names(self) -> Mapping[str, str]:
        return {
            "form": "adversarial form",
            "asked": "way of asking for a deleted value",
            AFTER: "what happened since the deletion",
        }

    def open(self) -> LoadedDataset:
        known = {"generator": GENERATOR, "n_cases": self.settings.n_cases}
        decides = json.dumps(known | asdict(self.settings.plan), sort_keys=True)
        return LoadedDataset(
            info=self.info, path=self.path, sha256=digest_of(decides.encode()), pinned=True
        )

    def read(self) -> Iterator[EvalCase]:
        for number in range(1, self.settings.n_cases + 1):
            yield make_case(number, self.settings.plan)

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        return life_measures(records)

    @property
    def measure_names(self) -> Collection[str]:
        names = [*(metric.name for metric in RATES), SELECTIVE]
        ends = [f"{name}_ci95_{end}" for name in names for end in ("low", "high")]
        return (*names, *ends)
