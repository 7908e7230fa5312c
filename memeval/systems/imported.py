"""Stands for another program in the runs of `evaluate`, whose answers are there already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from memeval.errors import UserError
from memeval.records import MemoryChunk, Query
from memeval.systems.base import INGEST, MemorySystem, SystemSettings


@dataclass(frozen=True)
class ImportedSettings(SystemSettings):
    """Which file the answers come from."""

    file: str = field(default="", metadata={"stage": "runtime"})
    sha256: str = field(default="", metadata=INGEST)
    only_listed: bool = field(default=False, metadata={"stage": "run"})
    """Whether no question was asked but those that the file has a row for."""


class Imported(MemorySystem):
    """The system of an imported run: a name and settings for the tables. It answers nothing."""

    settings_type = ImportedSettings

    def reset(self) -> NoReturn:
        raise _refusal()

    def ingest(self, chunk: MemoryChunk) -> NoReturn:
        raise _refusal()

    def answer(self, query: Query) -> NoReturn:
        raise _refusal()


def _refusal() -> UserError:
    return UserError(
        "imported answers can't be asked again",
        "judge them:  python -m memeval evaluate ANSWERS.jsonl dataset=...",
    )
