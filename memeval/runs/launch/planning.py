"""The plan that the words of the command line compose. Nothing of it is run."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from memeval.config.schema import StoreConfig
from memeval.errors import UserError
from memeval.runs.compose.errors import explained
from memeval.runs.compose.words import reorder_arguments
from memeval.runs.launch.application import MULTIRUN, hydra_application
from memeval.runs.launch.launcher import planning
from memeval.runs.plan import Plan

OF_LAUNCHER = ("hydra/launcher=", "hydra.launcher.")
"""Words that choose another launcher, and its settings."""


def compose_plan(words: Sequence[str]) -> Plan:
    """The plan of the cells that the words compose.

    Raises `UserError`, and `RefusedError` if cells can't be run.
    """
    # Only our launcher can plan, and Hydra calls it only for sweeps: one cell is a sweep of one.
    own = [word for word in words if word not in MULTIRUN]
    if any("hydra/launcher=" in word for word in own):
        own = [word for word in own if not word.startswith(OF_LAUNCHER)]

    plans: list[Plan] = []
    before = sys.argv
    try:
        with explained(), planning(plans.append):
            hydra_application([*reorder_arguments(own), MULTIRUN[1]])()
    finally:
        sys.argv = before  # where Hydra's application finds its words

    # One plan per batch: a sweeper may hand over its cells in several.
    return Plan([cell for batch in plans for cell in batch.cells])


def check_store_is_read(store: StoreConfig) -> None:
    """Raises `UserError` for a store whose finished work the plan could not see."""
    for name in ("url", "memories"):
        if getattr(store, name):
            raise UserError(
                f"plan reads the files of the home, not store.{name}",
                f"leave store.{name} out: the plan then covers everything that this home has "
                "not finished",
            )
