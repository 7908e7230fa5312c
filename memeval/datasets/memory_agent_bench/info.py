"""Registry entry of MemoryAgentBench."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo, FileInfo

MEMORY_AGENT_BENCH = DatasetInfo(
    name="memory_agent_bench",
    title="MemoryAgentBench: long contexts that are read once, in four splits",
    file="memoryagentbench",
    url=None,
    sha256=None,
    size_bytes=3_293_442,
    licence="MIT",
    citation=(
        "Hu et al., Evaluating Memory in LLM Agents via Incremental Multi-Turn Interactions, "
        "2025, arXiv 2507.05257"
    ),
    counts={"cases": 8, "questions": 800},
    files=(
        FileInfo(
            name="Conflict_Resolution.json",
            url=None,
            sha256="d5168e94cba99744e35031c1e6419e6090d63978f5addc9163d56704a78c7acd",
            size_bytes=3_293_442,
        ),
    ),
    by_hand=(
        "download the Parquet file of a split from "
        "huggingface.co/datasets/ai-hyz/MemoryAgentBench, then: python -m memeval data make "
        "memory_agent_bench <data folder>/memoryagentbench/Conflict_Resolution.json FILE.parquet "
        "(so for Accurate_Retrieval, Test_Time_Learning and Long_Range_Understanding)"
    ),
)

INFOS = (MEMORY_AGENT_BENCH,)
