"""The processes of `hydra/launcher=joblib`: how many there are, and that they end with this one."""

from __future__ import annotations

import os
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from memeval.process import started

FOLDER = "JOBLIB_TEMP_FOLDER"
"""The variable by which joblib's processes are told where their temporary files go."""


def processes_of(launcher: Any) -> int:
    """How many processes a launcher of Hydra runs at once, as far as its settings say so."""
    count = launcher.get("n_jobs") or 1
    # As joblib counts: -1 stands for all processors, -2 for all but one.
    return count if count > 0 else max(1, (os.cpu_count() or 1) + 1 + count)


class EndJoblibWorkers(Callback):
    """Gives joblib a folder that its processes carry in their environment.

    Some of them outlive a parent that was killed: the guardian finds them by that name.
    """

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        launcher = str(OmegaConf.select(config, "hydra.launcher._target_"))
        if "joblib" in launcher and FOLDER not in os.environ:
            os.environ[FOLDER] = str(started.make_folder("joblib"))
