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
from memeval.text.redaction import redacted
from memeval.text.shown import printable

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
    def shown(self) -> str:
        """`300/385`: what failed is not done."""
        return f"{self.done - self.failed}/{self.total}"

    @property
    def remark(self) -> str:
        """`12 reused, 1 failed`, as far as there is anything to say."""
        parts = [f"{self.reused} reused"] if self.reused else []
        if self.failed:
            parts.append(f"{self.failed} failed")

        return ", ".join(parts)

    @property
    def text(self) -> str:
        """`300/385 (12 reused)`, `0/24 (24 failed)`."""
        return f"{self.shown} ({self.remark})" if self.remark else self.shown


class Stages:
    """How far a run is, stage by stage, and its figures so far; a `Progress` of the pipeline."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.counts: dict[str, Count] = {}
        self.live = LiveFigures()

    def expect(self, stage: str, count: int) -> None:
        self.counts.setdefault(stage, Count()).total += count

    def done(self, stage: str, *, reused: bool = False, failed: bool = False) -> None:
        count = self.counts[stage]
        count.done += 1
        count.reused += reused
        count.failed += failed
        self.show(stage)

    def spent(self, usages: Sequence[Usage]) -> None:
        self.live.add_usages(usages)

    def scored(self, score: float) -> None:
        self.live.add_score(score)

    def watch(self, connections: Connections) -> None:
        self.live.connections = connections

    def show(self, stage: str) -> None:
        """Shows that an item of a stage is done."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """`prepare 10/10, answer 300/385 (12 reused)`."""
        # A copy: a display may draw in a thread of its own while stages are added.
        return ", ".join(f"{stage} {count.text}" for stage, count in list(self.counts.items()))


class Lines(Stages):
    """A line once a minute, one when a stage is through, and one at the end."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
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
        if self.counts:
            self.say(f"  {'stopped at: ' if error else ''}{self.text}")

    def show(self, stage: str) -> None:
        count, now = self.counts[stage], time.monotonic()
        is_through = count.done == count.total and now - self._began >= LONG_S
        if is_through or now - self._reported >= EVERY_S:
            self._reported = now
            self.say(f"  {self._line(now)}")

    def _line(self, now: float) -> str:
        """How far all stages are, the figures so far, and what is left."""
        left = self._left(now)
        more = [self.live.text, f"about {duration(left)} left" if left else ""]
        return "; ".join([self.text, *filter(None, more)])

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


class Bars(Stages):
    """A bar per stage, with rate and time left."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
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
        super().expect(stage, count)
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=0, rate="", reused="")

        self._bars.update(self._tasks[stage], total=self.counts[stage].total)

    def show(self, stage: str) -> None:
        assert self._bars is not None
        count = self.counts[stage]
        remark = count.remark
        # These figures are of the whole run: they are shown once, beside the last bar.
        if stage == list(self._tasks)[-1]:
            remark = ", ".join(filter(None, [remark, self.live.text]))

        # What is reused takes no time: only what was made gives the rate.
        made, seconds = count.done - count.reused, time.monotonic() - self._began
        self._bars.update(self._tasks[stage], advance=1, rate=rate(made, seconds), reused=remark)

    def say(self, message: str) -> None:
        assert self._bars is not None
        # Without markup: rich would read brackets in a message as a style.
        self._bars.console.print(printable(redacted(message)), highlight=False, markup=False)
