"""The processes of `hydra/launcher=joblib`: they end with this one."""

from __future__ import annotations

import os
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from memeval.process import started

FOLDER = "JOBLIB_TEMP_FOLDER"
"""Variable that sets the folder of temporary files of joblib's processes."""


class EndJoblibWorkers(Callback):
    """Gives joblib a folder that its processes carry in their environment.

    Some of them outlive a parent that was killed: the guardian finds them by that name.
    """

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        launcher = str(OmegaConf.select(config, "hydra.launcher._target_"))
        if "joblib" in launcher and FOLDER not in os.environ:
            os.environ[FOLDER] = str(started.make_folder("joblib"))
