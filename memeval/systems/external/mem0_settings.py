"""The settings of the system `mem0`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from memeval.errors import UserError
from memeval.systems.base import (
    ANSWER,
    INGEST,
    RUNTIME,
    SystemSettings,
)


@dataclass(frozen=True)
class Settings(SystemSettings):
    """Settings of `mem0`."""

    mode: Literal["library", "cloud"] = field(default="library", metadata=INGEST)
    """`library` runs in this process; `cloud` sends the conversation to mem0's hosted API, with a
    key.
    """
    infer: bool | None = field(default=None, metadata=INGEST)
    """False stores each chunk verbatim and calls no model. True lets the cell's model extract
    memories, with one call per chunk (mode=cloud: mem0's own model). None extracts if there is a
    language model, as mem0 does, and otherwise stores verbatim.
    """
    graph_memory: bool = field(default=False, metadata=INGEST)
    """Whether mem0 keeps a graph of entities and relations beside the memories. mem0ai 2 does not
    have a graph memory, so true is refused.
    """
    threshold: float = field(default=0.1, metadata=ANSWER)
    """Memories less similar to the question are not retrieved; 0.1 is mem0's own default."""
    host: str | None = field(default=None, metadata=INGEST)
    """Address of the API for mode=cloud; None is mem0's own."""
    api_key_env: str = field(default="MEM0_API_KEY", metadata=RUNTIME)
    """Environment variable that holds the key for mode=cloud."""

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise UserError(f"system.threshold must be between 0 and 1, but is {self.threshold}")
