"""MemoryAgentBench (Hu et al., 2025): a long context is read in pieces, then many questions are
asked about it.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, ClassVar, Literal

from msgspec import Struct

from memeval.config.schema import ANSWER, PREPARE, RUN, at
from memeval.datasets.contract import Dataset, DatasetSettings, LoadedDataset
from memeval.datasets.io.folder import check_files
from memeval.datasets.locate import digest_of, missing
from memeval.datasets.memory_agent_bench.metrics import (
    AR,
    COMPETENCES,
    CR,
    JUDGED,
    LRU,
    RULES,
    SUBSTRING,
    SUMMARY,
    TTL,
    metric_of,
    split_of,
)
from memeval.datasets.memory_agent_bench.schema import (
    TITLES,
    BenchRow,
    read_case,
    read_titles,
    rows,
)
from memeval.errors import UserError, unknown
from memeval.records import CategoryId, EvalCase
from memeval.results import Record
from memeval.statistics.means import mean
from memeval.text.shown import counted, one_line

CONFLICTS = (
    "conflict_resolution_accuracy",
    "conflict_resolution_accuracy_sh",
    "conflict_resolution_accuracy_mh",
)
"""Over all conflict resolution questions, those that need one fact, and those that need several."""

FILES = {
    CR: "Conflict_Resolution.json",
    AR: "Accurate_Retrieval.json",
    TTL: "Test_Time_Learning.json",
    LRU: "Long_Range_Understanding.json",
}
"""File of each split, below the data set's folder."""


@dataclass(frozen=True)
class MemoryAgentBenchSettings(DatasetSettings):
    split: Literal[
        "conflict_resolution",
        "accurate_retrieval",
        "test_time_learning",
        "long_range_understanding",
        "all",
    ] = at(PREPARE, "conflict_resolution")  # type: ignore[assignment]
    """The split that is asked. `all` reads the file of each split that the folder has. If `path` is
    a file, only its rows of the split are read.
    """
    subset: str | None = at(RUN)
    """A sub-data set, or a prefix of the names of several; None asks all."""
    # The two sizes of the protocol.
    chunk_tokens: Literal[512, 4096] = at(PREPARE, 512)
    """Maximum number of tokens of a piece of the context."""
    instruction: bool = at(ANSWER, True)
    """Whether a question states its task."""
    category_names: Literal["data_sets", "competences"] = at(RUN, "data_sets")
    """Columns of the tables: sub-data sets, or the four splits as AR, TTL, LRU, CR."""


class Outline(Struct, frozen=True):
    """Findings of a first pass over the files."""

    sources: tuple[str, ...]
    """The sub-data sets of the split, in order."""
    all_sources: tuple[str, ...]
    """The sub-data sets of all splits in the files that are read."""
    unique_ids: frozenset[str]
    """Ids of questions that occur once."""


