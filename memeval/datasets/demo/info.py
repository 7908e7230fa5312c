"""Registry entries of the demonstration sets, each in the schema of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping

from memeval.datasets.contract import DatasetInfo


def _shipped(
    name: str, *, file: str, title: str, counts: Mapping[str, int] | None = None
) -> DatasetInfo:
    """A set that ships: it has no address, and its file is compared with the one that shipped."""
    return DatasetInfo(
        name=name,
        title=title,
        file=f"demo/{file}",
        url=None,
        sha256=None,
        size_bytes=None,
        licence="CC0 1.0",
        citation="memeval",
        counts=counts or {},
    )


DEMO = _shipped(
    "demo",
    file="demo.json",
    title="Demonstration: invented conversations in LoCoMo's schema, made to be small",
    counts={"cases": 10, "sessions": 62, "turns": 650, "questions": 142},
)

DEMO_BEAM = _shipped(
    "demo_beam",
    file="beam",
    title="Demonstration: an invented chat in BEAM's schema, a question for each ability",
    counts={"cases": 1, "sessions": 3, "turns": 32, "questions": 10},
)

DEMO_CONVOMEM = _shipped(
    "demo_convomem",
    file="convomem",
    title="Demonstration: an invented office's questions in ConvoMem's schema, of each category",
    counts={"cases": 7, "sessions": 16, "turns": 48, "questions": 7},
)

DEMO_LOCOMO_MC10 = _shipped(
    "demo_locomo_mc10",
    file="locomo_mc10.jsonl",
    title=(
        "Demonstration: questions with ten choices about the beginnings of two invented "
        "conversations, in LoCoMo-MC10's schema"
    ),
)

DEMO_LONGMEMEVAL = _shipped(
    "demo_longmemeval",
    file="longmemeval.json",
    title="Demonstration: invented chat histories in LongMemEval's schema, made to be small",
    counts={"cases": 8, "questions": 8},
)

DEMO_INCIDENTS = _shipped(
    "demo_incidents",
    file="incidents.csv",
    title="Demonstration of incidents: two invented systems, in the normalized schema",
)

DEMO_MEMORY_AGENT_BENCH = _shipped(
    "demo_memory_agent_bench",
    file="memae.json",
    title="Demonstration: invented rows in MemoryAgentBench's schema, of every kind of metric",
)

DEMO_NETOPS = _shipped(
    "demo_netops",
    file="netops.json",
    title="Demonstration: runbooks, alerts and handling of three invented networks",
    counts={"cases": 3, "sessions": 3, "turns": 23, "questions": 22},
)

DEMO_OPSEVAL = _shipped(
    "demo_opseval",
    file="opseval",
    title="Demonstration: invented questions in the four schemas of OpsEval, some of them dirty",
)

DEMO_PERSONAMEM = _shipped(
    "demo_personamem",
    file="personamem",
    title="Demonstration: invented questions about two invented users, in PersonaMem's schema",
    counts={"cases": 3, "sessions": 6, "turns": 26, "questions": 6},
)

INFOS = (
    DEMO,
    DEMO_BEAM,
    DEMO_CONVOMEM,
    DEMO_LOCOMO_MC10,
    DEMO_LONGMEMEVAL,
    DEMO_INCIDENTS,
    DEMO_MEMORY_AGENT_BENCH,
    DEMO_NETOPS,
    DEMO_OPSEVAL,
    DEMO_PERSONAMEM,
)
