"""Registry entry of PersonaMem."""

from __future__ import annotations

from collections.abc import Mapping

from memeval.datasets.contract import DatasetInfo

SIZES: Mapping[str, str] = {"32k": "32k", "128k": "128k", "1m": "1M"}
"""How the files' names write each size."""

QUESTIONS: Mapping[str, int] = {"32k": 589, "128k": 2_727, "1m": 2_674}


def files_of(size: str) -> tuple[str, str]:
    """The questions and the contexts of a size, below the data set's folder."""
    written = SIZES[size]
    return f"questions_{written}.csv", f"shared_contexts_{written}.jsonl"


PERSONAMEM = DatasetInfo(
    name="personamem",
    title="PersonaMem: which of four responses suits the user, as the conversation shows them",
    file="personamem/v1",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="MIT",
    citation=(
        "Jiang et al., Know Me, Respond to Me: Benchmarking LLMs for Dynamic User Profiling and "
        "Personalized Responses at Scale, COLM 2025, arXiv 2504.14225"
    ),
    counts={"questions": QUESTIONS["32k"]},
    by_hand=(
        "download questions_32k.csv and shared_contexts_32k.jsonl (so for 128k and 1M) from "
        "huggingface.co/datasets/bowen-upenn/PersonaMem-v1 into <data folder>/personamem/v1"
    ),
)

INFOS = (PERSONAMEM,)
