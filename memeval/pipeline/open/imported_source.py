"""Source for answers given by another program: a file, without a system to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memeval.config.identity import Digests
from memeval.config.schema import JUDGE, PREPARE
from memeval.config.settings import read_settings
from memeval.pipeline.open.declared import Source
from memeval.systems.base import INGEST, RUNTIME, SystemSettings

IMPORTED = "imported"
"""Replaces the name of the system if another program gave the answers."""


@dataclass(frozen=True)
class ImportedSettings(SystemSettings):
    """Which file the answers come from."""

    # The digest is the identity: a file that was moved is the same source.
    file: str = field(default="", metadata=RUNTIME)
    sha256: str = field(default="", metadata=INGEST)
    only_listed: bool = field(default=False, metadata={"stage": "run"})
    """Whether only the questions that the file has a row for were asked."""
    judged_by: str = field(default="", metadata={"stage": JUDGE})
    """Under `judge=recorded`, the judge whose verdicts the file records."""


class ImportedSource(Source):
    """A file of answers, described as a cell describes a system; nothing is asked."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.settings = read_settings(ImportedSettings, values)

    def digests(self) -> Digests:
        # The file's digest is among the settings.
        return {PREPARE: {"system": IMPORTED}}
