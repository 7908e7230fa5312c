"""Registry entry of ConvoMem."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo

CONVOMEM = DatasetInfo(
    name="convomem",
    title="ConvoMem: questions about one to six messages among up to 300 conversations",
    file="convomem/pre_mixed_testcases",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="CC BY-NC 4.0 by the data card, Apache 2.0 by the repository",
    citation=(
        "ConvoMem Benchmark: Why Your First 150 Conversations Don't Need RAG, 2025, "
        "arXiv 2511.10523"
    ),
    by_hand=(
        "download files of core_benchmark/pre_mixed_testcases from "
        "huggingface.co/datasets/Salesforce/ConvoMem into <data folder>/convomem, such as "
        "<data folder>/convomem/pre_mixed_testcases/user_evidence/1_evidence/batched_000.json"
    ),
)

INFOS = (CONVOMEM,)
