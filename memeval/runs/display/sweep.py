"""Shows a sweep as one piece of work."""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from memeval.llm.load import busy_line
from memeval.metrics.formats import short_count
from memeval.records import Usage
from memeval.runs.display.live import cost, duration
from memeval.runs.display.progress import LONG_S, Display, Stages, already_done
from memeval.runs.plan import CellOutcome, Plan, PlannedCell
from memeval.text.shown import counted, printable

SHOWN_CELLS = 6
"""Cells under way that are listed on a terminal."""


class CellStages(Stages):
    """Progress of a cell of a sweep."""

    def __init__(self, name: str, display: "SweepDisplay", short_name: str = "") -> None:
        """`short_name` is the part of the name that distinguishes the cell within the sweep."""
        super().__init__(name, display.clock)
        self._display = display
        self._short_name = short_name or name

    def spent(self, usages: Sequence[Usage]) -> None:
        self._display.spent(usages)

    def say(self, message: str) -> None:
        self._display.say(message)

    @property
    def line(self) -> str:
        """A line on a terminal: the stages first, as a name may be long; of the name, only the
        parts that other cells of the sweep do not share.
        """
        counts = list(self.counts.items())
        stages = [f"{stage} {count.done_of_total}".ljust(16) for stage, count in counts]
        score = f"{self.live.text:<9} " if self.live.scored else ""
        return f"{' '.join(stages):<50} {score}{self._short_name}"

    @property
    def stopping_point(self) -> str:
        """The point at which an unfinished cell ended."""
        return f"at: {self.text}" if self.counts else "before anything was done"

    @property
    def share(self) -> float:
        """Share of the items expected so far that are done."""
        total = done = 0
        for count in list(self.counts.values()):
            total += count.total
            done += count.done

        return done / total if total else 0.0


def _distinct_names(cells: Sequence[PlannedCell]) -> Mapping[int, str]:
    """The names of cells by number. Equal names get the arguments of the command that distinguish
    them, since names do not contain every setting.
    """
    by_name: dict[str, dict[int, list[str]]] = {}
    for planned in cells:
        words = shlex.split(planned.cell.command)
        by_name.setdefault(planned.cell.name, {})[planned.number] = words

    names = {}
    for name, commands in by_name.items():
        shared = set.intersection(*map(set, commands.values()))
        for number, words in commands.items():
            names[number] = " ".join([name, *(word for word in words if word not in shared)])

    return names


