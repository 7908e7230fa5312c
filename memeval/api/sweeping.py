"""Sweeps: several runs, as one piece of work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.api.arguments import check_names, check_types
from memeval.api.comparing import Comparisons
from memeval.api.finished import FinishedRun
from memeval.api.notebook import LONGEST_LINE, Table, first_lines, list_html, runs_html
from memeval.api.overrides import as_overrides, as_value, check_words, plain
from memeval.api.threads import await_thread, composing, in_thread
from memeval.comparison.paper.build import paper_table
from memeval.errors import RefusedError, UserError, unknown
from memeval.results.files import temporary_folder
from memeval.text.shown import counted, one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from memeval.runs.forecast.forecast import Forecast
    from memeval.runs.invocation import FailedCell, Invocation
    from memeval.runs.launch.launcher import Start
    from memeval.runs.plan import Plan


@dataclass(frozen=True, repr=False)
class Sweep:
    """A sweep that has ended; it iterates over its runs."""

    runs: Sequence[FinishedRun]
    """The finished runs, in the sweep's order; cells that no setting distinguishes are one run."""
    failures: Sequence[FailedCell]
    """Cells that could not be run, and why."""
    comparisons: Comparisons
    """How the runs of each data set differ from the first of them; empty if nothing can be
    compared.
    """
    folder: Path
    """Contains the comparison as Markdown, CSV, plots and a page."""

    def __iter__(self) -> Iterator[FinishedRun]:
        return iter(self.runs)

    def __repr__(self) -> str:
        return "\n".join([f"<{self._head()}>", repr(self.comparisons)])

    def _repr_html_(self) -> str:
        failures = [f"failed: {failure.message}" for failure in self.failures]
        lines = [
            self._head(),
            *first_lines(failures, ".failures"),
            *first_lines(self.comparisons.sentences, ".comparisons.sentences"),
        ]
        return list_html(lines) + runs_html([run.summary for run in self.runs])

    def _head(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        runs = counted(len(self.runs), "run")
        return f"Sweep of {runs}{failed}: {one_line(self.folder.name, LONGEST_LINE)}"

    @check_types
    def table(
        self,
        columns: Sequence[str] = (),
        *,
        rows: Sequence[str] = (),
        dataset: str | None = None,
        caption: str = "",
        force: bool = False,
    ) -> Table:
        """The sweep's runs as the table of a paper (see `memeval.table`); only those of
        `dataset`, if the sweep has several data sets.

        Raises `UserError` for runs that may not share a table, unless `force`.
        """
        runs = self._of(dataset)
        return Table(paper_table(runs, columns, rows=rows, caption=caption, force=force))

    def plot(self, dataset: str | None = None) -> Figure:
        """Accuracies with 95 % intervals, the highest first, as a figure of matplotlib; no file is
        written.

        Raises `UserError` if the sweep has several data sets and none is chosen, and if nothing
        was judged.
        """
        from memeval.report.plots.draw import draw_figure
        from memeval.report.plots.sweep import ranked_plot

        runs = self._of(dataset)
        if all(run.metrics.get("accuracy") is None for run in runs):
            raise UserError("no run has an accuracy to plot: nothing was judged")

        return draw_figure(ranked_plot([run.summary for run in runs]))

    def to_pandas(self) -> pd.DataFrame:
        """A row per run: `run_key`, `name`, `dataset`, `valid`, the settings that differ, and all
        metrics, unrounded, shares in [0, 1]; values that were not measured are missing.
        """
        import pandas as pd

        from memeval.report.differences import differing_settings

        settings = differing_settings([run.summary for run in self.runs])
        rows = []
        figures: dict[str, type] = {}
        for run in self.runs:
            row: dict[str, Any] = {
                "run_key": run.key,
                "name": run.name,
                "dataset": run.summary.dataset,
                "valid": run.valid,
            }
            for name in settings:
                row.setdefault(name, run.params.get(name))

            rows.append(row | run.metrics)
            figures.update(dict.fromkeys(run.metrics, float))

        # A figure that no run has is NaN: a column of None would not be numeric.
        return pd.DataFrame(rows).astype(figures)

    def _of(self, dataset: str | None) -> list[FinishedRun]:
        """The runs of one data set. Raises `UserError`."""
        names = list(dict.fromkeys(run.summary.dataset for run in self.runs))
        if not names:
            raise UserError("the sweep has no finished run", "to see why:  its .failures")
        if dataset is None and len(names) > 1:
            raise UserError(
                f"the sweep has {len(names)} data sets: choose one",
                f"use:  dataset={one_line(names[0])!r}",
            )

        chosen = names[0] if dataset is None else dataset
        if chosen not in names:
            raise unknown("dataset", chosen, names)

        return [run for run in self.runs if run.summary.dataset == chosen]


def sweep(
    *overrides: str, progress: bool = True, keep_going: bool = False, **settings: Any
) -> Sweep:
    """Runs a sweep, as `python -m memeval -m` does, and compares its runs.

    Alternatives are lists, or strings with commas: `sweep(system=["bm25", "rag"], top_k="5,10")`
    has four runs. Alternatives of a group's field are an override, `"system.rrf_k=10,60"`, because
    the field may be a list. `"+sweep=NAME"` is a sweep from a file. Finished work is not repeated.

    All runs are checked before the first call; with `keep_going`, the valid ones are run even if
    others can't be run. `progress=False` prints nothing. Raises `UserError` if a run can't be made,
    `WorldError` if the disk can't be written; a run that fails is in `failures`.
    """
    check_names(sweep, settings)
    words = _words(overrides, settings)
    work = partial(_sweep, words, progress=progress, keep_going=keep_going)
    return in_thread(work)


async def asweep(
    *overrides: str, progress: bool = True, keep_going: bool = False, **settings: Any
) -> Sweep:
    """Awaitable `sweep`: other tasks of the event loop continue. Cancelling it ends the sweep as a
    first Ctrl-C does: model calls in progress finish, and the same call continues it.
    """
    check_names(asweep, settings)
    words = _words(overrides, settings)
    work = partial(_sweep, words, progress=progress, keep_going=keep_going)
    return await await_thread(work)


def plan(*overrides: str, exact: bool = False, **settings: Any) -> Forecast:
    """Work and cost of a run or a sweep: runs, calls, tokens, dollars, minutes, and the detectable
    differences. Nothing is run.

    `exact` composes every open question. Raises `UserError` if a run can't be made.
    """
    check_names(plan, settings)
    words = _words(overrides, settings)

    def work() -> Forecast:
        with _refusals_as_mistakes():
            return forecast_of(words, exact=exact)

    return in_thread(work)


def forecast_of(words: Sequence[str], *, exact: bool) -> Forecast:
    """The forecast of the runs that the overrides compose.

    Raises `UserError`, and `RefusedError` if runs can't be made.
    """
    from memeval.runs.forecast.forecast import check_stores_are_read, forecast
    from memeval.runs.invocation import Invocation
    from memeval.runs.loop import run_loop
    from memeval.runs.spending import shared_budget

    # Hydra's output for a plan is discarded.
    with temporary_folder("plan") as folder:
        plan, _ = _compose(words, Path(folder))
        failures = Invocation(Path(folder)).failed_cells()

    check_stores_are_read(plan)
    shared_budget(plan, {})
    return replace(run_loop(forecast(plan, exact=exact)), failures=failures)


def _words(overrides: Sequence[str], settings: Mapping[str, Any]) -> list[str]:
    """The overrides of a sweep: a string with commas, or a list or range for a group or a field
    outside of the groups, contains its alternatives. Raises `UserError` for an override that is not
    a string, and for an empty list.
    """
    check_words(overrides)
    words, others = [*overrides], {}
    for name, given in settings.items():
        value = plain(given)
        # The fields of groups may be lists themselves; no other field is one.
        if isinstance(value, list | tuple | range) and "." not in name:
            if not value:
                raise UserError(f"{name} has no values: {value!r} is empty")

            words.append(f"{name}={','.join(map(as_value, value))}")
        elif isinstance(value, str) and "," in value:
            words.append(f"{name}={value}")
        else:
            others[name] = value

    return [*words, *as_overrides(others)]


def _sweep(words: Sequence[str], *, progress: bool, keep_going: bool) -> Sweep:
    from memeval.runs.cell import run_plan
    from memeval.runs.compose.words import KEEPS_GOING
    from memeval.runs.display.sweep import SweepDisplay
    from memeval.runs.invocation import new_invocation
    from memeval.runs.job import check_writable, is_repeated
    from memeval.runs.launch.application import foreign_launcher

    if launcher := foreign_launcher(words):
        raise UserError(
            f"{launcher} can't run a sweep from Python",
            "use:  hydra/launcher=memeval or hydra/launcher=ray, or the command line",
        )

    check_writable()
    invocation = new_invocation(list(filter(is_repeated, words)))
    if keep_going:
        words = [*words, KEEPS_GOING]

    with _refusals_as_mistakes():
        plan, start = _compose(words, invocation.folder)

    show = partial(SweepDisplay, quiet=not progress)
    ends = run_plan(plan, invocation, start, budgets={}, show=show)
    for outcome in ends.values():
        if outcome.error is not None and outcome.failure is None:
            raise outcome.error  # a bug in memeval

    return _conclude(invocation)


def _compose(words: Sequence[str], folder: Path) -> tuple[Plan, Start]:
    from memeval.runs.invocation import composing_in
    from memeval.runs.launch.application import compose_plan

    with composing(), composing_in(folder):
        return compose_plan(words)


def _conclude(invocation: Invocation) -> Sweep:
    from memeval.runs.publish.conclusion import conclude

    conclusion = conclude(invocation.folder, invocation.done_cells())
    if conclusion.cells:
        conclusion.write(draws=True)
        conclusion.log()

    runs: dict[str, FinishedRun] = {}
    for cell, summary in zip(conclusion.cells, conclusion.summaries, strict=True):
        runs[summary.run_key] = FinishedRun(Path(cell.folder), summary)

    return Sweep(
        runs=list(runs.values()),
        failures=invocation.failed_cells(),
        comparisons=Comparisons(conclusion.comparisons),
        folder=invocation.folder,
    )


@contextmanager
def _refusals_as_mistakes() -> Iterator[None]:
    """Raises `UserError`, with each mistake once, if no run of a sweep can be run."""
    try:
        yield
    except RefusedError as refusal:
        hints_of = {error.message: error.hints for error in refusal.errors}
        hints = dict.fromkeys(chain.from_iterable(hints_of.values()))
        raise UserError("; ".join(hints_of), *hints) from refusal
