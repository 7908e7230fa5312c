"""Registry entry of the incidents."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo

INCIDENTS = DatasetInfo(
    name="incidents",
    title=(
        "Incidents of AIOps systems: dated narratives of the past, questions as later incidents "
        "begin"
    ),
    file="aiops/incidents_normalized.csv",
    url=None,
    sha256="3c3de5f4e6734487b4f81ecec55655f0c150d52493f9596ab27b58f46db64821",
    size_bytes=160_527,
    licence=(
        "a table derived from the fault lists of GAIA, OpenRCA and Nezha, each under its own "
        "licence; never shipped"
    ),
    citation=(
        "Li et al., DejaVu, ESEC/FSE 2022; Xu et al., OpenRCA, ICLR 2025; Yu et al., Nezha, "
        "ESEC/FSE 2023"
    ),
    by_hand=(
        "build a table like it from the published sources: python -m memeval data make incidents "
        "FILE FROM… (folders of OpenRCA and Nezha, a faults.csv of DejaVu), then "
        "dataset.path=FILE dataset.allow_unpinned=true"
    ),
    counts={"cases": 9, "sessions": 1_414, "turns": 2_482, "questions": 637},
)

INFOS = (INCIDENTS,)
