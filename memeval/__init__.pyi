from memeval.api import FinishedRun as FinishedRun
from memeval.api import Run as Run
from memeval.api import Sweep as Sweep
from memeval.api import arun as arun
from memeval.api import asweep as asweep
from memeval.api import bless as bless
from memeval.api import calibrate as calibrate
from memeval.api import compare as compare
from memeval.api import evaluate as evaluate
from memeval.api import explain as explain
from memeval.api import export as export
from memeval.api import gate as gate
from memeval.api import judge_probe as judge_probe
from memeval.api import load_run as load_run
from memeval.api import load_runs as load_runs
from memeval.api import plan as plan
from memeval.api import run as run
from memeval.api import sweep as sweep
from memeval.api import table as table
from memeval.datasets.contract import Dataset as Dataset
from memeval.judges.contract import Judge as Judge
from memeval.systems.base import MemorySystem as MemorySystem
from memeval.systems.base import RecallSystem as RecallSystem

__version__: str
__all__: list[str]
