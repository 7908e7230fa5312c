"""Draws progress: live bars on a terminal, now and then a plain line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memeval.cli.terminal import drawn
from memeval.records import Usage
from memeval.redaction import redacted
from memeval.shown import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

EVERY_S = 15.0
"""Seconds between two plain lines of a stage."""


def progress_for(title: str) -> Bars | Lines:
    """Bars where standard error is a terminal, lines elsewhere."""
    return Bars(title) if sys.stderr.isatty() else Lines(title)


@dataclass
class Count:
    """How far a stage is."""

    total: int = 0
    done: int = 0
    reused: int = 0
    began: float = 0.0
    reported: float = 0.0


class Lines:
    """A line per stage when it begins to take long, and when it is through."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.counts: dict[str, Count] = {}

    def __enter__(self) -> Self:
        self.say(self.title)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        parts = [f"{stage} {self._state(count)}" for stage, count in self.counts.items()]
        if parts:
            self.say(f"  {'stopped at: ' if error else ''}{', '.join(parts)}")

    def expect(self, stage: str, count: int) -> None:
        now = time.monotonic()
        self.counts.setdefault(stage, Count(began=now, reported=now)).total += count

    def done(self, stage: str, *, reused: bool = False) -> None:
        count, now = self.counts[stage], time.monotonic()
        count.done += 1
        count.reused += reused

        if now - count.reported >= EVERY_S:
            count.reported = now
            rate = max(count.done - count.reused, 1) / (now - count.began)
            left = (count.total - count.done) / rate
            self.say(f"  {stage} {count.done}/{count.total}, {rate:.1f}/s, about {left:.0f} s left")

    def spent(self, usages: Sequence[Usage]) -> None:
        """A report says what a single cell took."""

    def say(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)

    @staticmethod
    def _state(count: Count) -> str:
        return f"{count.done}/{count.total}" + (f" ({count.reused} reused)" if count.reused else "")


class Bars:
    """A bar per stage, with rate and time left."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._reused: dict[str, int] = {}

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        rate: Any = TextColumn("{task.fields[rate]}")
        columns = (
            TextColumn("  {task.description:<8}"),
            BarColumn(30),
            MofNCompleteColumn(),
            rate,
            TimeRemainingColumn(compact=True),
        )
        console = Console(file=drawn(sys.stderr))
        self._bars = Progress(
            *columns, TextColumn("{task.fields[reused]}"), console=console, refresh_per_second=4
        )
        self._bars.start()
        self.say(self.title)

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._bars is not None
        self._bars.stop()

    def expect(self, stage: str, count: int) -> None:
        assert self._bars is not None
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=0, rate="", reused="")

        task = self._bars.tasks[self._tasks[stage]]
        self._bars.update(task.id, total=(task.total or 0) + count)

    def done(self, stage: str, *, reused: bool = False) -> None:
        assert self._bars is not None
        task = self._bars.tasks[self._tasks[stage]]
        self._reused[stage] = self._reused.get(stage, 0) + reused
        reused_text = f"{self._reused[stage]} reused" if self._reused[stage] else ""
        self._bars.update(
            task.id, advance=1, rate=f"{task.speed:.1f}/s" if task.speed else "", reused=reused_text
        )

    def spent(self, usages: Sequence[Usage]) -> None:
        """A report says what a single cell took."""

    def say(self, message: str) -> None:
        assert self._bars is not None
        self._bars.console.print(printable(redacted(message)), highlight=False, markup=False)
