"""Registry entry of LoCoMo."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo

LOCOMO = DatasetInfo(
    name="locomo",
    title="LoCoMo: ten very long conversations between two people",
    file="locomo/locomo10.json",
    url="https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
    sha256="79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
    size_bytes=2_805_274,
    licence="CC BY-NC 4.0",
    citation=(
        "Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents, ACL 2024"
    ),
    counts={"cases": 10, "sessions": 272, "turns": 5_882, "questions": 1_986},
    variants={
        "8f941d1c22ab3dee4cb72521fbccc82d24c30208590a15b0b4005a2f927ff769": (
            "an edited copy (issue 27: 26 questions changed, one gone)"
        ),
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

INFOS = (LOCOMO, LOCOMO_AUDIT)
