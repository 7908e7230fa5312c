"""memeval measures the memory of language-model agents.

The Python API is loaded when it is first used: `import memeval` takes no time. `__init__.pyi`
declares it for type checkers.
"""

import sys
from typing import Any

if sys.platform == "win32":
    raise ImportError("memeval needs POSIX locks and processes: on Windows, run it in WSL")

__version__ = "0.2.0.dev0"

_HOME = {
    "Dataset": "memeval.datasets.contract",
    "FinishedRun": "memeval.api.finished",
    "Judge": "memeval.judges.contract",
    "MemorySystem": "memeval.systems.base",
    "RecallSystem": "memeval.systems.base",
    "Run": "memeval.results.run",
    "Sweep": "memeval.api.sweeping",
    "arun": "memeval.api.running",
    "asweep": "memeval.api.sweeping",
    "bless": "memeval.api.gating",
    "calibrate": "memeval.api.judging",
    "compare": "memeval.api.comparing",
    "evaluate": "memeval.api.judging",
    "explain": "memeval.api.comparing",
    "export": "memeval.api.exporting",
    "gate": "memeval.api.gating",
    "history": "memeval.api.history",
    "judge_probe": "memeval.api.judging",
    "load_run": "memeval.api.selecting",
    "load_runs": "memeval.api.selecting",
    "plan": "memeval.api.sweeping",
    "run": "memeval.api.running",
    "sweep": "memeval.api.sweeping",
    "table": "memeval.api.comparing",
}
"""Module of each public name."""
__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - the names are strings


def __getattr__(name: str) -> Any:
    """Imports a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'memeval' has no attribute '{name}'")

    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value

    return value


def __dir__() -> list[str]:
    return sorted(__all__)
