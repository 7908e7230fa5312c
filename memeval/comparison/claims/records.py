"""What is known of a published figure. `None` means that the source does not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOT_DISCLOSED = "not disclosed"

JUDGED = frozenset({"accuracy"})
"""Metrics that rest on a judge and a reader; the others are computed from the ranking."""


@dataclass(frozen=True)
class Protocol:
    """How a figure was made: the six things that a claim must disclose."""

    data_sha256: str | None = None
    labels: str = "original"
    categories: tuple[int | str, ...] | None = None
    """Ids as the data set stores them; None for all."""
    questions: int | None = None
    """Questions asked in these categories."""
    averaged: str = "questions"
    """`questions`, or `cases`: the mean of the conversations' means."""
    judge: str | None = None
    """In words."""
    judge_like: str | None = None
    """The judge of memeval that follows the same protocol in words of its own."""
    judge_model: str | None = None
    judge_prompt_sha256: str | None = None
    judge_request: Mapping[str, Any] | None = None
    """Every parameter of the judge's requests, as `JudgeIdentity.request` has them."""
    judge_repeats: int | None = None
    """Judgings of each answer."""
    reader_model: str | None = None
    reader_prompt: str | None = None
    """In words."""
    reader_prompt_sha256: str | None = None
    reader_settings: Mapping[str, str] | None = None
    """Settings of the model that answers, by their names in memeval: `llm.temperature` …"""
    settings: Mapping[str, str] | None = None
    """The whole configuration of data and system that all figures share, by the names of memeval's
    settings; None for a system that is not memeval's.
    """
    retrieval: str | None = None
    """Chunks, tokens, rounds: what the reader was given, in words."""
    repeats: int | None = None
    error: str | None = None
    """What the error bar is, in words."""


@dataclass(frozen=True)
class Figure:
    """One published number."""

    system: str
    metric: str
    """By the name that memeval's metrics have."""
    value: float
    """In per cent."""
    error: float | None = None
    """In points, as published."""
    micro: float | None = None
    """Over questions, in per cent, where `value` averages otherwise and the source lets it be
    recomputed.
    """
    by_category: Mapping[str, float] | None = None
    """In per cent by category id."""
    settings: Mapping[str, str] | None = None
    """Settings beside those of the protocol, in which this figure differs from others."""
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """The figures of one source that share a protocol."""

    name: str
    title: str
    source: str
    dataset: str
    protocol: Protocol
    figures: tuple[Figure, ...]
    caveats: tuple[str, ...] = ()
    """What a reader must know of the figures, a sentence each."""
