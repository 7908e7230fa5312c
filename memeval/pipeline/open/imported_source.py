"""Source for answers given by another program: a file, without a system to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memeval.config.identity import Digests
from memeval.config.schema import JUDGE, PREPARE
from memeval.config.settings import read_settings
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
    """Under `judge=recorded`, whose verdicts the file records."""


class ImportedSource:
    """A file of answers, described as a cell describes a system."""

    module: str | None = None
    own_prompt = False
    ranks_part = False
    wants_evidence = False
    has_tools = False
    knows_users = False
    answer_style: str | None = None
    needs_language_model = False
    uses_llm_at_ingest = False
    flags: tuple[str, ...] = ()

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.settings: SystemSettings = read_settings(ImportedSettings, values)

    def check_use(self, *, reader: str, writer: str) -> None:
        """Nothing: answers that were given are asked nothing."""

    def digests(self) -> Digests:
        """Contribution of the source to the keys; the file's digest is among its settings."""
        return {PREPARE: {"system": IMPORTED}}
