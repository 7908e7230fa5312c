"""The parts of a sweep: turns, shared files, the display, and the worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from lone_runs import run_cell
from rich.console import Console

from memeval.errors import UserError, WorldError
from memeval.llm.load import Load
from memeval.pipeline.execute.lane import Lane, TurnQueue
from memeval.pipeline.execute.memories import MemorySource
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.execute.run import CellRun
from memeval.pipeline.execute.stores import Stores
from memeval.pipeline.execute.window import Window
from memeval.pipeline.open.connections import Connections
from memeval.pipeline.open.opening import open_cell
from memeval.records import EvalCase, Role, Usage
from memeval.results.store import FileIsBusyError
from memeval.runs.compose.config import compose_config
from memeval.runs.display.sweep import SweepDisplay, duration
from memeval.runs.launch.launcher import SweepLauncher
from memeval.runs.plan import Plan
from memeval.store.contract import FileStore


def test_cells_take_turns_in_the_sweeps_order() -> None:
    order: list[int] = []

    async def cell(queue: TurnQueue, number: int) -> None:
        await queue.acquire(number)
        order.append(number)
        await asyncio.sleep(0)
        queue.release(number)

    async def main() -> None:
        queue = TurnQueue()
        await queue.acquire(-1)
        tasks = [asyncio.create_task(cell(queue, number)) for number in (3, 1, 2, 0)]
        await asyncio.sleep(0)
        queue.release(3)  # which does not have it
        await asyncio.sleep(0)
        assert order == []
        queue.release(-1)
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert order == [0, 1, 2, 3]


def test_turn_of_a_cancelled_cell_passes_to_the_next_cell() -> None:
    async def main() -> bool:
        queue = TurnQueue()
        await queue.acquire(0)
        second = asyncio.create_task(queue.acquire(1))
        third = asyncio.create_task(queue.acquire(2))
        await asyncio.sleep(0)
        queue.release(0)
        second.cancel()  # it was given the turn, but has not run since
        await asyncio.wait({second, third})
        return third.done() and not third.cancelled()

    assert asyncio.run(main())


class File:
    """A store that may be held by another process."""

    def __init__(self, holders: list[str]) -> None:
        self.holders, self.closed = holders, False

    def __enter__(self) -> Self:
        if self.holders:
            self.holders.pop()
            raise FileIsBusyError
        return self

    def __exit__(self, *error: object) -> None:
        self.closed = True


def test_cells_share_an_open_file_and_the_last_one_closes_it() -> None:
    made: list[File] = []

    def make() -> File:
        made.append(File([]))
        return made[-1]

    async def busy(path: Path) -> None:
        raise AssertionError("another part fetched it")

    async def main() -> None:
        stores, path = Stores(), Path("a")
        async with stores.open_store(path, make, busy, FileStore(Path()).call) as first:
            async with stores.open_store(path, make, busy, FileStore(Path()).call) as second:
                assert first is second
            assert not first.closed
        assert first.closed
        async with stores.open_store(path, make, busy, FileStore(Path()).call) as third:
            assert third is not first

    asyncio.run(main())


def test_file_held_by_another_process_is_reported_and_waited_for() -> None:
    paths: list[Path] = []
    holders = ["another"]

    async def busy(path: Path) -> None:
        paths.append(path)

    async def main() -> None:
        stores = Stores()
        async with stores.open_store(
            Path("a"), lambda: File(holders), busy, FileStore(Path()).call
        ):
            pass

    asyncio.run(main())
    assert paths == [Path("a")]


def test_cells_work_on_the_same_case_one_at_a_time() -> None:
    events: list[str] = []

    async def cell(stores: Stores, name: str, case: str) -> None:
        async with stores.unit(Path("a"), case):
            events.append(f"{name} begins")
            await asyncio.sleep(0)
            events.append(f"{name} ends")

    async def main() -> None:
        stores = Stores()
        await asyncio.gather(cell(stores, "first", "case"), cell(stores, "second", "case"))
        await asyncio.gather(cell(stores, "third", "one"), cell(stores, "fourth", "other"))

    asyncio.run(main())
    assert events[:4] == ["first begins", "first ends", "second begins", "second ends"]
    assert events[4:6] == ["third begins", "fourth begins"]


@pytest.mark.parametrize(("processes", "slots"), [(0, 64), (2, 64), (4, 32), (16, 8)])
def test_slots_of_a_case_depend_on_the_number_of_processes(processes: int, slots: int) -> None:
    none: Any = None
    run = CellRun.__new__(CellRun)
    run._lane = Lane(none, none, Window(256), processes=processes)
    question: Any = SimpleNamespace(asked_after=None)
    case = EvalCase("case", (), 200 * (question,))
    assert run._share_for(case).slots == slots


class Dead:
    """Workers that fail at each case."""

    callers = 1

    async def compute(self, *_: Any) -> Any:
        raise WorldError("killed")


def test_cases_of_a_run_that_fails_leave_their_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case that is cancelled before its first step, too: other cells would wait forever."""
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    cell = open_cell(compose_config(["system=bm25", "dataset=demo", "tracking=none"]), "")

    async def main() -> None:
        connections = Connections(print)
        computing: Any = Dead()
        window = Window(1)
        lane = Lane(connections, Stores(), window, computing=computing, processes=1)
        with pytest.raises(WorldError, match="killed"):
            await CellRun(cell, Progress(), lane=lane).run(lambda _: None)

        await connections.aclose()
        entering = asyncio.create_task(window.enter(1))
        await asyncio.sleep(0)
        assert entering.done()

    asyncio.run(main())


