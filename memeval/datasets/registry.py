"""All data sets that memeval knows, as data."""

from __future__ import annotations

from collections.abc import Mapping

from memeval.datasets.contract import DatasetInfo, Excerpt
from memeval.datasets.memory_agent_bench.info import DEMO_MEMORY_AGENT_BENCH, MEMORY_AGENT_BENCH
from memeval.datasets.opseval.info import DEMO_OPSEVAL, OPSEVAL
from memeval.errors import unknown

LOCOMO = DatasetInfo(
    name="locomo",
    title="LoCoMo: ten very long conversations between two people",
    file="locomo/locomo10.json",
    url="https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
    sha256="79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
    size_bytes=2_805_274,
    licence="CC BY-NC 4.0",
    citation="Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents, ACL 2024",
    counts={"cases": 10, "sessions": 272, "turns": 5_882, "questions": 1_986},
    variants={
        "8f941d1c22ab3dee4cb72521fbccc82d24c30208590a15b0b4005a2f927ff769": "an edited copy (issue 27: 26 questions changed, one gone)",
    },
)

LOCOMO_AUDIT = DatasetInfo(
    name="locomo_audit",
    title="Ground-truth audit of LoCoMo: 156 questions with a wrong answer or citation",
    file="locomo/locomo_audit_errors.json",
    url="https://raw.githubusercontent.com/dial481/locomo-audit/main/errors.json",
    sha256="f298ef46263fada20688a1d672be37d4f488c6da3b19343eea55ae5c1b5fe55e",
    size_bytes=150_552,
    licence="CC BY-NC 4.0",
    citation="github.com/dial481/locomo-audit",
)

DEMO = DatasetInfo(
    name="demo",
    title="Demonstration: invented conversations in LoCoMo's schema, made to be small",
    file="demo/demo.json",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="CC0 1.0",
    citation="memeval",
)

SYNTHETIC = DatasetInfo(
    name="synthetic",
    title="Synthetic: generated conversations of any length, 10 to 10 million tokens, with planted facts",
    file="",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="CC0 1.0",
    citation="memeval",
)

_LONGMEMEVAL = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main/"
_WU = "Wu et al., LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory, ICLR 2025"

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
            "longmemeval/longmemeval_s_dev31.json",
            "a6689066fecb28a563283f7a56da5a3eeb008101f73fde50bd1b49df5adf6f11",
            "31 of the 500 questions, with their whole histories",
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
    title="LongMemEval oracle: 500 questions, each with the sessions that hold the answer and no others",
    file="longmemeval/longmemeval_oracle.json",
    url=f"{_LONGMEMEVAL}longmemeval_oracle.json",
    sha256=None,
    size_bytes=None,
    licence="MIT",
    citation=_WU,
    counts={"cases": 500, "questions": 500},
    excerpts=(
        Excerpt(
            "longmemeval/longmemeval_oracle_dev31.json",
            "add27cb505abb3b3b0b73386cb65ad312232b724c4b16773fdce6a371f148565",
            "31 of the 500 questions, with their whole evidence sessions",
        ),
        Excerpt(
            "longmemeval/longmemeval_oracle_evidence_turns_500.json",
            "eeb6fbf6e09ebb177f891650143a18e09f4995e0cae52d35d2d35901b07b0635",
            "all 500 questions, with the turns that hold the answer and no others",
        ),
    ),
)

DEMO_LONGMEMEVAL = DatasetInfo(
    name="demo_longmemeval",
    title="Demonstration: invented chat histories in LongMemEval's schema, made to be small",
    file="demo/longmemeval.json",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="CC0 1.0",
    citation="memeval",
    counts={"cases": 8, "questions": 8},
)

LOCOMO_MC10 = DatasetInfo(
    name="locomo_mc10",
    title="LoCoMo-MC10: LoCoMo's questions, each with ten choices",
    file="locomo_mc10/locomo_mc10.json",
    url="https://huggingface.co/datasets/Percena/locomo-mc10/resolve/main/data/locomo_mc10.json",
    sha256=None,
    size_bytes=None,
    licence="CC BY-NC 4.0",
    citation="Percena/locomo-mc10, from Maharana et al., ACL 2024",
    counts={"cases": 10, "sessions": 272, "turns": 5_882, "questions": 1_986},
    excerpts=(
        Excerpt(
            file="locomo_mc10/locomo_mc10_3rows.jsonl",
            sha256="f17335ddfa0dc02499b7e7fbaf4599c38afcc47970c0c491658807a178fb61a9",
            what="the first 3 of the 1,986 questions, with the whole of their one conversation",
        ),
    ),
)

