"""Draws the progress of a run: live bars on a terminal, an occasional plain line elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from memeval.pipeline.execute.progress import Progress as Reports
from memeval.records import Usage
from memeval.results import RunSummary
from memeval.runs.display.live import LiveFigures, duration
from memeval.runs.display.terminal import drawing_stream
from memeval.text.redaction import redacted
from memeval.text.shown import counted, printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from memeval.pipeline.open.connections import Connections

EVERY_S = 60.0
"""Seconds between two plain lines."""
LONG_S = 10.0
"""Seconds until the first plain line. Longer runs also report the end of each stage."""
BEAT_S = 1.0
"""Seconds between two checks for something to show."""
FEWEST = 5
"""Fewest items for which an estimate of the time left means something."""


class StageCount(Struct):
    """Progress of a stage."""

    total: int = 0
    done: int = 0
    """Items that ended, with or without a result."""
    reused: int = 0
    failed: int = 0
    first_at: float | None = None
    """When the first item that was not reused was done."""

    def remaining_s(self, now: float, under_way: int = 0) -> float | None:
        """Estimated seconds for the remaining items; None if it is too early to say.

        Calls that are `under_way` at the same time end together: one round of them is not a rate.
        """
        if self.done >= self.total:
            return 0.0

        computed = self.done - self.reused
        if self.first_at is None or computed < max(FEWEST, 2 * under_way):
            return None

        seconds = now - self.first_at
        if seconds < LONG_S:
            return None

        return (self.total - self.done) * seconds / (computed - 1)

    @property
    def done_of_total(self) -> str:
        """`300/385`: failed questions do not count as done."""
        return f"{self.done - self.failed}/{self.total}"

    @property
    def remark(self) -> str:
        """`12 reused, 1 failed`, without the parts that are empty."""
        parts = []
        if self.reused:
            parts.append(f"{self.reused} reused")
        if self.failed:
            parts.append(f"{self.failed} failed")

        return ", ".join(parts)

    @property
    def text(self) -> str:
        """`300/385 (12 reused)`, `0/24 (24 failed)`."""
        return f"{self.done_of_total} ({self.remark})" if self.remark else self.done_of_total


class Stages(Reports):
    """Progress of a run by stage, and its figures so far."""

    def __init__(self, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.title, self.clock = title, clock
        self.counts: dict[str, StageCount] = {}
        self.live = LiveFigures()

    def expect(self, stage: str, count: int) -> None:
        self.counts.setdefault(stage, StageCount()).total += count

    def done(self, stage: str, *, reused: bool = False, failed: bool = False) -> None:
        count = self.counts[stage]
        if not reused and count.first_at is None:
            count.first_at = self.clock()

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

    def remaining_s(self, now: float, under_way: int = 0) -> float | None:
        """Seconds until the slowest stage ends; None if one can't be estimated yet."""
        longest = 0.0
        for count in list(self.counts.values()):
            left = count.remaining_s(now, under_way)
            if left is None:
                return None

            longest = max(longest, left)

        return longest

    def show(self, stage: str) -> None:
        """Shows that an item of a stage is done."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """`prepare 10/10, answer 300/385 (12 reused)`."""
        # A copy: a display may draw in another thread while stages are added.
        return ", ".join(f"{stage} {count.text}" for stage, count in list(self.counts.items()))


class RunDisplay(Stages):
    """Shows one run: a bar per stage on a terminal; elsewhere a line after ten seconds and then
    once a minute, one at the end of each stage, and one at the end.
    """

    def __init__(self, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(title, clock)
        self._bars: Progress | None = None
        """None if standard error is not a terminal."""
        self._tasks: dict[str, TaskID] = {}
        self._began = self.clock()
        self._next = self._began + LONG_S
        """When the next plain line is due."""
        self._heartbeat = Heartbeat(self.beat)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bars = _start_bars()

        self.say(self.title)
        self._heartbeat.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._heartbeat.stop()
        if self._bars is not None:
            self._bars.stop()
        elif self.counts:
            what = "stopped at: " if error else ""
            self.say(f"  {what}{self.text}")

    def expect(self, stage: str, count: int) -> None:
        super().expect(stage, count)
        if self._bars is None:
            return

        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=0, rate="", left="", remark="")

        self._bars.update(self._tasks[stage], total=self.counts[stage].total)

    def show(self, stage: str) -> None:
        count, now = self.counts[stage], self.clock()
        if self._bars is not None:
            self._draw(self._bars, stage, now, advance=1)
        elif count.done == count.total and now - self._began >= LONG_S:
            self._next = now + EVERY_S
            self.say(f"  {self._line(now)}")

    def beat(self) -> None:
        """Shows the progress if it is due, even if nothing has happened since the last time."""
        now = self.clock()
        if self._bars is not None:
            for stage in list(self._tasks)[-1:]:
                self._draw(self._bars, stage, now)
        elif now >= self._next and self.counts:
            self._next = now + EVERY_S
            self.say(f"  {self._line(now)}")

    def say(self, message: str) -> None:
        if self._bars is None:
            print(message, file=sys.stderr, flush=True)
        else:
            # Without markup: rich would read brackets in a message as a style.
            text = printable(redacted(message))
            self._bars.console.print(text, highlight=False, markup=False)

    def _draw(self, bars: Progress, stage: str, now: float, advance: int = 0) -> None:
        count = self.counts[stage]
        remark = count.remark
        # These figures are about the whole run: they are shown once, next to the last bar.
        if stage == list(self._tasks)[-1]:
            remark = ", ".join(filter(None, [remark, self.live.text]))

        # Reused items take no time: only new ones determine the rate.
        speed = rate(count.done - count.reused, now - self._began)
        left = count.remaining_s(now, self.live.under_way)
        bars.update(
            self._tasks[stage],
            advance=advance,
            rate=speed,
            left=duration(left) if left else "",
            remark=remark,
        )

    def _line(self, now: float) -> str:
        parts = [self.text, *filter(None, [self.live.text])]
        if left := self.remaining_s(now, self.live.under_way):
            parts.append(f"about {duration(left)} left")

        return "; ".join(parts)


class Heartbeat:
    """Calls a function every second from a thread, even while nothing else happens."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat = beat
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memeval-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, if it was started."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(BEAT_S):
            self._beat()


