"""Writes docs/metrics_reference.md from the docstrings of what computes each figure:
`python docs/metrics_reference.py`.
"""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Formulas

Made from the docstrings by `python docs/metrics_reference.py`. [metrics.md](metrics.md) says what each figure means and when it is absent; this page has the function behind it: its unit, its range, its formula and its source. A figure of a run is the mean of its function over the questions that count, unless the text says otherwise.
"""


@dataclass(frozen=True)
class Formula:
    """A function and the figures that it gives."""

    names: tuple[str, ...]
    """As they are logged and printed."""
    function: str
    """`package.module:function`."""
    unit: str
    range: str
    source: str = ""
    """Where it comes from, if the docstring of the function does not say."""


LOCOMO = "Maharana et al., ACL 2024, `task_eval/evaluation.py`"
MEM0 = "mem0 (Chhikara et al., 2025), `evaluation/metrics/utils.py`"
COGCANVAS = "CogCanvas, arXiv 2601.00821"
TRADITION = "textbook form (Manning, Raghavan & Schütze, 2008, chapter 8)"
BENCH = "MemoryAgentBench (Hu et al., arXiv 2507.05257)"
DEJAVU = "DejaVu (Li et al., ESEC/FSE 2022)"
SHARE, UNIT = "share", "0 to 1"

SECTIONS: dict[str, tuple[Formula, ...]] = {
    "Answers": (
        Formula(("token_f1",), "memeval.metrics.tokens:token_f1", SHARE, UNIT, LOCOMO),
        Formula(("mem0_f1",), "memeval.metrics.mem0:mem0_f1", SHARE, UNIT, MEM0),
        Formula(("bleu1",), "memeval.metrics.mem0:bleu1", SHARE, UNIT, MEM0),
        Formula(
            ("keyword_overlap",), "memeval.metrics.keywords:keyword_overlap", SHARE, UNIT, COGCANVAS
        ),
        Formula(
            ("keyword_pass",), "memeval.metrics.keywords:keyword_pass", SHARE, "0 or 1", COGCANVAS
        ),
        Formula(
            ("exact_match",),
            "memeval.metrics.tokens:exact_match",
            SHARE,
            "0 or 1",
            "SQuAD (Rajpurkar et al., EMNLP 2016), with LoCoMo's normalisation",
        ),
        Formula(("contains",), "memeval.metrics.tokens:contains", SHARE, "0 or 1", "as above"),
    ),
    "Choices": (
        Formula(("accuracy (numbered)",), "memeval.metrics.choice:read_index", "index", "0 to 9"),
        Formula(
            ("exact_set_accuracy",), "memeval.metrics.letters:exact_set", SHARE, "0 or 1", "OpsEval"
        ),
        Formula(("jaccard",), "memeval.metrics.letters:jaccard", SHARE, UNIT, "Jaccard, 1912"),
    ),
    "Retrieval": (
        Formula(
            ("recall_at_<k>", "session_recall_at_<k>", "ranking_recall_at_<k>"),
            "memeval.metrics.retrieval:recall_at",
            SHARE,
            UNIT,
            TRADITION,
        ),
        Formula(
            ("hit_at_<k>", "session_hit_at_<k>"),
            "memeval.metrics.retrieval:hit_at",
            SHARE,
            "0 or 1",
            TRADITION,
        ),
        Formula(
            ("recall_all_at_<k>", "session_recall_all_at_<k>"),
            "memeval.metrics.retrieval:recall_all_at",
            SHARE,
            "0 or 1",
            "LongMemEval (Wu et al., ICLR 2025)",
        ),
        Formula(
            ("mrr", "session_mrr"),
            "memeval.metrics.retrieval:reciprocal_rank",
            SHARE,
            UNIT,
            "Voorhees, TREC-8 (1999)",
        ),
        Formula(
            ("ndcg_at_10", "session_ndcg_at_10"),
            "memeval.metrics.retrieval:ndcg_at",
            SHARE,
            UNIT,
        ),
    ),
    "Of single data sets": (
        Formula(
            ("token_f1, of LoCoMo",),
            "memeval.datasets.locomo.metrics:locomo_f1",
            SHARE,
            UNIT,
            LOCOMO,
        ),
        Formula(
            ("official/evidence_recall",),
            "memeval.datasets.locomo.metrics:official_evidence_recall",
            SHARE,
            UNIT,
            LOCOMO,
        ),
        Formula(
            ("official/turn/ndcg_any_at_<k>", "official/session/ndcg_any_at_<k>"),
            "memeval.datasets.longmemeval.metrics:official_ndcg",
            SHARE,
            "from 0",
            "LongMemEval, `src/retrieval/eval_utils.py`",
        ),
        Formula(
            ("position_bias",),
            "memeval.metrics.positions:position_bias",
            SHARE,
            UNIT,
            "total variation distance",
        ),
        Formula(
            ("substring_exact_match",),
            "memeval.datasets.memory_agent_bench.metrics:substring_exact_match",
            SHARE,
            "0 or 1",
            BENCH,
        ),
        Formula(
            ("exact_match_parsed",),
            "memeval.datasets.memory_agent_bench.metrics:exact_match_parsed",
            SHARE,
            "0 or 1",
            BENCH,
        ),
        Formula(
            ("recall_at_5_items",),
            "memeval.datasets.memory_agent_bench.metrics:recall_at_5_items",
            SHARE,
            UNIT,
            BENCH,
        ),
        Formula(
            ("a_at_1", "a_at_3", "a_at_5"),
            "memeval.datasets.incidents.metrics:a_at_k",
            SHARE,
            UNIT,
            DEJAVU,
        ),
        Formula(("mar",), "memeval.datasets.incidents.metrics:mar", "rank", "from 1", DEJAVU),
    ),
    "Error and spread": (
        Formula(("accuracy_std",), "memeval.statistics.means:sample_std", SHARE, "from 0"),
        Formula(
            ("accuracy_ci95_low", "accuracy_ci95_high"),
            "memeval.statistics.clusters:clustered_mean",
            SHARE,
            UNIT,
        ),
        Formula(("design_effect",), "memeval.statistics.means:design_effect", "ratio", "from 0"),
        Formula(
            ("accuracy_worst_case", "accuracy_best_case"),
            "memeval.statistics.means:bounds",
            SHARE,
            UNIT,
        ),
        Formula(("SE",), "memeval.statistics.clusters:clustered_se", SHARE, "from 0"),
    ),
    "Differences between runs": (
        Formula(("p", "interval of Δ"), "memeval.statistics.flips:flip_test", "probability", UNIT),
        Formula(("adj.",), "memeval.statistics.flips:max_t_ps", "probability", UNIT),
        Formula(("MDE",), "memeval.statistics.differences:detectable_difference", SHARE, "from 0"),
        Formula(
            ("p of categories",),
            "memeval.statistics.multiple:benjamini_hochberg",
            "probability",
            UNIT,
        ),
        Formula(("letters",), "memeval.statistics.multiple:compact_letters", "letters", "a to z"),
        Formula(("McNemar",), "memeval.statistics.proportions:mcnemar_p", "probability", UNIT),
        Formula(("frontier",), "memeval.statistics.frontier:frontier_area", SHARE, UNIT),
    ),
    "Errors of the judge": (
        Formula(
            ("accepted, of judge probe",),
            "memeval.statistics.proportions:wilson_interval",
            SHARE,
            UNIT,
        ),
        Formula(
            ("accuracy_corrected", "by labels of the run"),
            "memeval.statistics.judge_error:prediction_powered_mean",
            SHARE,
            UNIT,
        ),
        Formula(
            ("accuracy_corrected", "by labels of other answers"),
            "memeval.statistics.judge_error:rogan_gladen",
            SHARE,
            UNIT,
        ),
        Formula(("α",), "memeval.statistics.agreement:krippendorff_alpha", "α", "up to 1"),
        Formula(
            ("κ of two reviewers",), "memeval.statistics.agreement:cohen_kappa", "κ", "−1 to 1"
        ),
    ),
}


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, formulas in SECTIONS.items():
        parts.append(f"## {title}")
        parts += [entry(formula) for formula in formulas]

    return "\n\n".join(part.strip() for part in parts) + "\n"


def entry(formula: Formula) -> str:
    """A formula: its names, a line of facts, and the docstring."""
    module, _, name = formula.function.partition(":")
    function = getattr(importlib.import_module(module), name)
    facts = [f"*Unit:* {formula.unit}", f"*range:* {formula.range}"]
    if formula.source:
        facts.append(f"*source:* {formula.source}")

    facts.append(f"`{formula.function}`")
    heading = ", ".join(shown(name) for name in formula.names)
    return f"### {heading}\n\n{'; '.join(facts)}\n\n{prose(inspect.getdoc(function) or '')}"


def shown(name: str) -> str:
    """A name in a heading: as code where it is logged under it."""
    return f"`{name}`" if re.fullmatch(r"[a-z0-9_/<>]+", name) else name


def prose(docstring: str) -> str:
    """A docstring as Markdown; the signs of its formulas stay as they are."""
    parts = re.split(r"(`[^`]*`)", docstring)
    return "".join(
        part if part.startswith("`") else re.sub(r"([_<|]|(?<!\w)\*(?!\w))", r"\\\1", part)
        for part in parts
    )


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
