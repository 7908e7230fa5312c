"""The process that writes an offline run: `wandb_files` gives it one line of JSON."""

import json
import sys
from typing import Any


def write_offline_run(content: dict[str, Any]) -> None:
    """Writes a run's settings, figures and answers with the wandb library."""
    # mypy runs without the extra, too.
    import wandb  # type: ignore[import-not-found, unused-ignore]

    settings = wandb.Settings(
        mode="offline",
        console="off",
        silent=True,
        disable_git=True,
        disable_code=True,
        disable_job_creation=True,
        program="memeval",
        x_disable_meta=True,
        x_disable_stats=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
    )
    run = wandb.init(
        project="memeval",
        dir=content["folder"],
        id=content["id"],
        name=content["name"],
        notes=content["notes"],
        config=content["config"],
        settings=settings,
    )
    table = wandb.Table(columns=content["columns"], data=content["rows"])
    run.log({"answers": table})
    run.summary.update(content["summary"])
    run.finish()


if __name__ == "__main__":
    write_offline_run(json.loads(sys.stdin.readline()))
