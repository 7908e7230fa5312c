"""How far a run is, as its lines say it."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memeval.display.progress import Countdown, RunDisplay, StageCount, rate
from memeval.runs.plan import Plan
from memeval.runs.publish.publisher import Published
from memeval.runs.publish.publishing import Publishing
from memeval.runs.session import Session
from memeval.runs.sweep_display import SweepDisplay


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def calling(under_way: int) -> Any:
    """Connections with one endpoint that has requests under way."""
    load = SimpleNamespace(under_way=under_way, retries=0, failures=0, calls=0, waits=0)
    settings = SimpleNamespace(max_concurrency=16)
    return SimpleNamespace(endpoints=[SimpleNamespace(load=load, settings=settings)])


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
def test_what_failed_is_not_done(count: StageCount, text: str) -> None:
    assert count.text == text


def test_the_last_line_says_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    with RunDisplay("a run") as progress:
        progress.expect("answer", 3)
        progress.done("answer")
        progress.done("answer", failed=True)
        progress.done("answer", failed=True)

    assert capsys.readouterr().err.splitlines()[-1] == "  answer 1/3 (2 failed)"


def test_calls_under_way_are_said_before_the_first_reply(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    progress = RunDisplay("a run", clock)
    progress.expect("answer", 20)
    progress.watch(calling(8))
    clock.now = 9.0
    progress.beat()
    assert capsys.readouterr().err == ""
    clock.now = 10.0
    progress.beat()
    assert capsys.readouterr().err == "  answer 0/20; 8 calls under way\n"
    clock.now = 69.0
    progress.beat()
    assert capsys.readouterr().err == "", "then once a minute"


def test_a_sweep_says_what_is_under_way_before_the_first_reply(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    cells: Any = [
        SimpleNamespace(number=n, is_finished=False, cell=SimpleNamespace(name=f"cell {n}"))
        for n in range(3)
    ]
    display = SweepDisplay(Plan(cells), clock=clock)
    display.watch(calling(16))
    display.progress(cells[0]).expect("answer", 100)
    clock.now = 10.0
    display.tick()
    assert capsys.readouterr().err == "runs 0/3, 1 under way  slots 16/16\n"


def test_time_left_is_said_once_it_means_something() -> None:
    """A slow ingest says nothing of the answers, which are faster."""
    clock = Clock()
    progress = RunDisplay("a run", clock)
    progress.expect("prepare", 10)
    progress.expect("answer", 100)
    for _ in range(9):
        clock.now += 30
        progress.done("prepare")

    assert progress.left_s(clock.now) is None, "no answer was made yet"
    progress.done("prepare")
    for _ in range(4):
        clock.now += 3
        progress.done("answer")

    assert progress.left_s(clock.now) is None, "too few"
    clock.now += 3
    progress.done("answer")
    assert progress.left_s(clock.now) == 95 * 3
    assert progress.left_s(clock.now, under_way=4) is None, "a single round of calls"


def test_a_sweep_says_no_time_left_from_one_sample() -> None:
    clock = Clock()
    cells: Any = [
        SimpleNamespace(number=n, is_finished=False, cell=SimpleNamespace(name=f"cell {n}"))
        for n in range(2)
    ]
    display = SweepDisplay(Plan(cells), clock=clock)
    progress = display.progress(cells[0])
    progress.expect("prepare", 2)
    progress.expect("answer", 10)
    clock.now = 60.0
    progress.done("prepare")
    assert display.lines == ["runs 0/2, 1 under way"]


def test_long_work_without_calls_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    countdown = Countdown("checking 475 runs", 475, clock)
    for _ in range(475):
        clock.now += 0.1
        countdown.done()

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 9
    assert lines[0].startswith("checking 475 runs: 5")
    assert "left" in lines[3] and "left" not in lines[0]


def test_publishing_says_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published: Future[Published] = Future()
    monkeypatch.setattr("memeval.runs.publish.publishing.publish_cell", lambda *_: published)
    publishing = Publishing(Session(tmp_path))
    outcome = SimpleNamespace(planned=SimpleNamespace(number=0, cell=None), summary=1, reused=False)
    publishing.add(outcome)  # type: ignore[arg-type]
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if not published.done():
            published.set_result(Published())

    publishing.wait(say, every_s=0.001)
    assert said[0] == "publishing: 1 of 1 runs left"


def test_a_sweep_that_is_published_says_so() -> None:
    display = SweepDisplay(Plan([]))
    assert display.lines == ["runs 0/0, publishing"]
