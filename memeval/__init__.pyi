from memeval.api import Run as Run
from memeval.api import arun as arun
from memeval.api import load_run as load_run
from memeval.api import load_runs as load_runs
from memeval.api import run as run
from memeval.datasets.contract import Dataset as Dataset
from memeval.judges.contract import Judge as Judge
from memeval.systems.base import MemorySystem as MemorySystem
from memeval.systems.base import RecallSystem as RecallSystem

__version__: str
__all__: list[str]
