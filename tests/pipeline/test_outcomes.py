"""Effects of the outcomes of a sweep's cells: its lists, its exit status, and errors."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra.core.utils import JobStatus

from memeval.errors import BudgetError, UserError, WorldError
from memeval.results import NoteKind
from memeval.runs.batch import job_return
from memeval.runs.invocation import Invocation
from memeval.runs.plan import CellOutcome, Plan
from memeval.runs.publish.publisher import PublishError
from memeval.runs.publish.publishing import Publishing


def planned(number: int, key: str = "") -> Any:
    config = SimpleNamespace(tracking=SimpleNamespace(name="none"), plots=False, objective="f1")
    folder = Path(f"runs/{number}")
    cell = SimpleNamespace(run_key=key, folder=folder, config=config, name="bm25")
    return SimpleNamespace(number=number, cell=cell)


def test_only_a_bug_ends_the_command_as_an_error() -> None:
    returned = job_return(CellOutcome(planned(0), error=ValueError("a bug")))
    assert returned.status is JobStatus.FAILED
    with pytest.raises(ValueError, match="a bug"):
        assert returned.return_value

    for error in (UserError("no key"), WorldError("no network")):
        returned = job_return(CellOutcome(planned(0), error=error))
        assert (returned.status, returned.return_value) == (JobStatus.COMPLETED, None)

    summary: Any = SimpleNamespace(metrics={"f1": 0.5})
    assert job_return(CellOutcome(planned(0), summary)).return_value == 0.5
    assert job_return(None).return_value is None


def test_a_cell_without_complete_results_raises_its_reason() -> None:
    with pytest.raises(WorldError, match="no network"):
        CellOutcome(planned(0), error=WorldError("no network")).complete_summary()

    note = SimpleNamespace(text="stopped: 9 of budget.calls=9 are spent")
    stopped: Any = SimpleNamespace(
        is_stopped=True, notes_of=lambda kind: [note] if kind is NoteKind.STOPPED else []
    )
    with pytest.raises(BudgetError, match=r"9 of budget\.calls=9"):
        CellOutcome(planned(0), stopped).complete_summary()


def test_cells_that_are_the_same_run_are_noted() -> None:
    def note(*keys: str) -> str | None:
        return Plan([planned(number, key) for number, key in enumerate(keys)]).repetition_note

    assert note("a", "b") is None
    assert str(note("a", "b", "a")).startswith("1 of these runs is the same as another")
    assert str(note("a", "a", "a")).startswith("2 of these runs are the same as another")


def test_a_run_that_was_not_published_is_listed_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done, full, under_way, waiting = (Future[str | None]() for _ in range(4))
    done.set_result("http://mlflow/1")
    full.set_exception(PublishError("the disk is full"))
    under_way.set_running_or_notify_cancel()
    futures = iter([done, full, under_way, waiting])
    monkeypatch.setattr("memeval.runs.publish.publishing.publish_cell", lambda *_: next(futures))
    publishing = Publishing(Invocation(tmp_path))
    finished: Any = SimpleNamespace()
    for number in range(4):
        publishing.add(CellOutcome(planned(number), finished))

    publishing.add(CellOutcome(planned(4), error=UserError("no key")))
    publishing.stop(CellOutcome(planned(0), error=BudgetError("spent")))
    publishing.close()

    cells = Invocation(tmp_path).done_cells()
    stopped = "the command was stopped"
    assert [(cell.job, cell.url, cell.not_logged) for cell in cells] == [
        (0, "http://mlflow/1", None),
        (1, None, "the disk is full"),
        (2, None, stopped),
        (3, None, stopped),
    ]
    failed = Invocation(tmp_path).failed_cells()
    assert [(cell.job, cell.status) for cell in failed] == [(0, 1), (4, 2)]
    assert failed[0].hints[0].endswith("the same command with a larger budget continues it")
    assert publishing.outcomes[0].summary is finished
