"""The contract of memory systems under the module name of 0.1, for classes that still import it."""

from __future__ import annotations

import warnings

from memeval.systems.base import (
    ANSWER,
    INGEST,
    RUNTIME,
    MemorySystem,
    Reader,
    ReaderReply,
    RecallSystem,
    SystemContext,
    SystemSettings,
)

Parts = SystemContext
"""The name of `SystemContext` in 0.1."""

__all__ = [
    "ANSWER",
    "INGEST",
    "RUNTIME",
    "MemorySystem",
    "Parts",
    "Reader",
    "ReaderReply",
    "RecallSystem",
    "SystemContext",
    "SystemSettings",
]

warnings.warn(
    "memeval.systems.contract is now memeval.systems.base, and Parts is SystemContext; "
    "the old names work for one more release",
    DeprecationWarning,
    stacklevel=2,
)
