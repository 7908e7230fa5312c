"""Runs a cell by itself, as the schedule of a sweep does, and publishes nothing."""

from collections.abc import Callable

from memeval.pipeline.execute.lane import Lane
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.execute.repeat import Finished
from memeval.pipeline.execute.run import CellRun, window_limit
from memeval.pipeline.execute.stores import Stores
from memeval.pipeline.execute.window import Window
from memeval.pipeline.measure.summary import finish
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import Connections
from memeval.results import RunSummary
from memeval.runs.loop import run_loop


def run_cell(
    cell: Cell,
    progress: Progress | None = None,
    end: Callable[[Cell, Finished], RunSummary] = finish,
) -> RunSummary:
    """The result of `end`, by default the summary of the cell's run."""
    progress = progress or Progress()
    connections = Connections(progress.say)
    lane = Lane(connections, Stores(), Window(window_limit(cell)))

    async def run() -> RunSummary:
        try:
            cell_run = CellRun(cell, progress, lane=lane)
            return await cell_run.run(lambda finished: end(cell, finished))
        finally:
            await connections.aclose()

    return run_loop(run())
