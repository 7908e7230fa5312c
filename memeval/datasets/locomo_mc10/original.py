"""LoCoMo's own file, which LoCoMo-MC10 takes evidence from and can be derived from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from memeval.config.paths import data_dir
from memeval.config.schema import ANSWER, PREPARE, RUN, at
from memeval.datasets.contract import Dataset, DatasetInfo, DatasetSettings
from memeval.datasets.io.fields import Fields, read_records
from memeval.datasets.locate import PinnedFile, digest_of, locate, read_file, read_pinned
from memeval.datasets.locomo.names import category_names
from memeval.datasets.locomo.schema import read_case
from memeval.datasets.registry import dataset_info
from memeval.records import EvalCase


@dataclass(frozen=True)
class LocomoMc10Settings(DatasetSettings):
    """Settings of LoCoMo-MC10."""

    choice_order: Literal["given", "shuffled"] = at(ANSWER, "given")
    """`shuffled` puts the choices of each question in a random order, which depends only on
    `choice_seed` and the question's id.
    """
    choice_seed: int = at(ANSWER, 0)
    derive: bool = at(PREPARE, False)
    """Makes the rows from locomo10.json, with wrong choices drawn from other questions' answers;
    `path` then names that file.
    """
    derive_seed: int = at(ANSWER, 0)
    category_names: str = at(RUN, "official")
    """Whose names the tables use, see `memeval.datasets.locomo.names`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        category_names(self.category_names)


class OriginalFile(Dataset):
    """LoCoMo's own file: evidence comes from it, and rows can be derived from it."""

    settings_type = LocomoMc10Settings
    settings: LocomoMc10Settings

    @property
    def _source_info(self) -> DatasetInfo:
        return dataset_info("locomo" if self.info.name == "locomo_mc10" else "demo")

    @property
    def _original_path(self) -> Path:
        """LoCoMo's file: the one that `path` names for deriving, else the one beside ours, else the
        data folder's.
        """
        if self.settings.derive and self.settings.path:
            return self.path

        beside = self.path.parent.parent / self._source_info.file
        return beside if beside.is_file() else locate(self._source_info, data_dir())

    @cached_property
    def _original(self) -> PinnedFile:
        """LoCoMo's file. Raises `UserError` if it may not be used."""
        return read_pinned(
            self._source_info, self._original_path, allow_unpinned=self.settings.allow_unpinned
        )

    @cached_property
    def _joinable(self) -> PinnedFile | None:
        """LoCoMo's file, if it is there and the registered one."""
        if not self._original_path.is_file():
            return None

        content = read_file(self._source_info, self._original_path)
        digest = digest_of(content)
        if self._source_info.sha256 not in (None, digest):
            return None

        return PinnedFile(content=content, sha256=digest, pinned=True)

    @cached_property
    def _samples(self) -> list[Fields]:
        original = self._original if self.settings.derive else self._joinable
        assert original is not None  # asked for only if there is one
        return read_records(original.content, self._original_path, "conversation")

    @cached_property
    def _conversations(self) -> Mapping[str, EvalCase]:
        """LoCoMo's conversations by id."""
        cases = [read_case(sample, captions=False) for sample in self._samples]
        return {case.case_id: case for case in cases}