DEMO_LOCOMO_MC10 = DatasetInfo(
    name="demo_locomo_mc10",
    title="Demonstration: questions with ten choices about the beginnings of two invented conversations, in LoCoMo-MC10's schema",
    file="demo/locomo_mc10.jsonl",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="CC0 1.0",
    citation="memeval",
)

INCIDENTS = DatasetInfo(
    name="incidents",
    title="Incidents of AIOps systems: dated narratives of the past, questions as later incidents begin",
    file="aiops/incidents_normalized.csv",
    url=None,
    sha256="3c3de5f4e6734487b4f81ecec55655f0c150d52493f9596ab27b58f46db64821",
    size_bytes=160_527,
    licence="a table derived from the fault lists of GAIA, OpenRCA and Nezha, each under its own licence; never shipped",
    citation="Li et al., DejaVu, ESEC/FSE 2022; Xu et al., OpenRCA, ICLR 2025; Yu et al., Nezha, ESEC/FSE 2023",
    counts={"cases": 9, "sessions": 1_414, "turns": 2_482, "questions": 637},
)

DEMO_INCIDENTS = DatasetInfo(
    name="demo_incidents",
    title="Demonstration of incidents: two invented systems, in the normalized schema",
    file="demo/incidents.csv",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="CC0 1.0",
    citation="memeval",
)

ALERT_STORM = DatasetInfo(
    name="alert_storm",
    title="Alert storm: generated alerts of a network with known root causes, or the alert lines of a log",
    file="",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="CC0 1.0 (generated); the log under its publisher's licence",
    citation="memeval; for the log Zhu et al., Loghub: A Large Collection of System Log Datasets, ISSRE 2023",
)

DATASETS: Mapping[str, DatasetInfo] = {
    info.name: info
    for info in (
        LOCOMO,
        LOCOMO_AUDIT,
        DEMO,
        SYNTHETIC,
        LONGMEMEVAL_S,
        LONGMEMEVAL_M,
        LONGMEMEVAL_ORACLE,
        DEMO_LONGMEMEVAL,
        LOCOMO_MC10,
        DEMO_LOCOMO_MC10,
        INCIDENTS,
        DEMO_INCIDENTS,
        ALERT_STORM,
        MEMORY_AGENT_BENCH,
        DEMO_MEMORY_AGENT_BENCH,
        OPSEVAL,
        DEMO_OPSEVAL,
    )
}
"""Everything that `data fetch` and `data verify` know."""

ADAPTERS: Mapping[str, str] = {
    "locomo": "memeval.datasets.locomo.adapter:Locomo",
    "demo": "memeval.datasets.locomo.adapter:Locomo",
    "locomo_mc10": "memeval.datasets.locomo_mc10.adapter:LocomoMc10",
    "demo_locomo_mc10": "memeval.datasets.locomo_mc10.adapter:LocomoMc10",
    "synthetic": "memeval.datasets.synthetic.adapter:Synthetic",
    "longmemeval_s": "memeval.datasets.longmemeval.adapter:LongMemEval",
    "longmemeval_m": "memeval.datasets.longmemeval.adapter:LongMemEval",
    "longmemeval_oracle": "memeval.datasets.longmemeval.adapter:LongMemEval",
    "demo_longmemeval": "memeval.datasets.longmemeval.adapter:LongMemEval",
    "incidents": "memeval.datasets.incidents.adapter:Incidents",
    "demo_incidents": "memeval.datasets.incidents.adapter:Incidents",
    "alert_storm": "memeval.datasets.alert_storm.adapter:AlertStorm",
    "memae": "memeval.datasets.memory_agent_bench.adapter:MemoryAgentBench",
    "demo_memae": "memeval.datasets.memory_agent_bench.adapter:MemoryAgentBench",
    "opseval": "memeval.datasets.opseval.adapter:OpsEval",
    "demo_opseval": "memeval.datasets.opseval.adapter:OpsEval",
}
"""Where the adapter of each data set that can be run lies, `module:class`; imported when it is opened."""


def dataset_info(name: str) -> DatasetInfo:
    """What is known of a data set. Raises `UserError` naming the nearest ones where there is none of that name."""
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    return DATASETS[name]
