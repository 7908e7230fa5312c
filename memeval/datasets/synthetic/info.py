"""Registry entry of the generated conversations."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo

SYNTHETIC = DatasetInfo(
    name="synthetic",
    title=(
        "Synthetic: generated conversations of any length, 10 to 10 million tokens, with planted "
        "facts"
    ),
    file="",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="CC0 1.0",
    citation="memeval",
)

INFOS = (SYNTHETIC,)
