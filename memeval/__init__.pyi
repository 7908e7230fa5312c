from memeval.api.comparing import compare as compare
from memeval.api.comparing import explain as explain
from memeval.api.comparing import table as table
from memeval.api.exporting import export as export
from memeval.api.finished import FinishedRun as FinishedRun
from memeval.api.gating import bless as bless
from memeval.api.gating import gate as gate
from memeval.api.history import history as history
from memeval.api.judging import calibrate as calibrate
from memeval.api.judging import evaluate as evaluate
from memeval.api.judging import judge_probe as judge_probe
from memeval.api.running import arun as arun
from memeval.api.running import run as run
from memeval.api.selecting import load_run as load_run
from memeval.api.selecting import load_runs as load_runs
from memeval.api.sweeping import Sweep as Sweep
from memeval.api.sweeping import asweep as asweep
from memeval.api.sweeping import plan as plan
from memeval.api.sweeping import sweep as sweep
from memeval.datasets.contract import Dataset as Dataset
from memeval.judges.contract import Judge as Judge
from memeval.results.run import Run as Run
from memeval.systems.base import MemorySystem as MemorySystem
from memeval.systems.base import RecallSystem as RecallSystem

__version__: str
__all__: list[str]
