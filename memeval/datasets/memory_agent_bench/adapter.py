"""MemoryAgentBench (Hu et al., 2025): a long context is read in pieces, then many questions are
asked about it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, ClassVar, Literal

from memeval.config.schema import ANSWER, PREPARE, RUN, at
from memeval.datasets.contract import Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.fetch import file_digest
from memeval.datasets.io.parquet import parquet_rows
from memeval.datasets.io.parts import part_info
from memeval.datasets.locate import check_pin, missing
from memeval.datasets.memory_agent_bench.metrics import JUDGED, RULES, SUBSTRING, SUMMARY, metric_of
from memeval.datasets.memory_agent_bench.schema import TITLES, Row, read_case, read_titles, rows
from memeval.errors import UserError, unknown
from memeval.records import CategoryId, EvalCase
from memeval.results import Record
from memeval.statistics.means import mean

CONFLICTS = (
    "conflict_resolution_accuracy",
    "conflict_resolution_accuracy_sh",
    "conflict_resolution_accuracy_mh",
)
"""Over all questions of conflict resolution, and over those that need one fact and several."""

FILES = {
    "conflict_resolution": "Conflict_Resolution.json",
    "accurate_retrieval": "Accurate_Retrieval.json",
    "test_time_learning": "Test_Time_Learning.json",
    "long_range_understanding": "Long_Range_Understanding.json",
}
"""File of each split, below the data set's folder."""


@dataclass(frozen=True)
class MemoryAgentBenchSettings(DatasetSettings):
    """Settings of the data sets in MemoryAgentBench's schema."""

    split: Literal[
        "conflict_resolution",
        "accurate_retrieval",
        "test_time_learning",
        "long_range_understanding",
    ] = at(PREPARE, "conflict_resolution")  # type: ignore[assignment]
    """Which file of the folder is read; a `path` that is a file is read for either split."""
    subset: str | None = at(RUN)
    """A sub-data set, or the beginning of the names of several; None asks all."""
    # The two sizes of the protocol.
    chunk_tokens: Literal[512, 4096] = at(PREPARE, 512)
    """Tokens that a piece of the context holds at most."""
    instruction: bool = at(ANSWER, True)
    """Whether a question says what its task asks for."""


