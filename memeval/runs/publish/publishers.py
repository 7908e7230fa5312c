"""This process's publishers, one for each store."""

from __future__ import annotations

import atexit
import os

from memeval.config.filing import read_experiment
from memeval.config.paths import project_root
from memeval.config.schema import TrackingConfig
from memeval.runs.publish.publisher import Publisher
from memeval.tracking.store import check_store, locate

_publishers: dict[tuple[str, str | None, bool], Publisher] = {}


def start_publisher(tracking: TrackingConfig, *, plots: bool = True) -> Publisher:
    """This process's publisher for a store, started when first asked for, so that it loads while
    the cell runs.

    Raises `UserError` for an address that is not a tracking URI.
    """
    key = (tracking.name, tracking.uri, plots)
    if key not in _publishers:
        if tracking.name == "mlflow":
            read_experiment(tracking)
            check_store(
                locate(project_root(), tracking.uri or os.environ.get("MLFLOW_TRACKING_URI"))
            )

        publisher = Publisher(
            project_root(), tracking.uri, track=tracking.name == "mlflow", plots=plots
        )
        publisher.start()
        # However the process ends, but for a kill: the worker then sees its closed pipe.
        atexit.register(publisher.close)
        _publishers[key] = publisher

    return _publishers[key]


def drawing_publishers() -> tuple[Publisher, Publisher]:
    """The publishers that draw a comparison, on two cores: one of no store, and one that has a
    store where there is one. They are the same where no run is tracked.
    """
    storeless = start_publisher(TrackingConfig(name="none"))
    return storeless, next(publisher for publisher in _publishers.values() if publisher.plots)


def tracking_publishers() -> list[Publisher]:
    """This process's publishers that log to a store, one for each store."""
    by_store = {
        uri: publisher for (name, uri, _), publisher in _publishers.items() if name != "none"
    }
    return list(by_store.values())
