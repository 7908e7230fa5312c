"""Writes docs/metrics_reference.md from the docstrings of the functions that compute the figures:
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

Generated from the docstrings by `python docs/metrics_reference.py`. [metrics.md](metrics.md) explains what each figure means and when it is absent. This page describes the function that computes it: unit, range, formula and source. A run's figure is the mean of the function over the questions that count, unless the text says otherwise.
"""


@dataclass(frozen=True)
class Formula:
    """A function and the figures that it gives."""

    names: str
    """As they are printed; those that figures are logged under are code."""
    function: str
    """`package.module:function` in memeval."""
    unit: str
    range: str
    source: str = ""
    """Of the formula, if the function's docstring does not name it."""


LOCOMO = "Maharana et al., ACL 2024, `task_eval/evaluation.py`"
MEM0 = "mem0 (Chhikara et al., 2025), `evaluation/metrics/utils.py`"
COGCANVAS = "CogCanvas, arXiv 2601.00821"
TRADITION = "textbook form (Manning, Raghavan & Schütze, 2008, chapter 8)"
BENCH = "MemoryAgentBench (Hu et al., arXiv 2507.05257)"
DEJAVU = "DejaVu (Li et al., ESEC/FSE 2022)"
LONGMEMEVAL = "LongMemEval (Wu et al., ICLR 2025)"
VOORHEES = "Voorhees, TREC-8 (1999)"
SHARE, UNIT = "share", "0 to 1"