class SweepDisplay(Display):
    def __init__(
        self, plan: Plan, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock, quiet=quiet)
        self._plan = plan
        self._cells: dict[int, CellStages] = {}
        """The cells under way, by number."""
        self._ended = self._reused = self._failed = self._stopped = 0
        self._names = _distinct_names(plan.cells)
        self._shared: set[str] = set()
        """Words that are in the names of all cells."""
        if len(self._names) > 1:
            self._shared = set.intersection(*map(set, map(str.split, self._names.values())))

        self._recent = [(self._began, 0)]
        """Times, and the number of calls by then."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.say(self._size())
        if self._plan.repetition_note:
            self.say(f"note: {self._plan.repetition_note}")

        return self

    def _size(self) -> str:
        """The number of runs, and the number already finished."""
        total = len(self._plan.cells)
        runs = counted(total, "run")
        finished = total - len(self._plan.open_cells)
        if not finished:
            return runs
        if finished < total:
            return f"{runs}, {finished:,} already finished"

        every = {1: "", 2: "both "}.get(total, "all ")
        return f"{runs}, {every}already finished"

    def __exit__(self, *error: object) -> None:
        for cell in self._cells.values():
            self.say(f"{cell.title}: stopped {cell.stopping_point}")

        super().__exit__(*error)
        self.say(self.summary())

    def progress(self, planned: PlannedCell) -> CellStages:
        name = self._names[planned.number]
        words = [word for word in name.split() if word not in self._shared]
        cell = CellStages(name, self, short_name=" ".join(words))
        self._cells[planned.number] = cell
        return cell

    def report_end(self, outcome: CellOutcome) -> None:
        self._ended += 1
        name = self._names[outcome.planned.number]
        cell = self._cells.pop(outcome.planned.number, None)
        position = f"[{self._ended}/{len(self._plan.cells)}]"
        if outcome.error is not None:
            self._failed += 1
            where = f" {cell.stopping_point}" if cell else ""
            self.say(f"{position} {name}: failed{where}")
        elif outcome.reused and outcome.summary is not None:
            self._reused += 1
            self.say(f"{position} {name}: {already_done(outcome.summary)}")
        else:
            end = cell.text if cell else "finished"
            if outcome.summary is not None and outcome.summary.is_stopped:
                self._stopped += 1
                end = f"stopped {cell.stopping_point}" if cell else "stopped"

            self.say(f"{position} {name}: {end}")

    def plain_line(self) -> str:
        return "; ".join(self.lines)

    @property
    def lines(self) -> list[str]:
        """The state of the sweep: one or two lines, each at most 79 columns wide."""
        load, limit = self.live.load, sum(load.slots for load in self.live.loads)
        rate, left = self._rate(load.calls), self._remaining_s()

        cells = len(self._plan.cells)
        work = "publishing" if self._ended == cells else f"{len(self._cells)} under way"
        first = [f"runs {self._ended}/{cells}, {work}"]
        if limit:
            first.append(f"slots {load.under_way}/{limit}")
        if limit and rate is not None:
            first.append(f"{rate:.0f} calls/s")
        if load.waits:
            first.append(f"429: {load.waits}")

        second = []
        if self.live.tokens:
            second.append(f"{short_count(self.live.tokens)} tokens")
            second.append(cost(self.live.cost_usd))
        if load.retries:
            second.append(counted(load.retries, "retry", "retries"))
        if load.failures:
            second.append(f"{load.failures} failed")
        if left:
            second.append(f"about {duration(left)} left")

        return ["  ".join(parts) for parts in (first, second) if parts]

    def _rate(self, calls: int) -> float | None:
        """Calls per second over the last ten seconds; None if there was at most one call."""
        now, recent = self.clock(), self._recent
        # The latest entry stays, regardless of its age: the rate is measured from there.
        latest, _ = recent[-1]
        self._recent = [(at, count) for at, count in recent if now - at <= 10 or at == latest]
        self._recent.append((now, calls))
        began, before = self._recent[0]
        return (calls - before) / (now - began) if now > began and calls > 1 else None

    def _remaining_s(self) -> float | None:
        """Estimated seconds for the rest, if later cells are like the earlier ones.

        None at first, and if no cell has ended and those under way have no estimate yet.
        """
        now = self.clock()
        cells = list(self._cells.values())
        computed = self._ended - self._reused - self._failed - self._stopped
        under_way = sum(cell.share for cell in cells)
        done = computed + under_way
        known = computed > 0 or all(cell.remaining_s(now) is not None for cell in cells)
        if done < 0.05 or not known or now - self._began < LONG_S:
            return None

        left = len(self._plan.cells) - self._ended - under_way
        return max(left, 0.0) * (now - self._began) / done

    def summary(self) -> str:
        """The last line: costs of the sweep."""
        runs = counted(len(self._plan.cells), "run")
        finished = self._ended - self._failed - self._stopped
        parts = [f"{finished:,} of {runs} finished in {self._elapsed}"]
        if self._failed:
            parts[0] += f", {self._failed:,} failed"
        if self._stopped:
            parts[0] += f", {self._stopped:,} stopped"

        parts += filter(None, map(busy_line, self.live.loads))

        if self.live.calls or self.live.cached:
            # Billed now, or by an earlier command: see `Bill`.
            calls = f"{counted(self.live.calls, 'call')} billed to these runs"
            parts.append(f"{calls}, {self.live.cached:,} more from the cache")
            parts.append(cost(self.live.cost_usd))

        return "; ".join(parts)

    @property
    def _elapsed(self) -> str:
        return duration(self.clock() - self._began)

    def draw(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        first, *others = self.lines
        under_way = list(self._cells.values())
        others += [cell.line for cell in under_way[:SHOWN_CELLS]]
        if len(under_way) > SHOWN_CELLS:
            others.append(f"and {len(under_way) - SHOWN_CELLS} more")

        lines = [f"{self._elapsed}  {first}", *(f"  {line}" for line in others)]
        return Group(*(Text(printable(line), no_wrap=True, overflow="ellipsis") for line in lines))
