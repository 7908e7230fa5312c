"""A user's own data, without writing an adapter: `dataset=json dataset.path=FILE`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from memeval.config.schema import RUN, at
from memeval.datasets.contract import DatasetSettings, LoadedDataset
from memeval.datasets.json.frozen import (
    MANIFEST_FILE,
    FrozenManifest,
    data_file,
    is_frozen,
    read_manifest,
)
from memeval.datasets.json.reader import DRAFTED, REJECTED, OwnReader
from memeval.datasets.locate import missing
from memeval.datasets.own import OwnFile
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.records import EvalCase
from memeval.results.files import stamp_of
from memeval.text.shown import in_shell


@dataclass(frozen=True)
class OwnJsonSettings(DatasetSettings):
    status: Literal["reviewed", "all"] = at(RUN, "reviewed")
    """`reviewed` asks only questions that people wrote or accepted; `all` also asks unreviewed ones
    that a model drafted. Rejected questions are never asked.
    """


class OwnJson(OwnFile):
    """Reads a file of cases. With JSON Lines, only one case at a time is in memory."""

    settings_type: ClassVar[type[DatasetSettings]] = OwnJsonSettings
    manifest: FrozenManifest | None = None
    """Manifest of a frozen data set, once it is open; None for other files."""
    _stamp: tuple[int, ...] | None = None
    """Stamp of the file, once it is open: the digest in the keys is that of the same bytes."""

    def open(self) -> LoadedDataset:
        """Checks the whole file, and counts its contents."""
        if is_frozen(self.path):
            self.manifest = read_manifest(self.path)
        elif self.path.is_dir():
            raise UserError(
                f"{self.path} is a folder without {MANIFEST_FILE}",
                "use a file, or a folder made by `data freeze`",
            )
        elif not self.path.is_file():
            raise missing(self.info, self.path)

        self._stamp = stamp_of(data_file(self.path))
        reader = self._reader()
        reader.check()
        reader.mistakes.refuse()
        self._check_asks_something(reader)
        self.check_categories(reader.categories)
        name = reader.name
        if name in DATASETS:
            # A user's file called locomo must not share an experiment with LoCoMo.
            name = f"own {name}"

        return self._loaded(
            reader.sha256,
            pinned=self.manifest is not None,
            version=self.manifest.version if self.manifest else None,
            drafted=reader.statuses[DRAFTED] > 0 and self.settings.status == "all",
            notes=reader.notes(),
            name=name,
        )

    def _check_asks_something(self, reader: OwnReader) -> None:
        drafted, rejected = reader.statuses[DRAFTED], reader.statuses[REJECTED]
        if reader.counts["questions"]:
            return
        if drafted and self.settings.status != "all":
            raise UserError(
                f"{self.path}: all remaining questions are unreviewed drafts ({drafted:,}).",
                f"review them:    python -m memeval data review {in_shell(self.path)}",
                "or ask them anyway: dataset.status=all",
            )

        if rejected:
            raise UserError(
                f"{self.path}: all questions were rejected ({rejected:,}).",
                f"decide again:  python -m memeval data review {in_shell(self.path)}",
            )

        raise UserError(
            f"{self.path} contains no questions: every list of 'questions' is empty.",
            f"draft some:  python -m memeval data draft {in_shell(self.path)} --n 20",
        )

    def side_of(self, case_id: str) -> str:
        """The side in the frozen data set's own split, if it has one, else the usual side."""
        own_side = self.manifest and self.manifest.sides.get(case_id)
        return own_side or super().side_of(case_id)

    def _reader(self) -> OwnReader:
        left_out = {REJECTED} if self.settings.status == "all" else {DRAFTED, REJECTED}
        path = data_file(self.path)
        return OwnReader(path, left_out=frozenset(left_out), stamp=self._stamp)

    def read(self) -> Iterator[EvalCase]:
        reader = self._reader()
        for case in reader.cases():
            reader.mistakes.refuse()
            yield case

        reader.mistakes.refuse()
