"""The runs of a page: their summaries, and their records by question."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from msgspec import Struct

from memeval.results import RECORDS_FILE, Record, RunSummary, read_records
from memeval.results.calibration import read_shown_summary
from memeval.results.run import Run
from memeval.statistics.means import mean


class PageRun(Struct, frozen=True, dict=True):
    """A run folder that was read."""

    summary: RunSummary
    records: dict[str, list[Record]]
    """By question, in the order of the data set: one record per repeat."""
    source: Run

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads a run folder; one without records has no questions.

        Raises `OSError` if it can't be read, `ValueError` if it is damaged.
        """
        summary = read_shown_summary(folder)
        records: dict[str, list[Record]] = {}
        path = folder / RECORDS_FILE
        if path.exists():
            for record in read_records(path):
                records.setdefault(record.question_id, []).append(record)

        return cls(summary=summary, records=records, source=Run(folder, summary))

    def scores(self, question_ids: Iterable[str]) -> dict[str, float | None]:
        """Mean scores of some questions over the repeats that could be scored."""
        scores = {}
        for question_id in question_ids:
            records = self.records.get(question_id, ())
            scores[question_id] = mean(record.score for record in records)

        return scores

    def counts(self, record: Record) -> bool:
        """Whether a question counts in the accuracy."""
        return str(record.category) in self._headline

    @cached_property
    def _headline(self) -> frozenset[str]:
        return self.summary.headline


def questions_of(runs: Sequence[PageRun]) -> dict[str, Record]:
    """All questions of the runs, each with a record of the first run that asked it.

    Those of one conversation are together.
    """
    first: dict[str, Record] = {}
    for run in runs:
        for question_id, records in run.records.items():
            first.setdefault(question_id, records[0])

    # A run over a part of the questions must not split another run's conversations.
    position_of: dict[str, int] = {}
    for record in first.values():
        position_of.setdefault(record.case_id, len(position_of))

    return dict(sorted(first.items(), key=lambda item: position_of[item[1].case_id]))
