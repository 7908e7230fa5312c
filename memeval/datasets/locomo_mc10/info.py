"""Registry entry of LoCoMo-MC10."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo, Excerpt

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

INFOS = (LOCOMO_MC10,)
