"""The Python API: the command line as functions.

Overrides are those of the command line (`"system=bm25"`), or keyword arguments (`system="bm25"`,
`llm={"name": "openai", "model": "gpt-4o-mini"}`); a dotted name goes into a dictionary:
`**{"dataset.limit_cases": 1}`.
"""

from __future__ import annotations

from memeval.api.comparing import Comparisons, compare, explain, table
from memeval.api.exporting import Export, export
from memeval.api.finished import FinishedRun
from memeval.api.gating import bless, gate
from memeval.api.history import History, history
from memeval.api.judging import calibrate, evaluate, judge_probe
from memeval.api.notebook import Table
from memeval.api.overrides import as_overrides
from memeval.api.running import arun, run
from memeval.api.selecting import load_run, load_runs
from memeval.api.sweeping import Sweep, asweep, plan, sweep
from memeval.results.run import Run

__all__ = [
    "Comparisons",
    "Export",
    "FinishedRun",
    "History",
    "Run",
    "Sweep",
    "Table",
    "arun",
    "as_overrides",
    "asweep",
    "bless",
    "calibrate",
    "compare",
    "evaluate",
    "explain",
    "export",
    "gate",
    "history",
    "judge_probe",
    "load_run",
    "load_runs",
    "plan",
    "run",
    "sweep",
    "table",
]
