"""Progress lines of a run or a sweep."""

from __future__ import annotations

import io
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from memeval.llm.load import Load
from memeval.runs.display.progress import Countdown, RunDisplay, StageCount, rate
from memeval.runs.display.sweep import SweepDisplay
from memeval.runs.invocation import Invocation
from memeval.runs.plan import CellOutcome, Plan
from memeval.runs.publish.publisher import PUBLISHING
from memeval.runs.publish.publishing import Publishing

FINISHED: Any = SimpleNamespace(is_stopped=False)
STOPPED: Any = SimpleNamespace(is_stopped=True)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def calling(under_way: int) -> Any:
    """Connections to one endpoint with requests in progress."""
    return SimpleNamespace(loads=lambda: [Load(slots=16, under_way=under_way)])


@pytest.mark.parametrize(
    ("made", "seconds", "text"),
    [
        (0, 10.0, ""),
        (5, 0.0, ""),
        (1, 10.0, ""),
        (25, 10.0, "2.5/s"),
        (5188, 10.0, "519/s"),
        (64, 320.0, "12/min"),
        (3, 7200.0, "1.5/h"),
    ],
)
def test_a_rate_has_a_unit_in_which_it_is_one_at_least(
    made: int, seconds: float, text: str
) -> None:
    assert rate(made, seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (StageCount(total=24, done=24), "24/24"),
        (StageCount(total=24, done=24, failed=24), "0/24 (24 failed)"),
        (StageCount(total=24, done=20, reused=12, failed=1), "19/24 (12 reused, 1 failed)"),
    ],
)
def test_failed_calls_are_not_counted_as_done(count: StageCount, text: str) -> None:
    assert count.text == text


def test_last_line_counts_failed_calls(capsys: pytest.CaptureFixture[str]) -> None:
    with RunDisplay("a run") as progress:
        progress.expect("answer", 3)
        progress.done("answer")
        progress.done("answer", failed=True)
        progress.done("answer", failed=True)

    assert capsys.readouterr().err.splitlines()[-1] == "  answer 1/3 (2 failed)"


