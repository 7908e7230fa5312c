"""How the pipeline reports what it is doing; the command line draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memeval.records import Usage


class Progress(Protocol):
    """Told of each stage's work; `stage` is one of prepare, answer, judge."""

    def expect(self, stage: str, count: int) -> None:
        """So many more items of a stage are to be done."""

    def done(self, stage: str, *, reused: bool = False) -> None:
        """One item is done; `reused` where an earlier run had done it."""

    def spent(self, usages: Sequence[Usage]) -> None:
        """Calls that an item took."""

    def say(self, message: str) -> None:
        """Something that the user should read, on a line of its own."""


class Silent:
    """Tells nobody."""

    def expect(self, stage: str, count: int) -> None: ...

    def done(self, stage: str, *, reused: bool = False) -> None: ...

    def spent(self, usages: Sequence[Usage]) -> None: ...

    def say(self, message: str) -> None: ...
