"""The run comparable with a published figure, and the settings that memeval can't match."""

import shlex
from collections.abc import Iterator

from msgspec import Struct

from memeval.comparison.claims.records import JUDGED, Claim, ClaimedFigure
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.metrics.registry import metrics

STAND_IN = "rag"
"""The system with which the cost is estimated if memeval does not have the claim's system."""
ASSUMED_MODEL = "gpt-4o-mini"
"""Model for a claim whose source names none."""


class Reproduction(Struct, frozen=True):
    """A run that follows a claim as far as memeval can."""

    words: tuple[str, ...]
    """Overrides of the command line."""
    unmatched: tuple[str, ...]
    """Settings that differ from the source's, or are not known, a sentence each without its full
    stop.
    """
    system: str | None
    """The option of `system`; None if memeval does not have the claim's system."""

    @property
    def command(self) -> str:
        return shlex.join(["python", "-m", "memeval", *self.words])

    @property
    def cost_overrides(self) -> list[str]:
        """The overrides for which the cost is estimated."""
        words = list(self.words)
        if not self.system:
            words.remove("system=YOURS")
            words.append(f"system={STAND_IN}")

        return words


def reproduce(claim: Claim, figure: ClaimedFigure) -> Reproduction:
    """The run that a claim's protocol describes.

    Raises `UserError` for a claim about a data set that memeval does not have.
    """
    if claim.dataset not in DATASETS:
        raise UserError(
            f"claim {claim.name} can't be reproduced: memeval has no data set {claim.dataset}"
        )

    settings = {**(claim.protocol.settings or {}), **(figure.settings or {})}
    system = settings.pop("system", figure.like)
    words = [f"dataset={claim.dataset}", f"system={system or 'YOURS'}"]
    words += _questions(claim)
    words += [f"{name}={value}" for name, value in settings.items()]
    words += _run(claim, figure)
    return Reproduction(tuple(words), tuple(_unmatched_parts(claim, figure, system)), system)


def _questions(claim: Claim) -> Iterator[str]:
    protocol = claim.protocol
    if protocol.categories is not None:
        yield f"dataset.categories=[{','.join(map(str, protocol.categories))}]"
    if protocol.labels != "original":
        yield f"dataset.labels={protocol.labels}"


def _run(claim: Claim, figure: ClaimedFigure) -> Iterator[str]:
    """Overrides for reader, judge, depth and repeats."""
    protocol = claim.protocol
    if protocol.k is not None:
        yield f"top_k={protocol.k}"
    if protocol.repeats not in (None, 1):
        yield f"num_runs={protocol.repeats}"
    if figure.metric not in JUDGED and "_at_" in figure.metric:
        if "session_" in figure.metric and "granularity" not in (protocol.settings or {}):
            yield "granularity=session"

        yield "stages=retrieve"
        return

    yield from ("llm=openai", f"llm.model={protocol.reader_model or ASSUMED_MODEL}")
    for name, value in (protocol.reader_settings or {}).items():
        yield f"{name}={value}"

    # Metrics that compare words do not depend on the judge.
    if figure.metric in JUDGED:
        yield f"judge={protocol.judge_like or 'llm'}"
        yield f"llm.judge.model={protocol.judge_model or ASSUMED_MODEL}"
        if protocol.judge_repeats not in (None, 1):
            yield f"judge.repeats={protocol.judge_repeats}"


def _unmatched_parts(claim: Claim, figure: ClaimedFigure, system: str | None) -> Iterator[str]:
    protocol = claim.protocol
    if system is None:
        yield (
            f"the system {figure.system}: replace YOURS with your own (a class, or "
            "system=http, command or mcp)"
        )
    elif not (protocol.settings or figure.settings):
        yield f"the settings and the version of {figure.system}"

    if figure.metric not in metrics():
        shown = "; recall_shown is over all k that are shown" if "_at_" in figure.metric else ""
        yield f"the metric {figure.metric}, which memeval lacks{shown}"
    if protocol.data_sha256 is None:
        yield "the data file, whose sha256 the source does not state"
    if protocol.averaged == "cases":
        yield "the average, which is over conversations there: explain computes it for a run"
    if protocol.questions is None:
        yield "how many questions were asked"
    if figure.metric in JUDGED:
        yield from _unmatched_models(claim)
    elif protocol.reader_model is None and "_at_" not in figure.metric:
        yield f"the reader's model, which is not disclosed: {ASSUMED_MODEL} here"


def _unmatched_models(claim: Claim) -> Iterator[str]:
    protocol = claim.protocol
    if protocol.reader_model is None:
        yield f"the reader's model, which is not disclosed: {ASSUMED_MODEL} here"
    if protocol.reader_prompt_sha256 is None:
        known = f" ({protocol.reader_prompt})" if protocol.reader_prompt else ""
        yield f"the answer prompt{known}"
    if protocol.judge_prompt_sha256 is None:
        known = f" ({protocol.judge})" if protocol.judge else ""
        yield f"the judge's prompt{known}: for the original, set judge.prompt_file="
    if protocol.judge_model is None:
        yield f"the judge's model, which is not disclosed: {ASSUMED_MODEL} here"
