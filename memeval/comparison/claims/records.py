"""Known facts about a published figure. `None`: not stated by the source."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from memeval.results.fields import Rank

NOT_DISCLOSED = "not disclosed"

JUDGED = frozenset({"accuracy"})
"""Metrics that depend on a judge."""

PerCent = Annotated[float, Meta(ge=0, le=100)]
Words = Annotated[str, Meta(min_length=1)]
Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*\Z")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class Protocol(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a figure was produced: the six things that a claim must disclose."""

    data_sha256: Sha256 | None = None
    labels: str = "original"
    categories: tuple[int | str, ...] | None = None
    """Ids as the data set stores them; None for those that count in a run's accuracy."""
    questions: Rank | None = None
    """Questions asked in these categories."""
    averaged: Literal["questions", "cases"] = "questions"
    """`cases`: the mean of the conversations' means."""
    judge: str | None = None
    """Description of the judge."""
    judge_like: str | None = None
    """memeval's judge that follows the same protocol with a different wording."""
    judge_model: str | None = None
    judge_prompt_sha256: Sha256 | None = None
    judge_request: Mapping[str, Any] | None = None
    """Every parameter of the judge's requests, as `JudgeIdentity.request` has them."""
    judge_repeats: Rank | None = None
    """Number of judgements per answer."""
    reader_model: str | None = None
    reader_prompt: str | None = None
    """Description of the reader's prompt."""
    reader_prompt_sha256: Sha256 | None = None
    reader_settings: Mapping[str, str] | None = None
    """Settings of the model that answers, by their names in memeval: `llm.temperature` …"""
    settings: Mapping[str, str] | None = None
    """The whole configuration of data and system that all figures share, by the names of memeval's
    settings; None for a system that is not memeval's.
    """
    k: Rank | None = None
    """Number of pieces retrieved for a question."""
    retrieval: str | None = None
    """Description of the reader's context: chunks, tokens, rounds."""
    repeats: Rank | None = None
    error: str | None = None
    """Meaning of the error bar, in words."""


class ClaimedFigure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published number."""

    system: Words
    metric: Name
    """Name of the metric in memeval; a new name if memeval has no such metric."""
    value: PerCent
    """In per cent."""
    error: PerCent | None = None
    """In points, as published."""
    micro: PerCent | None = None
    """Mean over questions, in per cent, if `value` is averaged differently and the source lets it
    be recomputed.
    """
    by_category: Mapping[str, PerCent] | None = None
    """In per cent by category id."""
    like: Name | None = None
    """The option of `system` in memeval that is nearest to it."""
    settings: Mapping[str, str] | None = None
    """Settings in addition to those of the protocol, in which this figure differs from others."""
    note: str = ""


class Dispute(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another party's finding."""

    text: Words
    """A sentence without its full stop."""
    source: Words
    value: PerCent | None = None
    """The disputing party's result, in per cent."""


class Claim(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The figures of one source that share a protocol."""

    name: Name
    title: Words
    source: Words
    dataset: Name
    """Name of the data set in memeval; a new name if memeval has no such data set."""
    protocol: Protocol
    figures: Annotated[tuple[ClaimedFigure, ...], Meta(min_length=1)]
    caveats: tuple[Words, ...] = ()
    """Caveats on the figures for the reader, a sentence each."""
    disputes: tuple[Dispute, ...] = ()
