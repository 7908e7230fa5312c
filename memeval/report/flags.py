"""The flags of a run: what a reader must know before comparing it with others."""

from __future__ import annotations

from memeval.results import RunSummary
from memeval.text.shown import one_line


def asked_flags(summary: RunSummary) -> list[str]:
    """How the questions were chosen, where not all were asked: `sample 200`, `biased cut: …`."""
    words = {
        "split": "split {}",
        "sample": "sample {}",
        "biased_cut": "biased cut: {}",
        "only": "no score: only {}",
        "named_questions": "{} named questions",
    }
    return [
        word.format(one_line(summary.tags[tag], 60))
        for tag, word in words.items()
        if tag in summary.tags
    ]


def flags(summary: RunSummary) -> list[str]:
    """What a reader must know before comparing the cell with others."""
    marks = {
        "imported": ("true", "imported"),
        "recorded": ("true", "recorded"),
        "own_prompt": ("true", "own prompt"),
        "data_pinned": ("false", "unpinned"),
        "data_derived": ("true", "derived data"),
        "data_excerpt": ("true", "excerpt"),
        "partial": ("true", "partial"),
        "ranks_part": ("true", "ranks part"),
        "mock": ("true", "mock"),
        "stages": ("retrieve", "retrieval only"),
        "cut_at_ingest": ("true", "cut at ingest"),
    }
    flagged = [word for tag, (value, word) in marks.items() if summary.tags.get(tag) == value]
    flagged += asked_flags(summary)
    flagged += filter(None, [summary.tags.get("system_flags")])

    return [*warning(summary), *flagged]


def warning(summary: RunSummary) -> list[str]:
    """The word above all flags of a run whose figures can't be trusted; none for another one."""
    if summary.is_stopped:
        return ["STOPPED"]

    return [] if summary.valid else ["INVALID"]
