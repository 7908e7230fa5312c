"""One's own data without a class: `dataset=json dataset.path=FILE`."""

from __future__ import annotations

from collections.abc import Iterator

from memeval.datasets.contract import LoadedDataset
from memeval.datasets.json.reader import OwnReader
from memeval.datasets.locate import missing
from memeval.datasets.own import OwnFile
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.records import EvalCase


class OwnJson(OwnFile):
    """Reads a file of cases. Of JSON Lines, one case at a time is in memory."""

    def open(self) -> LoadedDataset:
        """Checks the whole file, and counts what is in it."""
        if not self.path.is_file():
            raise missing(self.info, self.path)

        reader = OwnReader(self.path)
        reader.check()
        reader.mistakes.refuse()
        if not reader.counts["questions"]:
            raise UserError(
                f"{self.path} holds no question: every list of 'questions' is empty.",
                f"the schema:  {reader.mistakes.schema}",
            )

        self.check_categories(reader.categories)
        name = reader.name
        return LoadedDataset(
            info=self.info,
            path=self.path,
            sha256=reader.sha256,
            pinned=False,
            notes=reader.notes(),
            # A file that is called locomo must not be filed among the runs of LoCoMo.
            name=f"own {name}" if name in DATASETS else name,
        )

    def read(self) -> Iterator[EvalCase]:
        reader = OwnReader(self.path)
        for case in reader.cases():
            # The file may have changed since it was checked.
            reader.mistakes.refuse()
            yield case

        reader.mistakes.refuse()
