"""Registry entry of the alert storms."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo

ALERT_STORM = DatasetInfo(
    name="alert_storm",
    title=(
        "Alert storm: generated alerts of a network with known root causes, or the alert lines of "
        "a log"
    ),
    file="",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="CC0 1.0 (generated); the log under its publisher's licence",
    citation=(
        "memeval; for the log Zhu et al., Loghub: A Large Collection of System Log Datasets, "
        "ISSRE 2023"
    ),
)

INFOS = (ALERT_STORM,)
