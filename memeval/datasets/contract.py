"""The data-set contract: metadata plus a parser that streams cases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from memeval.records import CategoryId, EvalCase


@dataclass(frozen=True)
class DatasetInfo:
    """What the registry knows of a data set."""

    name: str
    title: str
    file: str
    """Path below the data folder, `<data set>/<file>`."""
    url: str | None
    """Where `data fetch` gets it; None for a set that ships."""
    sha256: str | None
    size_bytes: int | None
    licence: str
    citation: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """Expected counts by noun: cases, sessions, turns, questions."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """sha256 of known edited copies, and what they are: recognised, and refused by that name."""


@dataclass(frozen=True)
class LoadedDataset:
    """A data set opened for a run."""

    info: DatasetInfo
    path: Path
    sha256: str
    pinned: bool
    """False where the file is not the registered one and `allow_unpinned` let it in; reports say so."""
    notes: tuple[str, ...] = ()
    """What the adapter repaired or left out, counted, a line each."""


class Dataset(ABC):
    """One adapter. Built from the `dataset` group's settings."""

    info: DatasetInfo
    category_names: Mapping[CategoryId, str]
    """Names of categories in the data set's official naming."""
    scorer: ClassVar[str] = "plain"
    """Which token F1 is official for the set, see `memeval.metrics.answer.answer_metrics`."""
    headline: frozenset[CategoryId]
    """Categories that enter `accuracy`; the rest is reported apart."""

    @abstractmethod
    def open(self) -> LoadedDataset:
        """Finds and checks the file. Raises `UserError` with the way out where it is missing, damaged or of another hash."""

    @abstractmethod
    def cases(self) -> Iterator[EvalCase]:
        """Streams the cases. Raises `UserError` naming file, record and field where a record does not parse."""