class Judged(Progress):
    """Counts the questions that are judged."""

    count = 0

    def done(self, stage: str, *, reused: bool = False, failed: bool = False) -> None:
        self.count += stage == "judge"


def test_the_next_case_is_read_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    progress, read = Judged(), MemorySource.cases
    seen: list[tuple[int, int]] = []
    """For each case that is read, the questions judged before, and its own."""

    def cases(source: MemorySource) -> Iterator[EvalCase]:
        for case in read(source):
            seen.append((progress.count, len(case.questions)))
            yield case

    monkeypatch.setattr(MemorySource, "cases", cases)
    words = ["dataset=demo", "dataset.limit_cases=3", "system=no_memory", "tracking=none"]
    run_cell(open_cell(compose_config(words), ""), progress)

    # The totals are counted first.
    judged, asked = zip(*seen[3:], strict=True)
    assert judged == (0, asked[0], asked[0] + asked[1])


def test_progress_lines_of_a_large_sweep_fit_80_columns() -> None:
    cells: Any = [
        SimpleNamespace(
            number=n, is_finished=False, cell=SimpleNamespace(name=f"cell {n}", command="")
        )
        for n in range(1458)
    ]
    load = Load(1000, under_way=1000, retries=123, failures=45, calls=32100, waits=12345)
    connections: Any = SimpleNamespace(loads=lambda: [load])
    now = [0.0]
    display = SweepDisplay(Plan(cells), clock=lambda: now[0])
    display.watch(connections)
    for planned in cells[:27]:
        cell = display.progress(planned)
        cell.expect("answer", 10)
        for _ in range(5):
            cell.done("answer")

    display.live.tokens, display.live.cost_usd = 12_345_678_901, 12345.678
    now[0] = 10.0
    lines = display.lines
    assert lines == [
        "runs 0/1458, 27 under way  slots 1000/1000  3210 calls/s  429: 12345",
        "12.3B tokens  $12,345.68  123 retries  45 failed  about 17 min 50 s left",
    ]
    assert max(map(len, lines)) < 80


@pytest.mark.parametrize("width", [80, 120])
def test_live_display_fits_its_width_and_shows_stages(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [
        SimpleNamespace(
            number=number,
            is_finished=False,
            cell=SimpleNamespace(
                name=f"bm25 turn k={number} llm auto gpt-4o-mini-2024-07-18", command=""
            ),
        )
        for number in range(9)
    ]
    plan: Any = Plan(cells)  # type: ignore[arg-type]
    display = SweepDisplay(plan)
    for planned in cells[:2]:
        counts = display.progress(planned)  # type: ignore[arg-type]
        for stage, total in (("prepare", 10), ("answer", 385), ("judge", 385)):
            counts.expect(stage, total)
            for _ in range(total // 2):
                counts.done(stage)

    paid = Usage(Role.ANSWER, "gpt-4o-mini", "openai", prompt_tokens=1000, completion_tokens=10)
    display.spent([paid])
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(display.draw())

    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= width
    assert "runs 0/9, 2 under way" in lines[0]
    assert "1.0k tokens  $0.000156" in lines[1]
    assert "prepare 5/10     answer 192/385   judge 192/385    k=0" in lines[2]
    assert len(lines) == 4


def test_durations_are_written_in_seconds_minutes_and_hours() -> None:
    assert [duration(seconds) for seconds in (4.4, 61, 7300)] == ["4 s", "1 min 1 s", "2 h 1 min"]


@pytest.mark.parametrize("processes", [0, -1, "many"])
def test_invalid_number_of_processes_is_refused(processes: Any) -> None:
    with pytest.raises(UserError, match=r"hydra\.launcher\.processes must be at least 1"):
        SweepLauncher(processes).launch([], 0)