SECTIONS: dict[str, tuple[Formula, ...]] = {
    "Answers": (
        Formula("`token_f1`", "metrics.tokens:token_f1", SHARE, UNIT, LOCOMO),
        Formula("`mem0_f1`", "metrics.mem0:mem0_f1", SHARE, UNIT, MEM0),
        Formula("`bleu1`", "metrics.mem0:bleu1", SHARE, UNIT, MEM0),
        Formula("`keyword_overlap`", "metrics.keywords:keyword_overlap", SHARE, UNIT, COGCANVAS),
        Formula("`keyword_pass`", "metrics.keywords:keyword_pass", SHARE, "0 or 1", COGCANVAS),
        Formula(
            "`exact_match`",
            "metrics.tokens:exact_match",
            SHARE,
            "0 or 1",
            "SQuAD (Rajpurkar et al., EMNLP 2016), with LoCoMo's normalisation",
        ),
        Formula("`contains`", "metrics.tokens:contains", SHARE, "0 or 1", "as above"),
    ),
    "Choices": (
        Formula("accuracy (numbered)", "metrics.choice:read_index", "index", "0 to 9"),
        Formula("`exact_set_accuracy`", "metrics.letters:exact_set", SHARE, "0 or 1", "OpsEval"),
        Formula("`jaccard`", "metrics.letters:jaccard", SHARE, UNIT, "Jaccard, 1912"),
    ),
    "Retrieval": (
        Formula(
            "`recall_at_<k>`, `session_recall_at_<k>`, `ranking_recall_at_<k>`",
            "metrics.retrieval:recall_at",
            SHARE,
            UNIT,
            TRADITION,
        ),
        Formula(
            "`hit_at_<k>`, `session_hit_at_<k>`",
            "metrics.retrieval:hit_at",
            SHARE,
            "0 or 1",
            TRADITION,
        ),
        Formula(
            "`recall_all_at_<k>`, `session_recall_all_at_<k>`",
            "metrics.retrieval:recall_all_at",
            SHARE,
            "0 or 1",
            LONGMEMEVAL,
        ),
        Formula("`mrr`, `session_mrr`", "metrics.retrieval:reciprocal_rank", SHARE, UNIT, VOORHEES),
        Formula("`ndcg_at_10`, `session_ndcg_at_10`", "metrics.retrieval:ndcg_at", SHARE, UNIT),
    ),
    "Of single data sets": (
        Formula("token_f1, of LoCoMo", "datasets.locomo.metrics:locomo_f1", SHARE, UNIT, LOCOMO),
        Formula(
            "`official/evidence_recall`",
            "datasets.locomo.metrics:official_evidence_recall",
            SHARE,
            UNIT,
            LOCOMO,
        ),
        Formula(
            "`official/turn/ndcg_any_at_<k>`, `official/session/ndcg_any_at_<k>`",
            "datasets.longmemeval.metrics:official_ndcg",
            SHARE,
            "from 0",
            "LongMemEval, `src/retrieval/eval_utils.py`",
        ),
        Formula(
            "`position_bias`",
            "metrics.positions:position_bias",
            SHARE,
            UNIT,
            "total variation distance",
        ),
        Formula(
            "`substring_exact_match`",
            "datasets.memory_agent_bench.metrics:substring_exact_match",
            SHARE,
            "0 or 1",
            BENCH,
        ),
        Formula(
            "`exact_match_parsed`",
            "datasets.memory_agent_bench.metrics:exact_match_parsed",
            SHARE,
            "0 or 1",
            BENCH,
        ),
        Formula(
            "`recall_at_5_items`",
            "datasets.memory_agent_bench.metrics:recall_at_5_items",
            SHARE,
            UNIT,
            BENCH,
        ),
        Formula(
            "`a_at_1`, `a_at_3`, `a_at_5`", "datasets.incidents.metrics:a_at_k", SHARE, UNIT, DEJAVU
        ),
        Formula("`mar`", "datasets.incidents.metrics:mar", "rank", "from 1", DEJAVU),
    ),
    "Error and spread": (
        Formula("`accuracy_std`", "statistics.means:sample_std", SHARE, "from 0"),
        Formula(
            "`accuracy_ci95_low`, `accuracy_ci95_high`",
            "statistics.clusters:clustered_mean",
            SHARE,
            UNIT,
        ),
        Formula("`design_effect`", "statistics.means:design_effect", "ratio", "from 0"),
        Formula(
            "`accuracy_worst_case`, `accuracy_best_case`", "statistics.means:bounds", SHARE, UNIT
        ),
        Formula("SE", "statistics.clusters:clustered_se", SHARE, "from 0"),
    ),
    "Differences between runs": (
        Formula("`p`, interval of Δ", "statistics.flips:flip_test", "probability", UNIT),
        Formula("adj.", "statistics.flips:max_t_ps", "probability", UNIT),
        Formula("MDE", "statistics.differences:detectable_difference", SHARE, "from 0"),
        Formula("p of categories", "statistics.multiple:benjamini_hochberg", "probability", UNIT),
        Formula("`letters`", "statistics.multiple:compact_letters", "letters", "a to z"),
        Formula("McNemar", "statistics.proportions:mcnemar_p", "probability", UNIT),
        Formula("`frontier`", "statistics.frontier:frontier_area", SHARE, UNIT),
    ),
    "Errors of the judge": (
        Formula("accepted, of judge probe", "statistics.proportions:wilson_interval", SHARE, UNIT),
        Formula(
            "`accuracy_corrected`, by labels of the run",
            "statistics.judge_error:prediction_powered_mean",
            SHARE,
            UNIT,
        ),
        Formula(
            "`accuracy_corrected`, by labels of other answers",
            "statistics.judge_error:rogan_gladen",
            SHARE,
            UNIT,
        ),
        Formula("α", "statistics.agreement:krippendorff_alpha", "α", "up to 1"),
        Formula("κ of two reviewers", "statistics.agreement:cohen_kappa", "κ", "−1 to 1"),
    ),
}


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, formulas in SECTIONS.items():
        parts.append(f"## {title}")
        parts += map(entry, formulas)

    return "\n\n".join(map(str.strip, parts)) + "\n"


def entry(formula: Formula) -> str:
    """The names of a formula, a line of facts, and the docstring."""
    module, _, name = formula.function.partition(":")
    function = getattr(importlib.import_module(f"memeval.{module}"), name)
    facts = [f"*Unit:* {formula.unit}", f"*range:* {formula.range}"]
    if formula.source:
        facts.append(f"*source:* {formula.source}")

    facts.append(f"`memeval.{formula.function}`")
    return f"### {formula.names}\n\n{'; '.join(facts)}\n\n{as_markdown(inspect.getdoc(function) or '')}"


def as_markdown(docstring: str) -> str:
    """A docstring as Markdown that shows the signs of its formulas literally."""
    return "".join(map(_escape, re.split(r"(`[^`]*`)", docstring)))


def _escape(part: str) -> str:
    if part.startswith("`"):
        return part

    return re.sub(r"([_<|]|(?<!\w)\*(?!\w))", r"\\\1", part)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
