"""A memory's life: facts that change, must be forgotten or must stay separate."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import ClassVar

from memeval.datasets.contract import Dataset, LoadedDataset
from memeval.datasets.lifecycle.case import LifecycleSettings, make_case
from memeval.datasets.locate import digest_of
from memeval.metrics.lifecycle import AFTER, RATES, SELECTIVE, life_measures
from memeval.records import AnswerKind, CategoryId, EvalCase
from memeval.results import Record

GENERATOR = 3
"""Version of the generated cases: increase it whenever words, traces or the order of draws change.
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


class Lifecycle(Dataset):
    """Generates its cases from a seed. They are judged by code: see `memeval.metrics.lifecycle`."""

    settings_type = LifecycleSettings
    settings: LifecycleSettings
    answers: ClassVar[tuple[AnswerKind, ...]] = (AnswerKind.VALUES,)
    has_tenants = True
    benchmark = "lifecycle"
    category_names: Mapping[CategoryId, str] = dict(zip(KINDS, KINDS, strict=True))
    facet_names: Mapping[str, str] = {
        "form": "adversarial form",
        "asked": "way of asking for a deleted value",
        AFTER: "what happened since the deletion",
    }

    def open(self) -> LoadedDataset:
        names = ("n_cases", "seed", "languages", "channel", "tokens", "later_tokens")
        given = {name: getattr(self.settings, name) for name in names}
        decides = json.dumps({"generator": GENERATOR, **given}, sort_keys=True)
        return self._loaded(digest_of(decides.encode()), pinned=True)

    def read(self) -> Iterator[EvalCase]:
        for number in range(1, self.settings.n_cases + 1):
            yield make_case(number, self.settings)

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        return life_measures(records)

    @property
    def measure_names(self) -> Collection[str]:
        names = [*(metric.name for metric in RATES), SELECTIVE]
        ends: list[str] = []
        for name in names:
            ends += (f"{name}_ci95_low", f"{name}_ci95_high")

        return (*names, *ends)
