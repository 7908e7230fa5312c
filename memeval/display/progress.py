"""Draws progress: live bars on a terminal, now and then a plain line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memeval.display.live import LiveFigures, duration
from memeval.display.terminal import drawn
from memeval.records import Usage
from memeval.redaction import redacted
from memeval.shown import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from memeval.pipeline.connections import Connections

EVERY_S = 60.0
"""Seconds between two plain lines."""
LONG_S = 10.0
"""A run that takes longer says when each stage is through."""


def progress_for(title: str) -> Bars | Lines:
    """Bars where standard error is a terminal, lines elsewhere."""
    return Bars(title) if sys.stderr.isatty() else Lines(title)


@dataclass
class Count:
    """How far a stage is."""

    total: int = 0
    done: int = 0
    """Ended, with a result or without."""
    reused: int = 0
    failed: int = 0

    @property
    def text(self) -> str:
        """`300/385 (12 reused)`, `0/24 (24 failed)`."""
        more = [f"{self.reused} reused"] if self.reused else []
        if self.failed:
            more.append(f"{self.failed} failed")

        shown = f"{self.done - self.failed}/{self.total}"
        return f"{shown} ({', '.join(more)})" if more else shown


class Lines:
    """A line once a minute, one when a stage is through, and one at the end."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.counts: dict[str, Count] = {}
        self.live = LiveFigures()
        self._began = self._reported = time.monotonic()

    def __enter__(self) -> Self:
        self.say(self.title)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        parts = [f"{stage} {count.text}" for stage, count in self.counts.items()]
        if parts:
            self.say(f"  {'stopped at: ' if error else ''}{', '.join(parts)}")

    def expect(self, stage: str, count: int) -> None:
        self.counts.setdefault(stage, Count()).total += count

    def done(self, stage: str, *, reused: bool = False, failed: bool = False) -> None:
        count, now = self.counts[stage], time.monotonic()
        count.done += 1
        count.reused += reused
        count.failed += failed

        is_through = count.done == count.total and now - self._began >= LONG_S
        if is_through or now - self._reported >= EVERY_S:
            self._reported = now
            self.say(f"  {self._line(now)}")

    def spent(self, usages: Sequence[Usage]) -> None:
        self.live.add_usages(usages)

    def scored(self, score: float) -> None:
        self.live.add_score(score)

    def watch(self, connections: Connections) -> None:
        self.live.connections = connections

    def _line(self, now: float) -> str:
        """How far all stages are, the figures so far, and what is left."""
        parts = [f"{stage} {count.text}" for stage, count in self.counts.items()]
        left = self._left(now)
        more = [self.live.text, f"about {duration(left)} left" if left else ""]
        return "; ".join([", ".join(parts), *filter(None, more)])

    def _left(self, now: float) -> float | None:
        """Seconds that the rest may take, by what was done so far; None where nothing was."""
        # What is reused takes no time: only what was made gives the rate.
        made = sum(count.done - count.reused for count in self.counts.values())
        rest = sum(count.total - count.done for count in self.counts.values())
        return rest * (now - self._began) / made if made else None

    def say(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)


def rate(made: int, seconds: float) -> str:
    """How many items are made, in a unit in which that is one at least: `2.5/s`, `12/min`, `3/h`.

    Over all of the time: those of a moment come in batches, as many as there are slots.
    """
    if not made or seconds <= 0:
        return ""

    for unit, in_unit in (("s", 1), ("min", 60)):
        if made * in_unit / seconds >= 1:
            return f"{short(made * in_unit / seconds)}/{unit}"

    return f"{short(made * 3600 / seconds)}/h"


def short(value: float) -> str:
    """One decimal below ten."""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


class Bars:
    """A bar per stage, with rate and time left."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.live = LiveFigures()
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._counts: dict[str, Count] = {}
        self._began = time.monotonic()

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
            self._counts[stage] = Count()

        task = self._bars.tasks[self._tasks[stage]]
        self._bars.update(task.id, total=(task.total or 0) + count)

    def done(self, stage: str, *, reused: bool = False, failed: bool = False) -> None:
        assert self._bars is not None
        task, count = self._bars.tasks[self._tasks[stage]], self._counts[stage]
        count.done += 1
        count.reused += reused
        count.failed += failed
        more = [f"{count.reused} reused"] if count.reused else []
        if count.failed:
            more.append(f"{count.failed} failed")

        reused_text = ", ".join(more)
        # These figures are of the whole run: they are shown once, beside the last bar.
        if stage == list(self._tasks)[-1]:
            reused_text = ", ".join(filter(None, [reused_text, self.live.text]))

        # What is reused takes no time: only what was made gives the rate.
        made, seconds = count.done - count.reused, time.monotonic() - self._began
        self._bars.update(task.id, advance=1, rate=rate(made, seconds), reused=reused_text)

    def spent(self, usages: Sequence[Usage]) -> None:
        self.live.add_usages(usages)

    def scored(self, score: float) -> None:
        self.live.add_score(score)

    def watch(self, connections: Connections) -> None:
        self.live.connections = connections

    def say(self, message: str) -> None:
        assert self._bars is not None
        # Without markup: rich would read brackets in a message as a style.
        self._bars.console.print(printable(redacted(message)), highlight=False, markup=False)