class MemoryAgentBench(Dataset):
    """Reads its files row by row: one row is one case of one sub-data set."""

    settings_type = MemoryAgentBenchSettings
    benchmark: ClassVar[str | None] = "memory_agent_bench"
    granularities: tuple[str, ...] = ("turn", "chunk")
    facet_names: Mapping[str, str] = {
        "split": "Split",
        "hops": "Hops",
        "size": "Size of the context",
        "question_type": "Question type",
    }
    measure_names: Collection[str] = (*RULES, *CONFLICTS, "summary_score")
    settings: MemoryAgentBenchSettings

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        if self.settings.category_names == "data_sets":
            return {}

        # All sub-data sets of the files, in any split: `categories` may name those of another.
        return {source: COMPETENCES[str(split_of(source))] for source in self._outline.all_sources}

    @cached_property
    def _files(self) -> Sequence[Path]:
        """The files that are read, at least one; `split=all` reads those that the folder has.

        Raises `UserError` if a file is missing.
        """
        if self.path.is_file():
            return (self.path,)

        paths = [self.path / name for name in FILES.values()]
        if self.settings.split != "all":
            paths = [self.path / FILES[self.settings.split]]

        files = list(filter(Path.is_file, paths))
        if not files:
            raise missing(self.info, paths[0])

        return files

    def open(self) -> LoadedDataset:
        """Reads the outline of all rows: mistakes in it are reported before a run starts."""
        first, *others = self._files
        digests, pinned = check_files(self, self._files)
        self._check_choice()
        path, digest = first, "\n".join(digests.values())
        if others:
            path, digest = self.path, digest_of(digest.encode())

        notes = []
        if self.settings.split == "all" and not self.path.is_file():
            # The run does not cover these splits.
            absent = [name for name in FILES.values() if self.path / name not in self._files]
            if absent:
                notes.append(f"split=all: not in the folder, so not asked: {', '.join(absent)}")

        return self._loaded(digest, pinned=pinned, path=path, notes=tuple(notes))

    def _check_choice(self) -> None:
        """Raises `UserError` for sub-data sets that the file lacks, or if no questions are left."""
        sources, categories = self._outline.sources, self.settings.categories
        if not sources:
            others = sorted({str(split_of(source)) for source in self._outline.all_sources})
            raise UserError(
                f"dataset.split={self.settings.split}: {self._files[0]} only has rows of "
                f"{', '.join(others)}",
                f"use:  dataset.split={others[0]}, or all",
            )

        if not any(map(self._is_chosen, sources)):
            raise unknown("value of dataset.subset", str(self.settings.subset), sources)

        for category in categories or ():
            # A sub-data set of another split in the same file is known, but not asked.
            if category not in self._outline.all_sources:
                raise unknown("value of dataset.categories", str(category), sources)

        chosen_sources = set(filter(self._is_chosen, sources))
        if categories is not None and chosen_sources.isdisjoint(categories):
            subset = self.settings.subset
            chosen = f"split={self.settings.split}" if subset is None else f"subset={subset}"
            raise UserError(
                f"dataset.{chosen} has no questions of dataset.categories={list(categories)}"
            )

    def write_from(self, file: IO[str], sources: Sequence[Path]) -> tuple[str, ...]:
        """Writes a split as a JSON list, from its Parquet files in the given order."""
        # Imported late: no run needs it.
        from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]

        rows: list[dict[str, Any]] = []
        for source in sources:
            try:
                rows += parquet.read_table(source).to_pylist()
            except (OSError, ArrowException, ValueError) as error:
                problem = f"{source} can't be read as Parquet: {one_line(error, 200)}"
                raise UserError(problem) from error

        # Indented by two, as the registered file is: its sha256 depends on it.
        json.dump(rows, file, ensure_ascii=False, indent=2)
        return (f"{counted(len(rows), 'row')} of {counted(len(sources), 'file')}",)

    def judged_by_model(self, judge: str) -> Sequence[str]:
        """The sub-data sets for which the set's own judge calls a model."""
        if judge != "memory_agent_bench":
            return ()

        categories = self.settings.categories
        asked = self._outline.sources if categories is None else categories
        chosen = filter(self._is_chosen, self._outline.sources)
        return tuple(name for name in chosen if name in asked and metric_of(name) in JUDGED)

    @cached_property
    def _outline(self) -> Outline:
        sources, ids = dict[str, None](), Counter[str]()
        all_sources = dict[str, None]()
        for path in self._files:
            seen = dict[str, int]()
            for row in rows(path):
                all_sources[row.source] = None
                if (first := seen.setdefault(row.content_sha256, row.index)) != row.index:
                    raise UserError(
                        f"{path}: record {row.index} has the same context and questions as "
                        f"record {first}."
                    )

                if self._is_in_split(row.source):
                    sources[row.source] = None
                    ids.update(filter(None, row.ids))

        unique = frozenset(name for name, count in ids.items() if count == 1)
        return Outline(sources=tuple(sources), all_sources=tuple(all_sources), unique_ids=unique)

    def _is_in_split(self, source: str) -> bool:
        return self.settings.split in ("all", split_of(source))

    def _is_chosen(self, source: str) -> bool:
        """Whether a sub-data set is asked: `subset` is its name, or a prefix of its name that ends
        before a `_`, or any prefix followed by `*`.
        """
        subset = self.settings.subset
        if subset is None or source == subset:
            return True
        if subset.endswith("*"):
            return source.startswith(subset[:-1])

        return source.startswith(f"{subset}_")

    def read(self) -> Iterator[EvalCase]:
        for path in self._files:
            titles = read_titles(path.with_name(TITLES))
            for row in rows(path):
                if self._is_in_split(row.source) and self._is_chosen(row.source):
                    prefix = ""
                    if len(self._files) > 1:
                        # Ids count the rows of one file.
                        prefix = f"{COMPETENCES[row.split].lower()}-"

                    yield read_case(
                        row,
                        self._question_ids(row, prefix),
                        case_id=f"{prefix}c{row.index + 1}",
                        chunk_tokens=self.settings.chunk_tokens,
                        instruction=self.settings.instruction,
                        titles=titles,
                    )

    def _question_ids(self, row: BenchRow, prefix: str) -> tuple[str, ...]:
        """The file's own ids if unique in all that is read, else ids from row and position."""
        ids = []
        for position, name in enumerate(row.ids):
            if name and name in self._outline.unique_ids:
                ids.append(name)
            else:
                ids.append(f"{prefix}r{row.index}/q{position}")

        return tuple(ids)

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        """The protocol's metrics, under any judge; only those of the sub-data sets asked."""
        by_metric: dict[str | None, list[Record]] = defaultdict(list)
        by_hops: dict[str, list[Record]] = defaultdict(list)
        conflicts = []
        for record in records:
            by_metric[metric_of(str(record.category))].append(record)
            if split_of(str(record.category)) == CR:
                conflicts.append(record)
                by_hops[record.facets.get("hops", "")].append(record)

        values: dict[str, float | None] = {}
        for metric in RULES:
            if metric in by_metric:
                values[metric] = _mean_score(metric, by_metric[metric])

        if conflicts:
            values["conflict_resolution_accuracy"] = _mean_score(SUBSTRING, conflicts)
            for hops in sorted(by_hops.keys() - {""}):
                score = _mean_score(SUBSTRING, by_hops[hops])
                values[f"conflict_resolution_accuracy_{hops}"] = score

        if SUMMARY in by_metric:
            judged = [record.verdict.score for record in by_metric[SUMMARY] if record.verdict]
            values["summary_score"] = mean(judged)

        return values


def _mean_score(metric: str, records: Sequence[Record]) -> float | None:
    """Mean over existing answers; None without answers."""
    rule = RULES[metric]
    return mean(rule(row.hypothesis, row.gold) for row in records if row.hypothesis is not None)
