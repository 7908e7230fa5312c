"""Registry entry of LongMemEval."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo, Excerpt

_LONGMEMEVAL = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main/"

_WU = (
    "Wu et al., LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory, ICLR "
    "2025"
)

LONGMEMEVAL_S = DatasetInfo(
    name="longmemeval_s",
    title="LongMemEval S: 500 questions, each with a history of about 50 sessions",
    file="longmemeval/longmemeval_s_cleaned.json",
    url=f"{_LONGMEMEVAL}longmemeval_s_cleaned.json",
    sha256="d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
    size_bytes=277_383_467,
    licence="MIT",
    citation=_WU,
    counts={"cases": 500, "questions": 500},
    excerpts=(
        Excerpt(
            file="longmemeval/longmemeval_s_dev31.json",
            sha256="a6689066fecb28a563283f7a56da5a3eeb008101f73fde50bd1b49df5adf6f11",
            what="31 of the 500 questions, with their whole histories",
        ),
    ),
)

LONGMEMEVAL_M = DatasetInfo(
    name="longmemeval_m",
    title="LongMemEval M: 500 questions, each with a history of about 500 sessions",
    file="longmemeval/longmemeval_m_cleaned.json",
    url=f"{_LONGMEMEVAL}longmemeval_m_cleaned.json",
    sha256=None,
    size_bytes=None,
    licence="MIT",
    citation=_WU,
    counts={"cases": 500, "questions": 500},
)

LONGMEMEVAL_ORACLE = DatasetInfo(
    name="longmemeval_oracle",
    title=(
        "LongMemEval oracle: 500 questions, each with the sessions that hold the answer and no "
        "others"
    ),
    file="longmemeval/longmemeval_oracle.json",
    url=f"{_LONGMEMEVAL}longmemeval_oracle.json",
    sha256=None,
    size_bytes=None,
    licence="MIT",
    citation=_WU,
    counts={"cases": 500, "questions": 500},
    excerpts=(
        Excerpt(
            file="longmemeval/longmemeval_oracle_dev31.json",
            sha256="add27cb505abb3b3b0b73386cb65ad312232b724c4b16773fdce6a371f148565",
            what="31 of the 500 questions, with their whole evidence sessions",
        ),
        Excerpt(
            file="longmemeval/longmemeval_oracle_evidence_turns_500.json",
            sha256="eeb6fbf6e09ebb177f891650143a18e09f4995e0cae52d35d2d35901b07b0635",
            what="all 500 questions, with the turns that hold the answer and no others",
        ),
    ),
)

INFOS = (LONGMEMEVAL_S, LONGMEMEVAL_M, LONGMEMEVAL_ORACLE)
