"""The Python API: what the command line does, as functions.

Overrides are those of the command line (`"system=bm25"`), or keyword arguments (`system="bm25"`,
`llm={"name": "openai", "model": "gpt-4o-mini"}`); a dotted name goes into a dictionary:
`**{"dataset.limit_cases": 1}`.
"""

from __future__ import annotations

from memeval.api.comparing import Comparisons, compare
from memeval.api.finished import Run
from memeval.api.gating import bless, gate
from memeval.api.judging import calibrate, evaluate, judge_probe
from memeval.api.overrides import as_overrides
from memeval.api.running import arun, run
from memeval.api.selection import load_run, load_runs
from memeval.api.sweeping import Sweep, asweep, plan, sweep

__all__ = [
    "Comparisons",
    "Run",
    "Sweep",
    "arun",
    "as_overrides",
    "asweep",
    "bless",
    "calibrate",
    "compare",
    "evaluate",
    "gate",
    "judge_probe",
    "load_run",
    "load_runs",
    "plan",
    "run",
    "sweep",
]
