"""`python -m memeval plan [overrides]`: what a run or a sweep would do and cost. Nothing is run."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memeval.cli.interrupt import run_loop
from memeval.cli.run import hydra_application, reorder_arguments, report_refusal
from memeval.cli.session import VARIABLE
from memeval.cli.terminal import folded
from memeval.config.paths import outputs_dir
from memeval.config.schema import StoreConfig
from memeval.errors import UserError
from memeval.sweep.forecast import Forecast, forecast
from memeval.sweep.plan import Plan

JSON, EXACT = "--json", "--exact"
MULTIRUN = ("-m", "--multirun")
OF_LAUNCHER = ("hydra/launcher=", "hydra.launcher.")
"""Words that choose another launcher, and its settings."""


def plan(arguments: Sequence[str]) -> int:
    """Prints what the words would do without `plan` before them."""
    from memeval.cli.refused import RefusedError

    words = [word for word in arguments if word not in (JSON, EXACT)]
    try:
        with tempfile.TemporaryDirectory(prefix="memeval-plan-") as folder:
            # Hydra writes files into the session's folder: those of a plan are thrown away.
            os.environ[VARIABLE] = folder
            result = _forecast(compose_plan(words), Path(folder), exact=EXACT in arguments)
    except RefusedError as refusal:
        return report_refusal(refusal)

    if JSON in arguments:
        print(json.dumps(as_json(result), indent=2))
    else:
        from memeval.cli.plan_text import plan_lines

        print(folded("\n".join(plan_lines(result)), sys.stdout))

    return 0


def compose_plan(words: Sequence[str]) -> Plan:
    """The plan of the cells that the words compose.

    Raises `UserError`, and `RefusedError` where cells can't be run.
    """
    from memeval.cli.hydra_errors import explain, is_about_configs
    from memeval.cli.launcher import planning

    # Only our launcher can plan, and Hydra calls it only for sweeps: one cell is a sweep of one.
    own = [word for word in words if word not in MULTIRUN]
    if any("hydra/launcher=" in word for word in own):
        own = [word for word in own if not word.startswith(OF_LAUNCHER)]

    plans: list[Plan] = []
    try:
        with planning(plans.append):
            hydra_application([*reorder_arguments(own), MULTIRUN[1]])()
    except UserError:
        raise
    except Exception as error:
        if is_about_configs(error):
            raise explain(error) from error

        raise

    # One plan per batch: a sweeper may hand over its cells in several.
    plan = Plan([cell for batch in plans for cell in batch.cells])
    for planned in plan.cells:
        check_store_is_read(planned.cell.config.store)

    return plan


def check_store_is_read(store: StoreConfig) -> None:
    """Raises `UserError` for a store whose finished work a plan would miss."""
    for name in ("url", "memories"):
        if getattr(store, name):
            raise UserError(
                f"plan reads the files of the home, and not store.{name}",
                f"leave store.{name} out: what this home has not finished is planned",
            )


def _forecast(plan: Plan, folder: Path, *, exact: bool) -> Forecast:
    return run_loop(forecast(plan, folder, outputs_dir() / "runs", exact=exact))


def as_json(result: Forecast) -> dict[str, Any]:
    """A forecast for machines."""
    estimate = result.estimate
    units = {
        stage: {"all": stage_units.count, "finished": stage_units.finished}
        for stage, stage_units in result.units.items()
    }
    return {
        "cells": {"all": result.cells, "finished": result.finished_cells},
        "units": units,
        "calls": estimate.calls,
        "most_calls": estimate.most_calls,
        "tokens": estimate.tokens,
        "usd": estimate.usd,
        "most_usd": estimate.most_usd,
        "minutes": estimate.seconds / 60,
        "by_role": [asdict(line) for line in estimate.lines],
        "detectable": [asdict(outlook) for outlook in result.outlooks],
        "basis": list(estimate.basis),
    }
