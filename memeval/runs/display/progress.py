"""Shows work in progress: live on a terminal, in occasional plain lines elsewhere."""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from memeval.pipeline.execute.progress import Progress as Reports
from memeval.pipeline.open.connections import Connections
from memeval.records import Usage
from memeval.results import RunSummary
from memeval.runs.display.live import LiveFigures, duration
from memeval.runs.display.terminal import drawing_stream, folded
from memeval.runs.plan import CellOutcome, PlannedCell
from memeval.text.redaction import redacted
from memeval.text.shown import counted, printable

if TYPE_CHECKING:
    from rich.live import Live

EVERY_S = 60.0
"""Seconds between two plain lines."""
LONG_S = 10.0
"""Seconds until the first plain line, and minimum between a line and a stage's last line."""
BEAT_S = 1.0
"""Seconds between two checks for progress to show."""
FEWEST = 5
"""Minimum items for a useful estimate of the remaining time."""


class StageCount(Struct):
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

    def scored(self, score: float) -> None:
        self.live.score += score
        self.live.scored += 1

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
        """Shows that an item of a stage is done; does nothing if a display redraws on its own."""

    @property
    def text(self) -> str:
        """`prepare 10/10, answer 300/385 (12 reused)`."""
        # A copy: a display may draw in another thread while stages are added.
        return ", ".join(f"{stage} {count.text}" for stage, count in list(self.counts.items()))


class Display(ABC):
    """Shows work in progress: live on a terminal, else a line after 10 s and then each minute."""

    is_transient = True
    """Whether the live lines vanish at the end."""

    def __init__(self, clock: Callable[[], float], *, quiet: bool = False) -> None:
        """A `quiet` display prints nothing."""
        self.clock, self._quiet = clock, quiet
        self.live = LiveFigures()
        self._began = clock()
        self._next = self._quiet_until = self._began + LONG_S
        """Times at which the next plain line is due, and from which a stage may report its end."""
        self._guard = threading.Lock()
        self._screen: Live | None = None
        """None if standard error is not a terminal."""
        self._is_over = threading.Event()
        # Plain lines come from a thread, because a call may take minutes.
        self._heart = threading.Thread(
            target=self._run_heartbeat, name="memeval-heartbeat", daemon=True
        )

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._screen = Live(
                get_renderable=self.draw,
                console=Console(file=drawing_stream(sys.stderr)),
                refresh_per_second=4,
            )
            self._screen.start()
        elif not self._quiet:
            self._heart.start()

        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        if self._heart.is_alive():
            self._heart.join()

        screen, self._screen = self._screen, None
        if screen is not None:
            screen.transient = self.is_transient
            screen.stop()

    def _run_heartbeat(self) -> None:
        while not self._is_over.wait(BEAT_S):
            self.tick()

    def tick(self) -> None:
        """Prints a plain line if it is time for one."""
        now = self.clock()
        if self._screen is None and now >= self._next and (line := self.plain_line()):
            self._say_line(line, now)

    def _say_line(self, line: str, now: float) -> None:
        self._next, self._quiet_until = now + EVERY_S, now + LONG_S
        self.say(line)

    def say(self, message: str) -> None:
        """Prints a message for the user, above the live lines."""
        if self._quiet:
            return

        text = printable(redacted(message))
        with self._guard:
            if self._screen is None:
                print(folded(text, sys.stderr), file=sys.stderr, flush=True)
            else:
                # Without markup: rich would read brackets in a message as a style.
                self._screen.console.print(text, highlight=False, markup=False)

    def spent(self, usages: Sequence[Usage]) -> None:
        self.live.add_usages(usages)

    def watch(self, connections: Connections) -> None:
        self.live.connections = connections

    @abstractmethod
    def draw(self) -> Any:
        """The live lines, for rich."""

    @abstractmethod
    def plain_line(self) -> str:
        """The state of the work; empty before there is any."""


class RunDisplay(Display, Stages):
    """Shows one run: a bar per stage on a terminal; elsewhere also a line at the end of each stage,
    and one at the end.
    """

    def __init__(
        self, title: str, clock: Callable[[], float] = time.monotonic, *, quiet: bool = False
    ) -> None:
        Stages.__init__(self, title, clock)
        Display.__init__(self, clock, quiet=quiet)

    def __enter__(self) -> Self:
        super().__enter__()
        self.say(self.title)
        return self

    def __exit__(self, *error: object) -> None:
        self._end(is_stopped=error[0] is not None)

    def progress(self, planned: PlannedCell) -> Self:
        return self

    def report_end(self, outcome: CellOutcome) -> None:
        """Ends the display: the time that the publication takes is not the run's."""
        summary = outcome.summary
        if outcome.reused and summary is not None:
            self.say(f"  {already_done(summary)}")

        self._end(is_stopped=summary is None or summary.is_stopped)

    def _end(self, *, is_stopped: bool) -> None:
        if self._is_over.is_set():
            return

        is_plain = self._screen is None
        # Without a stage, an empty line would stay.
        self.is_transient = not self.counts
        super().__exit__()
        if is_plain and self.counts:
            prefix = "stopped at: " if is_stopped else ""
            self.say(f"  {prefix}{self.text}")

    def show(self, stage: str) -> None:
        count, now = self.counts[stage], self.clock()
        # A stage may end many times: its total grows with each case that is opened.
        if self._screen is None and count.done == count.total and now >= self._quiet_until:
            self._say_line(self.plain_line(), now)

    def draw(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now, table = self.clock(), Table.grid(padding=(0, 1))
        stages = list(self.counts.items())
        for stage, count in stages:
            remark = count.remark
            # These figures are about the whole run: they are shown once, next to the last bar.
            if stage == stages[-1][0]:
                remark = ", ".join(filter(None, [remark, self.live.text]))

            left = count.remaining_s(now, self.live.load.under_way)
            table.add_row(
                Text(f"  {stage:<8}"),
                ProgressBar(total=count.total, completed=count.done, width=30),
                Text(f"{count.done:>{len(str(count.total))}}/{count.total}", "green"),
                # Reused items take no time: only new ones determine the rate.
                Text(rate(count.done - count.reused, now - self._began)),
                Text(duration(left) if left else "", no_wrap=True),
                Text(remark, no_wrap=True),
            )

        return table

    def plain_line(self) -> str:
        if not self.counts:
            return ""

        parts = [self.text, *filter(None, [self.live.text])]
        if left := self.remaining_s(self.clock(), self.live.load.under_way):
            parts.append(f"about {duration(left)} left")

        return f"  {'; '.join(parts)}"


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
    """Message that a run was already finished."""
    reused = counted(sum(summary.statuses.values()), "result")
    return f"already done: reused {reused}, no API calls"