class MemoryAgentBench(Dataset):
    """Reads a split row by row: one row is one case, and holds one sub-data set."""

    settings_type = MemoryAgentBenchSettings
    judges: ClassVar[tuple[str, ...]] = (
        "memory_agent_bench",
        "keyword",
        "exact_match",
        "contains",
        "token_f1",
        "llm",
        "mem0",
    )
    granularities: tuple[str, ...] = ("turn", "chunk")
    settings: MemoryAgentBenchSettings

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return {}

    @property
    def facet_names(self) -> Mapping[str, str]:
        return {
            "split": "Split",
            "hops": "Hops",
            "size": "Size of the context",
            "question_type": "Question type",
        }

    @property
    def _file(self) -> Path:
        return self.path if self.path.is_file() else self.path / FILES[self.settings.split]

    def open(self) -> LoadedDataset:
        """Reads the outline of all rows: mistakes in it are reported before a run starts."""
        try:
            digest = file_digest(self._file)
        except FileNotFoundError:
            raise missing(self.info, self._file) from None
        except OSError as error:
            raise UserError(
                f"data set '{self.info.name}': {self._file} can't be read: {error.strerror}."
            ) from error

        registered = next(
            (
                part_info(self.info, file)
                for file in self.info.files
                if file.name == self._file.name
            ),
            self.info,
        )
        pinned = check_pin(
            registered, self._file, digest, allow_unpinned=self.settings.allow_unpinned
        )
        self._check_choice()
        return LoadedDataset(info=self.info, path=self._file, sha256=digest, pinned=pinned)

    def _check_choice(self) -> None:
        """Raises `UserError` for sub-data sets that the file does not have, and where no questions
        are left.
        """
        sources, categories = self._outline.sources, self.settings.categories
        if not any(map(self._chosen, sources)):
            raise unknown("value of dataset.subset", str(self.settings.subset), sources)

        for category in categories or ():
            if category not in sources:
                raise unknown("value of dataset.categories", str(category), sources)

        if categories is not None and not any(
            self._chosen(source) and source in categories for source in sources
        ):
            raise UserError(
                f"dataset.subset={self.settings.subset} is not one of "
                f"dataset.categories={list(categories)}: no questions are left"
            )

    def write_from(self, file: IO[str], sources: Sequence[Path]) -> tuple[str, ...]:
        """Writes a split as a JSON list, from its Parquet files in their order."""
        rows = [row for source in sources for row in parquet_rows(source)]
        # Indented by two, as the registered file is: its sha256 depends on it.
        json.dump(rows, file, ensure_ascii=False, indent=2)
        return (f"{len(rows):,} rows of {len(sources)} files",)

    def judged_by_model(self, judge: str) -> Sequence[str]:
        """The set's own judge asks a model for some sub-data sets only."""
        categories = self.settings.categories
        asked = set(self._outline.sources if categories is None else categories)
        judged = (
            source
            for source in self._outline.sources
            if metric_of(source) in JUDGED and self._chosen(source)
        )
        return tuple(
            source for source in judged if judge == "memory_agent_bench" and source in asked
        )

    @cached_property
    def _outline(self) -> Outline:
        if not self._file.is_file():
            raise missing(self.info, self._file)

        sources, ids = dict[str, None](), Counter[str]()
        seen = dict[str, int]()
        for row in rows(self._file):
            sources[row.source] = None
            ids.update(name for name in row.ids if name)
            if (first := seen.setdefault(row.content_sha256, row.index)) != row.index:
                raise UserError(
                    f"{self._file}: record {row.index} has the context and the questions of "
                    f"record {first}."
                )

        if not sources:
            raise UserError(f"{self._file} holds no row.")

        return Outline(tuple(sources), frozenset(name for name, count in ids.items() if count == 1))

    def _chosen(self, source: str) -> bool:
        """Whether a sub-data set is asked: `subset` is its name, or its beginning up to a `_`, or
        up to the `*` that ends it.
        """
        subset = self.settings.subset
        if subset is None or source == subset:
            return True

        return source.startswith(subset[:-1] if subset.endswith("*") else f"{subset}_")

    def read(self) -> Iterator[EvalCase]:
        titles = read_titles(self._file.with_name(TITLES))
        split = next(
            (name for name, file in FILES.items() if file == self._file.name), self._file.stem
        )
        for row in rows(self._file):
            if self._chosen(row.source):
                yield read_case(
                    row,
                    self._question_ids(row),
                    split,
                    chunk_tokens=self.settings.chunk_tokens,
                    instruction=self.settings.instruction,
                    titles=titles,
                )

    def _question_ids(self, row: Row) -> tuple[str, ...]:
        """The file's own ids, where nothing else in it has the same; else row and position."""
        unique = self._outline.unique_ids
        return tuple(
            name if name in unique and name else f"r{row.index}/q{place}"
            for place, name in enumerate(row.ids)
        )

    @property
    def measure_names(self) -> Collection[str]:
        return (*RULES, *CONFLICTS, "summary_score")

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        """The protocol's metrics, under any judge; only of the sub-data sets that were asked."""
        by_metric: dict[str | None, list[Record]] = {}
        for record in records:
            by_metric.setdefault(metric_of(str(record.category)), []).append(record)

        values = {
            metric: _scored(metric, by_metric[metric]) for metric in RULES if metric in by_metric
        }

        # By name, because the split is the file's name, which a user's own file need not have.
        conflicts = [
            record for record in records if str(record.category).startswith("factconsolidation")
        ]
        if conflicts:
            values["conflict_resolution_accuracy"] = _scored(SUBSTRING, conflicts)
            for hops in sorted({record.facets.get("hops", "") for record in conflicts} - {""}):
                part = [record for record in conflicts if record.facets.get("hops") == hops]
                values[f"conflict_resolution_accuracy_{hops}"] = _scored(SUBSTRING, part)

        if SUMMARY in by_metric:
            values["summary_score"] = mean(
                record.verdict.score if record.verdict else None for record in by_metric[SUMMARY]
            )

        return values


@dataclass(frozen=True)
class Outline:
    """What a first pass over a file finds."""

    sources: tuple[str, ...]
    """Its sub-data sets, in order."""
    unique_ids: frozenset[str]
    """Ids of questions that occur once."""


def _scored(metric: str, records: Sequence[Record]) -> float | None:
    """Mean of a metric over the answers that there are."""
    return mean(
        RULES[metric](record.hypothesis, record.gold)
        for record in records
        if record.hypothesis is not None
    )
