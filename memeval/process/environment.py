"""The environment of this process: its variables, its cores, and the permissions of its files."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MEM0_TELEMETRY": "False",
    "ORT_DISABLE_TELEMETRY": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_COLOR_PREFIX": "0",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
"""Set before anything is imported: telemetry off, no hub, no bars in memeval's display, and one
thread for small matrix products, which are slower with two.
"""


def set_environment() -> None:
    """Sets environment variables read by other packages, before these are imported.

    Variables set by the user stay.
    """
    for variable, value in ENVIRONMENT.items():
        os.environ.setdefault(variable, value)


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Sets variables of this process, and restores their earlier values at the end."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def private_umask() -> None:
    """From here on, only their owner may read the files that this process and its children create.

    This includes files of other libraries: databases with their journals, artifacts, locks, plots.
    """
    os.umask(0o077)


def count_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))

    return os.cpu_count() or 1
