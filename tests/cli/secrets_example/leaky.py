"""A custom memory that leaks its key in every way it can."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from dataclasses import dataclass

from memeval.records import Answer, MemoryChunk, Query
from memeval.systems.base import MemorySystem, SystemSettings


@dataclass(frozen=True)
class Settings(SystemSettings):
    way: str = "error"


class Leaky(MemorySystem):
    settings_type = Settings
    settings: Settings

    def reset(self) -> None:
        pass

    def ingest(self, chunk: MemoryChunk) -> None:
        if self.settings.way == "ingest":
            raise RuntimeError(f"no memory for {self.key}")

    def answer(self, query: Query) -> Answer:
        way = self.settings.way
        if way == "error":
            raise RuntimeError(f"refused: {self.key}")
        if way == "print":
            print("the key:", self.key)  # noqa: T201
            print("the key:", self.key, file=sys.stderr)  # noqa: T201
        if way == "warning":
            warnings.warn(f"the key: {self.key}", stacklevel=1)
        if way == "log":
            logging.getLogger("leaky").error("the key: %s", self.key)
            try:
                raise ValueError(self.key)
            except ValueError:
                logging.getLogger("leaky").exception("with a traceback")
        notes = {"key": self.key} if way == "notes" else {}
        return Answer(text=self.key if way == "answer" else "a kayak", notes=notes)

    @property
    def key(self) -> str:
        return os.environ["LEAKY_TOKEN"]
