"""The planned work of a sweep."""

from collections.abc import Sequence

from msgspec import Struct

from memeval.config.roles import called_roles, settings_of_role
from memeval.config.schema import PREPARE
from memeval.errors import BudgetError, UserError, WorldError
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.measure.summary import EarlierRun, read_earlier
from memeval.pipeline.open.cell import Cell
from memeval.results import NoteKind, RunSummary
from memeval.runs.invocation import FailedCell, failed_cell
from memeval.text.shown import counted

Reach = tuple[str, ...]
"""URLs of the endpoints that a cell waits for; empty if it only computes."""


class PlannedCell(Struct, frozen=True):
    """A cell of the sweep, and its existing results."""

    number: int
    """Number in the sweep, starting at 0."""
    cell: Cell
    earlier: EarlierRun
    """Results of an earlier run. Its summary is set if nothing is left to do."""

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.earlier.summary is not None

    @property
    def reach(self) -> Reach:
        """URLs of the endpoints that the cell waits for: its models, embedder and reranker."""
        config = self.cell.config
        urls = {settings_of_role(config.llm, role).base_url for role in called_roles(config.llm)}
        if config.embedder.name == "openai":
            urls.add(config.embedder.base_url)

        urls.add(config.reranker.base_url)
        return tuple(sorted(filter(None, urls)))

    @property
    def may_compute_elsewhere(self) -> bool:
        """Whether other processes may compute its units.

        Under `fresh=prepare`, cells that share a memory rebuild it only once: only this process
        knows whether one of them has done so.
        """
        return not self.cell.redoes(PREPARE)


class CellOutcome(Struct, frozen=True):
    planned: PlannedCell
    summary: RunSummary | None = None
    """None if it failed."""
    reused: bool = False
    """True if it was finished before."""
    error: Exception | None = None
    """The reason for its failure."""

    @property
    def failure(self) -> FailedCell | None:
        """The failure, for the invocation's list; None for a bug in memeval."""
        if isinstance(self.error, UserError | WorldError):
            return failed_cell(self.planned.number, self.error)

        return None

    def complete_summary(self) -> RunSummary:
        """The summary. Raises a failed cell's error, and `BudgetError` for one that was stopped."""
        if self.summary is None:
            assert self.error is not None
            raise self.error

        if self.summary.is_stopped:
            notes = self.summary.notes_of(NoteKind.STOPPED)
            raise BudgetError(" ".join(note.text for note in notes))

        return self.summary


class Plan(Struct, frozen=True):
    """The cells of a sweep, in its order."""

    cells: Sequence[PlannedCell]

    @property
    def open_cells(self) -> list[PlannedCell]:
        return [planned for planned in self.cells if not planned.is_finished]

    @property
    def repetition_note(self) -> str | None:
        """A note on the number of cells that are the same run as another; None if all differ."""
        count = len(self.cells) - len({planned.cell.run_key for planned in self.cells})
        if not count:
            return None

        subject = counted(count, "of these runs is", plural="of these runs are")
        return f"{subject} the same as another run: the varied settings have no effect here"


def earlier_run(cell: Cell) -> EarlierRun:
    """Results of an earlier run of a cell; none under `fresh`."""
    return EarlierRun() if cell.config.fresh else read_earlier(cell)


def say_damage(cell: Cell, before: EarlierRun, progress: Progress) -> None:
    for damage in before.damage:
        progress.say(
            f"  the finished run {cell.run_key} is damaged: {damage}; memeval recreates it from "
            "its rows"
        )
