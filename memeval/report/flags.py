"""Flags of a run: warnings before comparing it with others."""

from collections.abc import Iterable

from memeval.metrics.retrieval import CUTOFFS, cutoff_of
from memeval.results import FEWEST_SESSIONS, RunSummary
from memeval.text.shown import one_line

OF_SESSIONS = "R@"
"""Beginning of the flag that says that recalls count sessions."""


def asked_flags(summary: RunSummary) -> list[str]:
    """Flags on the choice of questions, if not all were asked: `sample 200`, `biased cut: …`."""
    words = {
        "split": "split {}",
        "sample": "sample {}",
        "biased_cut": "biased cut: {}",
        "only": "no score: only {}",
        "named_questions": "named questions: {}",
    }
    tags = summary.tags
    return [word.format(one_line(tags[tag], 60)) for tag, word in words.items() if tag in tags]


def session_flags(summary: RunSummary) -> list[str]:
    """The flag on recalls of sessions, with the lowest k that can't miss: `R@10 of 8 sessions`."""
    fewest = summary.tags.get(FEWEST_SESSIONS, "")
    if not fewest.isdecimal():
        return []

    measured = [k for k in CUTOFFS if summary.metrics.get(f"recall_at_{k}") is not None]
    if not measured:
        return []

    deep = [k for k in measured if k >= int(fewest)]
    if deep:
        return [f"{OF_SESSIONS}{min(deep)} of {fewest} sessions"]

    return [f"{OF_SESSIONS}k of sessions"]


def recall_warnings(summary: RunSummary, metrics: Iterable[str]) -> list[str]:
    """Warnings about recalls if a chunk is a session, as sentences without a full stop."""
    fewest = summary.tags.get(FEWEST_SESSIONS, "")
    depths = {k for k in map(cutoff_of, metrics) if k is not None}
    if not fewest.isdecimal() or not depths:
        return []

    deep = sorted(k for k in depths if k >= int(fewest))
    if not deep:
        return ["a chunk is a session, so k counts sessions"]

    shown = ", ".join(f"@{k}" for k in deep)
    return [
        f"a chunk is a session, and conversations have as few as {fewest}: "
        f"{shown} can't miss anything in those with at most k sessions"
    ]


def flags(summary: RunSummary) -> list[str]:
    """Warnings for a reader before comparing the cell with others."""
    marks = {
        "imported": ("true", "imported"),
        "recorded": ("true", "recorded"),
        "own_prompt": ("true", "own prompt"),
        "data_pinned": ("false", "unpinned"),
        "data_derived": ("true", "derived data"),
        "data_drafted": ("true", "drafted"),
        "data_excerpt": ("true", "excerpt"),
        "partial": ("true", "partial"),
        "ranks_part": ("true", "ranks part"),
        "mock": ("true", "mock"),
        "stages": ("retrieve", "retrieval only"),
        "cut_at_ingest": ("true", "cut at ingest"),
    }
    flagged = [word for tag, (value, word) in marks.items() if summary.tags.get(tag) == value]
    flagged += asked_flags(summary)
    flagged += session_flags(summary)
    flagged += filter(None, [summary.tags.get("system_flags")])

    return [*warning(summary), *flagged]


def warning(summary: RunSummary) -> list[str]:
    """The first flag of a run whose figures can't be trusted; none for other runs."""
    if summary.is_stopped:
        return ["STOPPED"]
    if not summary.valid:
        return ["INVALID"]

    return []
