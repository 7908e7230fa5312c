"""memeval's own launchers for a sweep: `hydra/launcher=memeval`, the default, and
`hydra/launcher=ray`. Hydra finds both in the namespace package hydra_plugins.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.utils import JobReturn
from hydra.experimental.callback import Callback
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from memeval.config.integers import quote_integers
from memeval.errors import UserError
from memeval.process import started

if TYPE_CHECKING:
    from memeval.llm.budget import Budget, SpendingLimits
    from memeval.runs.plan import Plan
    from memeval.runs.schedule import ComputePool

Start = Callable[["Plan"], "ComputePool | None"]
"""Starts the processes that compute a plan; returns None if this process computes it."""
_on_plan: Callable[[Plan, Start], None] | None = None


class SweepLauncher(Launcher):
    """Composes and checks all cells of a batch, and then runs them as one piece of work."""

    def __init__(self, processes: int | None = None, keep_going: bool = False) -> None:
        self.processes, self.keep_going = processes, keep_going
        self._budgets: dict[SpendingLimits, Budget] = {}

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.loader: ConfigLoader = hydra_context.config_loader
        self.config = config
        # The sweeper composes each job only to check that it can be composed. That takes as long as
        # the real composition, and stops at the first mistake.
        hydra_context.config_loader = _UncheckedLoader(self.loader)  # type: ignore[assignment]

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        from memeval.runs.batch import job_return, plan_jobs
        from memeval.runs.cell import run_plan
        from memeval.runs.invocation import current_invocation

        _check_counts(processes=self.processes)
        if not job_overrides:
            raise UserError(
                "the sweep has no runs: its glob() matches no option, or its range() is empty",
                "the options of a group:  python -m memeval --help GROUP",
            )
        if _on_plan is not None:
            self._check_can_be_planned()

        invocation = current_invocation(in_sweep=True)
        plan = plan_jobs(
            self.loader,
            self.config,
            # Optuna also chooses integers, for groups that take any.
            list(map(quote_integers, job_overrides)),
            initial_job_idx,
            invocation=invocation,
            keep_going=self.keep_going,
        )
        if _on_plan is not None:
            _on_plan(plan, self.start)
            return []

        outcomes = run_plan(plan, invocation, self.start, budgets=self._budgets)
        return [job_return(outcomes.get(initial_job_idx + at)) for at in range(len(job_overrides))]

    def _check_can_be_planned(self) -> None:
        sweeper = str(self.config.hydra.sweeper.get("_target_"))
        if not sweeper.endswith("BasicSweeper"):
            raise UserError(
                f"hydra.sweeper {sweeper} chooses its runs by earlier results, so they can't be "
                "planned",
                "plan one of its runs:  python -m memeval plan ... hydra/sweeper=basic",
            )

    def start(self, plan: Plan) -> ComputePool | None:
        from memeval.runs.compute.workers import start_workers

        return start_workers(plan, self.processes)


class RayLauncher(SweepLauncher):
    """A `SweepLauncher` that spreads the cases over the workers of a Ray cluster."""

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        cases: int | None = None,
        variables: Sequence[str] = (),
        keep_going: bool = False,
    ) -> None:
        super().__init__(keep_going=keep_going)
        self._counts = {"workers": workers, "cases": cases}
        self._address, self._variables = address, variables

    def start(self, plan: Plan) -> ComputePool | None:
        from memeval.runs.launch.ray_launcher import start_ray

        _check_counts(**self._counts)
        return start_ray(plan, address=self._address, variables=self._variables, **self._counts)


def _check_counts(**counts: Any) -> None:
    """Raises `UserError` for a count of the launcher's settings that is not a positive integer."""
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or count < 1):
            raise UserError(f"hydra.launcher.{name} must be at least 1, got {count}")


@contextmanager
def planning(on_plan: Callable[[Plan, Start], None]) -> Iterator[None]:
    """In the block, no sweep runs: `on_plan` gets each plan and the function that starts it."""
    global _on_plan  # noqa: PLW0603 - Hydra creates the launcher without memeval's arguments
    _on_plan = on_plan
    try:
        yield
    finally:
        _on_plan = None


class _UncheckedLoader:
    """A config loader for the sweeper that composes nothing: only the launcher composes jobs."""

    def __init__(self, loader: ConfigLoader) -> None:
        self._loader = loader

    def load_sweep_config(
        self, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        return master_config

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


FOLDER = "JOBLIB_TEMP_FOLDER"
"""Environment variable that sets joblib's folder of temporary files."""


class PrepareLauncher(Callback):
    """Gives joblib a folder whose name its processes have in their environment, and prints the
    folder with the output of submitit's jobs.

    Some of joblib's processes outlive a parent that was killed: the guardian finds them by the
    folder's name.
    """

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        launcher = str(OmegaConf.select(config, "hydra.launcher._target_"))
        if "joblib" in launcher and FOLDER not in os.environ:
            os.environ[FOLDER] = str(started.make_folder("joblib"))
        if "submitit" in launcher:
            # The jobs print into files: nothing else is shown before the last one ends.
            folder = str(OmegaConf.select(config, "hydra.launcher.submitit_folder"))
            folder = folder.removesuffix("/%j")
            print(f"each run is a submitit job; the jobs' output is in {folder}", file=sys.stderr)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        loky = sys.modules.get("joblib.externals.loky")
        if loky is not None:
            # At exit, its processes get little time, and it warns of files that they leave.
            loky.get_reusable_executor().shutdown()