class Countdown:
    """Shows the progress of work without calls, such as the composition of a large sweep: a line
    after five seconds and then every five.
    """

    QUIET_S = 5.0

    def __init__(self, work: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`work` describes the work: `checking 475 runs`."""
        self._work, self._clock = work, clock
        self._count = StageCount(total=total, first_at=clock())
        self._next = clock() + self.QUIET_S

    def done(self) -> None:
        self._count.done += 1
        now = self._clock()
        if now < self._next or self._count.done >= self._count.total:
            return

        self._next = now + self.QUIET_S
        left = self._count.remaining_s(now)
        more = f", about {duration(left)} left" if left else ""
        print(f"{self._work}: {self._count.done_of_total}{more}", file=sys.stderr, flush=True)


def _start_bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    bars = Progress(
        TextColumn("  {task.description:<8}"),
        BarColumn(30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[remark]}"),
        console=Console(file=drawing_stream(sys.stderr)),
        refresh_per_second=4,
    )
    bars.start()
    return bars


def rate(computed: int, seconds: float) -> str:
    """The rate of items, in a unit in which it is at least one: `2.5/s`, `12/min`, `3/h`.

    Averaged over the whole time: items come in batches, one per slot. A single item has no rate.
    """
    if computed < 2 or seconds <= 0:
        return ""

    for unit, in_unit in (("s", 1), ("min", 60)):
        if computed * in_unit / seconds >= 1:
            return f"{short(computed * in_unit / seconds)}/{unit}"

    return f"{short(computed * 3600 / seconds)}/h"


def short(value: float) -> str:
    """The value with one decimal if it is below ten, else without decimals."""
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def already_done(summary: RunSummary) -> str:
    """Says that a run was finished before."""
    reused = counted(sum(summary.statuses.values()), "result")
    return f"already done: reused {reused}, no API calls"
