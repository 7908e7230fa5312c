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
from memeval.datasets.demo.info import DEMO
from memeval.datasets.io.fields import Fields, kind_of, parse_json
from memeval.datasets.locate import (
    check_pin,
    digest_of,
    locate,
    read_file,
)
from memeval.datasets.locomo.info import LOCOMO
from memeval.datasets.locomo.names import category_names
from memeval.datasets.locomo.schema import read_case
from memeval.datasets.locomo_mc10.info import LOCOMO_MC10
from memeval.errors import UserError
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

    def __init__(
        self, path: Path, info: DatasetInfo = LOCOMO_MC10, settings: DatasetSettings | None = None
    ) -> None:
        super().__init__(path, info, settings)
        self._source_info = LOCOMO if info.name == LOCOMO_MC10.name else DEMO

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
    def _original(self) -> tuple[str, bool, bytes]:
        """Digest of LoCoMo's file, whether it is the registered one, and its content.

        Raises `UserError` if none may be used.
        """
        content = read_file(self._source_info, self._original_path)
        digest = digest_of(content)
        pinned = check_pin(
            self._source_info,
            self._original_path,
            digest,
            allow_unpinned=self.settings.allow_unpinned,
        )
        return digest, pinned, content

    @cached_property
    def _joinable(self) -> tuple[str, bool, bytes] | None:
        """LoCoMo's file, where it is there and the registered one."""
        if not self._original_path.is_file():
            return None

        content = read_file(self._source_info, self._original_path)
        digest = digest_of(content)
        return (digest, True, content) if self._source_info.sha256 in (None, digest) else None

    @cached_property
    def _samples(self) -> list[Fields]:
        original = self._original if self.settings.derive else self._joinable
        assert original is not None  # asked for only where there is one
        samples = parse_json(original[2], self._original_path)
        if not isinstance(samples, list) or not samples:
            raise UserError(
                f"{self._original_path} holds {kind_of(samples) if samples else 'nothing'}, not a "
                "list of conversations."
            )

        return [
            Fields.of(self._original_path, f"record {index}", sample)
            for index, sample in enumerate(samples)
        ]

    @cached_property
    def _conversations(self) -> Mapping[str, EvalCase]:
        """LoCoMo's conversations by id."""
        cases = [read_case(sample, captions=False) for sample in self._samples]
        return {case.case_id: case for case in cases}