@pytest.mark.parametrize(
    ("summary", "line"),
    [
        (FINISHED, "  answer 1/1"),
        (STOPPED, "  stopped at: answer 1/1"),
        (None, "  stopped at: answer 1/1"),
    ],
)
def test_last_line_of_a_run_comes_before_its_publication(
    summary: Any, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (planned,) = cells_of_a_sweep(False)
    with RunDisplay("a run") as progress:
        progress.expect("answer", 1)
        progress.done("answer")
        progress.report_end(CellOutcome(planned, summary))
        progress.say(PUBLISHING)

    assert capsys.readouterr().err.splitlines() == ["a run", line, PUBLISHING]


@pytest.mark.parametrize("stages", [[], ["answer"]])
def test_a_run_without_work_leaves_no_empty_line(
    stages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with RunDisplay("a run") as progress:
        for stage in stages:
            progress.expect(stage, 1)

    # The sequences of a terminal: one line up, and erase it.
    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K") == (not stages)


def test_run_reports_open_calls_before_the_first_reply(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    progress = RunDisplay("a run", clock)
    progress.expect("answer", 20)
    progress.watch(calling(8))
    clock.now = 9.0
    progress.tick()
    assert capsys.readouterr().err == ""
    clock.now = 10.0
    progress.tick()
    assert capsys.readouterr().err == "  answer 0/20; 8 calls under way\n"
    clock.now = 69.0
    progress.tick()
    assert capsys.readouterr().err == "", "then once a minute"


def test_a_stage_of_many_small_cases_does_not_print_a_line_for_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    progress = RunDisplay("a run", clock)
    for second in range(40):
        clock.now = float(second)
        progress.expect("answer", 1)
        progress.done("answer")

    printed = [line.split(";")[0] for line in capsys.readouterr().err.splitlines()]
    assert printed == ["  answer 11/11", "  answer 21/21", "  answer 31/31"]


def test_sweep_reports_open_runs_before_the_first_reply(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    cells: Any = [
        SimpleNamespace(
            number=n, is_finished=False, cell=SimpleNamespace(name=f"cell {n}", command="")
        )
        for n in range(3)
    ]
    display = SweepDisplay(Plan(cells), clock=clock)
    display.watch(calling(16))
    display.progress(cells[0]).expect("answer", 100)
    clock.now = 10.0
    display.tick()
    assert capsys.readouterr().err == "runs 0/3, 1 under way  slots 16/16\n"


def test_time_left_needs_enough_answers() -> None:
    """A slow ingest predicts nothing about the answers, which are faster."""
    clock = Clock()
    progress = RunDisplay("a run", clock)
    progress.expect("prepare", 10)
    progress.expect("answer", 100)
    for _ in range(9):
        clock.now += 30
        progress.done("prepare")

    assert progress.remaining_s(clock.now) is None, "no answer was made yet"
    progress.done("prepare")
    for _ in range(4):
        clock.now += 3
        progress.done("answer")

    assert progress.remaining_s(clock.now) is None, "too few"
    clock.now += 3
    progress.done("answer")
    assert progress.remaining_s(clock.now) == 95 * 3
    assert progress.remaining_s(clock.now, under_way=4) is None, "a single round of calls"


def test_a_sweep_says_no_time_left_from_one_sample() -> None:
    clock = Clock()
    cells: Any = [
        SimpleNamespace(
            number=n, is_finished=False, cell=SimpleNamespace(name=f"cell {n}", command="")
        )
        for n in range(2)
    ]
    display = SweepDisplay(Plan(cells), clock=clock)
    progress = display.progress(cells[0])
    progress.expect("prepare", 2)
    progress.expect("answer", 10)
    clock.now = 60.0
    progress.done("prepare")
    assert display.lines == ["runs 0/2, 1 under way"]


def test_sweep_shows_no_time_left_once_all_runs_have_ended() -> None:
    """Identical runs are made once: the second ends with the results of the first."""
    clock = Clock()
    cells: Any = [
        SimpleNamespace(
            number=n, is_finished=False, cell=SimpleNamespace(name="a cell", command="")
        )
        for n in range(2)
    ]
    display = SweepDisplay(Plan(cells), clock=clock)
    display.progress(cells[0])
    clock.now = 60.0
    summary: Any = SimpleNamespace(is_stopped=False, statuses={"ok": 1})
    for planned, reused in zip(cells, (False, True), strict=True):
        display.report_end(CellOutcome(planned, summary, reused=reused))

    assert display.lines == ["runs 2/2, publishing"]


def test_countdown_reports_progress_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    countdown = Countdown("checking 475 runs", 475, clock)
    for _ in range(475):
        clock.now += 0.1
        countdown.done()

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 9
    assert lines[0].startswith("checking 475 runs: 5")
    assert "left" in lines[3] and "left" not in lines[0]


def said_while_publishing(folder: Path, monkeypatch: pytest.MonkeyPatch, last: str) -> list[str]:
    """Lines printed while a run is published; publication ends after the line `last`."""
    published: Future[str | None] = Future()
    monkeypatch.setattr("memeval.runs.publish.publishing.publish_cell", lambda *_: published)
    publishing = Publishing(Invocation(folder))
    outcome = SimpleNamespace(planned=SimpleNamespace(number=0, cell=None), summary=1, reused=False)
    publishing.add(outcome)  # type: ignore[arg-type]
    messages: list[str] = []

    def say(line: str) -> None:
        messages.append(line)
        if line == last and not published.done():
            published.set_result(None)

    publishing.wait(say, every_s=0.001)
    return messages


def test_short_publication_prints_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = said_while_publishing(tmp_path, monkeypatch, PUBLISHING)
    assert said == [PUBLISHING], "before the wait"


def test_long_publication_reports_how_many_runs_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = "publishing: 1 of 1 run left"
    assert said_while_publishing(tmp_path, monkeypatch, left)[:2] == [PUBLISHING, left]


def cells_of_a_sweep(*finished: bool) -> Any:
    """Planned cells with the fields that a display reads."""
    return [
        SimpleNamespace(
            number=n,
            is_finished=done,
            cell=SimpleNamespace(name=f"cell {n}", command="", run_key=str(n)),
        )
        for n, done in enumerate(finished)
    ]


def test_failed_and_stopped_runs_are_not_finished(capsys: pytest.CaptureFixture[str]) -> None:
    cells = cells_of_a_sweep(False, False, False)
    with SweepDisplay(Plan(cells), clock=Clock()) as display:
        for cell in cells:
            display.progress(cell).expect("answer", 2)

        display.report_end(CellOutcome(cells[0], summary=FINISHED))
        display.report_end(CellOutcome(cells[1], error=ValueError()))
        display.report_end(CellOutcome(cells[2], summary=STOPPED))

    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "1 of 3 runs finished in 0 s, 1 failed, 1 stopped"
    assert lines[1:-1] == [
        "[1/3] cell 0: answer 0/2",
        "[2/3] cell 1: failed at: answer 0/2",
        "[3/3] cell 2: stopped at: answer 0/2",
    ]


def test_run_that_ends_before_any_work_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    cells = cells_of_a_sweep(False, False)
    with SweepDisplay(Plan(cells), clock=Clock()) as display:
        display.progress(cells[0])
        display.report_end(CellOutcome(cells[0], error=ValueError()))
        display.progress(cells[1])

    output = capsys.readouterr().err.splitlines()
    assert output[1] == "[1/2] cell 0: failed before anything was done"
    assert output[2] == "cell 1: stopped before anything was done"


@pytest.mark.parametrize(
    ("finished", "line"),
    [
        ((False,), "1 run"),
        ((True,), "1 run, already finished"),
        ((True, False), "2 runs, 1 already finished"),
        ((True, True), "2 runs, both already finished"),
        ((True, True, True), "3 runs, all already finished"),
    ],
)
def test_the_first_line_counts_the_runs(
    finished: tuple[bool, ...], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with SweepDisplay(Plan(cells_of_a_sweep(*finished))):
        pass

    assert capsys.readouterr().err.splitlines()[0] == line


def test_runs_of_one_name_are_told_apart_by_settings(capsys: pytest.CaptureFixture[str]) -> None:
    cells = cells_of_a_sweep(True, True, True)
    for cell, swept in zip(cells[:2], ("system.rrf_k=10", "system.rrf_k=60"), strict=True):
        cell.cell.name, cell.cell.command = "hybrid", f"python -m memeval {swept} seed=1"

    with SweepDisplay(Plan(cells), clock=Clock()) as display:
        for cell in cells:
            display.report_end(CellOutcome(cell, error=ValueError()))

    assert [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()[1:4]] == [
        "[1/3] hybrid system.rrf_k=10",
        "[2/3] hybrid system.rrf_k=60",
        "[3/3] cell 2",
    ]


def test_identical_runs_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    cells = cells_of_a_sweep(True, True, False)
    cells[1].cell.run_key = cells[0].cell.run_key
    with SweepDisplay(Plan(cells)):
        pass

    assert capsys.readouterr().err.splitlines()[1].startswith("note: 1 of these runs is the")


def test_sweep_reports_that_it_is_publishing() -> None:
    display = SweepDisplay(Plan([]))
    assert display.lines == ["runs 0/0, publishing"]


def test_bars_show_each_stage_and_the_figures_of_the_run_once() -> None:
    clock = Clock()
    progress = RunDisplay("a run", clock)
    progress.expect("prepare", 10)
    progress.expect("answer", 100)
    for _ in range(10):
        progress.done("prepare", reused=True)
    for number in range(20):
        clock.now += 1
        progress.done("answer", failed=number == 3)

    progress.scored(1.0)
    console = Console(width=100, force_terminal=False)
    with console.capture() as capture:
        console.print(progress.draw())

    prepare, answer = (" ".join(line.split()) for line in capture.get().splitlines())
    assert prepare.startswith("prepare ") and prepare.endswith(" 10/10 10 reused")
    assert answer.startswith("answer ")
    assert answer.endswith(" 20/100 1.0/s 1 min 20 s 1 failed, acc 100.0")

    console.width = 40
    with console.capture() as capture:
        console.print(progress.draw())

    assert len(capture.get().splitlines()) == 2, "a stage keeps to its line"
